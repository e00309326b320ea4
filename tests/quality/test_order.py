"""Jobs of one case that are delivered in another order than they were enqueued in: the last one must not win."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.checks.contracts import exactly_once
from jobcheck.events import Bus
from jobcheck.history.report import SubjectReport
from jobcheck.runner import facade
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.rig import load_rig
from jobcheck.runner.samples import sample

pytestmark = pytest.mark.timeout(300)
PATH = sample("apps", "invoices", "rig.py")
CONTRACTS = (exactly_once("status", key="row:status"),)
RIGS = ("shop_with_statuses", "shop_with_statuses_on_rabbitmq")


def explored(name: str, rig: str, reports: Path, faults: tuple[str, ...]) -> SubjectReport:
    reference = f"{PATH}:{rig}"
    request = Request(
        command="test",
        rig=load_rig(reference),
        rig_reference=reference,
        jobs=[Job(name, "queue", f"{PATH}:{name}", "", CONTRACTS)],
        reports=reports,
        faults=faults,
        seed=5,
    )
    (subject,) = facade.run(lambda: facade.explore(request, Bus())).report.subjects
    return subject


@pytest.mark.parametrize("rig", RIGS)
def test_an_older_status_over_a_newer_one_is_found_when_the_jobs_come_the_other_way_round(
    tmp_path: Path, rig: str
) -> None:
    subject = explored("told_blindly", rig, tmp_path, ("order",))
    assert subject.problem == ""
    assert [strike.fault for strike in subject.strikes] == ["order late 1"]
    (finding,) = subject.findings
    assert (finding.layer, finding.effect, finding.verdict) == ("handler", "status", "partial")
    assert finding.verified == {"reproduced": 3, "of": 3}
    assert "when the 1st job is delivered after those that follow it" in finding.title
    assert "where version <" in finding.advice
    told = [line.text for line in finding.story]
    assert "the jobs lie on the broker in another order than they were enqueued in: #2, #1" in told
    assert any("paid never, expected 1" in effect for effect in subject.strikes[0].effects)


@pytest.mark.parametrize("rig", RIGS)
def test_what_is_applied_by_version_stands_every_order(tmp_path: Path, rig: str) -> None:
    subject = explored("told_by_version", rig, tmp_path, ("order",))
    assert subject.problem == ""
    assert [strike.fault for strike in subject.strikes] == ["order late 1", "order late 2", "order reversed"]
    assert [strike.verdict for strike in subject.strikes] == ["ok", "ok", "ok"]
    assert subject.coverage.fired == 3
    assert subject.findings == ()


def test_a_case_of_one_job_has_no_order(tmp_path: Path) -> None:
    rig = load_rig(f"{PATH}:shop")
    request = Request(
        command="test",
        rig=rig,
        rig_reference=f"{PATH}:shop",
        jobs=[Job("idempotent", "queue", f"{PATH}:new_invoice_idempotent", "", (exactly_once("mail"),))],
        reports=tmp_path,
        faults=("order",),
        seed=5,
    )
    (subject,) = facade.run(lambda: facade.explore(request, Bus())).report.subjects
    assert subject.strikes == ()
