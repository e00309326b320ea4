"""Known findings, budgets, ignored shapes and unordered jobs, on a real handler."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from jobcheck.clock import REAL
from jobcheck.events import Bus, Event, Warned
from jobcheck.history.report import Report
from jobcheck.runner import facade
from jobcheck.runner.asked import handler_job
from jobcheck.runner.expectations import exit_code_of
from jobcheck.runner.facade import Request
from jobcheck.runner.rig import load_rig
from jobcheck.store import accepted

from . import tiny

BROKEN = '    jobcheck.mark("done", key)\n    jobcheck.mark("after", key)\n'
DAY = dt.timedelta(days=1)


def explored(folder: Path, body: str = BROKEN, bus: Bus | None = None, **values: object) -> Report:
    rig = load_rig(tiny.write(folder, body, options=""))
    for name in ("ignore", "order"):
        if name in values:
            setattr(rig, name, values.pop(name))
    request = Request(
        command="test",
        rig=rig,
        jobs=[handler_job(rig, "tiny:work", "row", tiny.DONE_ONCE, name="work")],
        reports=folder / "reports",
        project=folder,
        lanes=1,
        **values,  # type: ignore[arg-type]
    )
    return facade.run(lambda: facade.explore(request, bus or Bus())).report


def test_an_accepted_finding_is_shown_and_does_not_fail(tmp_path: Path) -> None:
    finding = explored(tmp_path).subjects[0].findings[0]
    accepted.add(tmp_path, finding.id, "the receiver deduplicates", REAL.today() + DAY)
    report = explored(tmp_path)
    assert [item.accepted for item in report.subjects[0].findings] == ["the receiver deduplicates"]
    assert (report.verdict, exit_code_of(report, "settings")) == ("ok", 0)


def test_expired_and_vanished_entries_are_told(tmp_path: Path) -> None:
    finding = explored(tmp_path).subjects[0].findings[0]
    accepted.add(tmp_path, finding.id, "until yesterday", REAL.today() - DAY)
    accepted.add(tmp_path, "ffffff", "long gone", REAL.today() + DAY)
    bus, seen = Bus(), list[Event]()
    bus.subscribe(seen.append)
    report = explored(tmp_path, bus=bus)
    texts = [event.text for event in seen if isinstance(event, Warned)]
    assert any(f"{finding.id} expired" in text for text in texts)
    assert any("ffffff was not found" in text for text in texts)
    assert (report.verdict, exit_code_of(report, "settings")) == ("broken", 1)


def test_what_failed_last_time_is_tried_first(tmp_path: Path) -> None:
    first = explored(tmp_path).subjects[0]
    bad = [strike.id for strike in first.strikes if strike.layer]
    again = explored(tmp_path, max_points=1).subjects[0]
    assert [strike.id for strike in again.strikes] == bad[:1]


def test_a_budget_caps_the_space_and_says_so(tmp_path: Path) -> None:
    coverage = explored(tmp_path, budget=0.001).subjects[0].coverage
    assert (coverage.strikes, coverage.exhausted, coverage.capped) == (1, False, "capped at 1 of 3")


def test_a_budget_bounds_the_runs_that_verify_too(tmp_path: Path) -> None:
    """The first cause is run again once in any case: what is red was seen twice."""
    body = "    for kind in ('done', 'paid', 'after'):\n        jobcheck.mark(kind, key)\n"
    first = explored(tmp_path, body).subjects[0]
    assert [finding.verified for finding in first.findings] == [{"reproduced": 3, "of": 3}]
    again = explored(tmp_path, body, budget=0.001).subjects[0]
    assert [finding.verified for finding in again.findings] == [{"reproduced": 2, "of": 2}]
    assert again.verdict == "broken"


def test_an_ignored_shape_is_no_point(tmp_path: Path) -> None:
    subject = explored(tmp_path, ignore=("mark after",)).subjects[0]
    assert [point.shape for point in subject.points] == ["mark done"]


@pytest.mark.parametrize("order", ["", "any"])
def test_a_fan_out_in_any_order_is_struck_on_both_sides_of_each_point(tmp_path: Path, order: str) -> None:
    body = (
        "    import pathlib\n    p = pathlib.Path('n'); n = int(p.read_text()) if p.exists() else 0\n"
        "    p.write_text(str(n + 1))\n"
        "    for kind in (['done', 'other'] if n % 2 else ['other', 'done']):\n        jobcheck.mark(kind, key)\n"
    )
    subject = explored(tmp_path, body, order=order).subjects[0]
    assert subject.problem == "", "each mark has a connection of its own: as a partial order the recordings agree"
    assert {point.ordered for point in subject.points} == {False}
    assert len(subject.strikes) == 2 * len(subject.points)
