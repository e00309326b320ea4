"""The planted bugs of the sample shop: each is found at its exact points, in both modes, and the right jobs are clean.

One run of the demo serves all tests of this file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.events import Bus
from jobcheck.history.report import FindingReport, Report, SubjectReport
from jobcheck.runner import facade
from jobcheck.runner.demo import PLANTED, TRANSPORT, bad_points, demo_request

MODES = ("handler", "queue")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    request = demo_request(seed=7)
    request.reports = tmp_path_factory.mktemp("reports")
    return facade.run(lambda: facade.explore(request, Bus())).report


def subject(report: Report, name: str, mode: str) -> SubjectReport:
    return next(item for item in report.subjects if (item.name, item.mode) == (name, mode))


def findings(item: SubjectReport, layer: str) -> list[FindingReport]:
    return [finding for finding in item.findings if finding.layer == layer]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("variant", PLANTED)
def test_the_bad_kill_points_of_a_variant_are_those_that_are_planted(report: Report, variant: str, mode: str) -> None:
    item = subject(report, variant, mode)
    assert item.problem == ""
    assert bad_points(item, "handler") == PLANTED[variant]
    assert bad_points(item, "transport") == (TRANSPORT if mode == "queue" else 0)
    assert bad_points(item, "settings") == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("variant", PLANTED)
def test_the_whole_space_is_covered_by_n_plus_one_kills_that_all_fired(report: Report, variant: str, mode: str) -> None:
    coverage = subject(report, variant, mode).coverage
    points = 3 if mode == "handler" else 6
    assert (coverage.points, coverage.strikes, coverage.fired) == (points, points + 1, points + 1)
    assert coverage.exhausted


def test_the_demo_is_ok_when_it_found_exactly_what_is_planted(report: Report) -> None:
    assert report.verdict == "ok"


@pytest.mark.parametrize("mode", MODES)
def test_three_bad_strikes_of_one_cause_are_one_finding(report: Report, mode: str) -> None:
    found = findings(subject(report, "naive", mode), "handler")
    assert [(finding.effect, finding.verdict, len(finding.strikes)) for finding in found] == [
        ("payments POST /charges", "duplicated", 3)
    ]


@pytest.mark.parametrize("mode", MODES)
def test_a_second_charge_and_a_lost_mail_are_two_findings(report: Report, mode: str) -> None:
    found = findings(subject(report, "marker_after", mode), "handler")
    assert {(finding.effect, finding.verdict) for finding in found} == {
        ("payments POST /charges", "duplicated"),
        ("mail", "lost"),
    }


def test_a_finding_names_the_gap_the_line_and_the_way_back(report: Report) -> None:
    finding = findings(subject(report, "naive", "queue"), "handler")[0]
    assert finding.where == "after payments POST /charges, before db COMMIT"
    assert finding.code.startswith("shop/providers.py:")
    assert finding.verified == {"reproduced": 3, "of": 3}
    assert "idempotency key" in finding.advice
    assert finding.replay == f"jobcheck replay {finding.id}"


def test_the_story_shows_the_kill_the_rewind_and_both_charges(report: Report) -> None:
    story = findings(subject(report, "naive", "queue"), "handler")[0].story
    kinds = [line.kind for line in story]
    assert kinds.count("strike") == 1
    assert any("ZADD unacked_index" in line.text for line in story if line.kind == "recovery")
    charges = [line for line in story if line.kind == "effect" and line.upstream == "payments"]
    assert len(charges) == 2
    strike = kinds.index("strike")
    assert story.index(charges[0]) < strike < story.index(charges[1])


def test_what_the_transport_loses_is_laid_at_the_transport_with_one_cause(report: Report) -> None:
    found = findings(subject(report, "locked", "queue"), "transport")
    assert [(finding.verdict, len(finding.strikes)) for finding in found] == [("lost", TRANSPORT)]
    assert "RabbitMQ" in found[0].advice


def test_ids_are_the_same_on_another_day_and_differ_between_subjects(report: Report) -> None:
    ids = [finding.id for item in report.subjects for finding in item.findings]
    assert len(set(ids)) == len(ids)


def test_the_run_keeps_its_journal_and_no_process(report: Report, tmp_path: Path) -> None:
    assert report.run
    assert report.environment["broker"].startswith("redis ")
