"""Four ways to store an invoice and enqueue its job: what each leaves behind, wherever it dies or loses an answer.

One run on each broker serves all tests of this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from jobcheck.checks.contracts import exactly_once
from jobcheck.errors import UsageError
from jobcheck.events import Bus
from jobcheck.history.report import Report, StrikeReport, SubjectReport
from jobcheck.report.text import finding_words
from jobcheck.runner import facade
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.rig import load_rig
from jobcheck.runner.samples import sample

JOB = "job shop.jobs.render_invoice_pdf"
RIGS = {"redis": "shop_with_relay", "rabbitmq": "shop_with_relay_on_rabbitmq"}
ALL = ("commit_then_push", "push_then_commit", "outbox", "outbox_and_relay")
BAD = {
    "commit_then_push": ("lost", "after db COMMIT, before broker {push}"),
    "push_then_commit": ("unexpected", "after broker {push}, before db COMMIT"),
}
PUSH = {"redis": "LPUSH celery", "rabbitmq": "basic.publish celery"}


def run(rig: str, jobs: list[Job], reports: Path, faults: tuple[str, ...] = ("kill",)) -> Report:
    path = sample("apps", "invoices", "rig.py")
    request = Request(
        command="test",
        rig=load_rig(f"{path}:{rig}"),
        rig_reference=f"{path}:{rig}",
        jobs=jobs,
        reports=reports,
        seed=7,
        faults=faults,
    )
    return facade.run(lambda: facade.explore(request, Bus())).report


def producers(*names: str) -> list[Job]:
    path = sample("apps", "invoices", "rig.py")
    return [Job(name, "producer", f"{path}:create_{name}") for name in names]


Subjects = Mapping[str, SubjectReport]


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Subjects]:
    """Subjects by broker: on RabbitMQ those that are wrong."""
    found = {}
    for broker, names in (("redis", ALL), ("rabbitmq", tuple(BAD))):
        report = run(RIGS[broker], producers(*names), tmp_path_factory.mktemp("reports"))
        found[broker] = {subject.name: subject for subject in report.subjects}
    return found


@pytest.fixture(scope="module")
def killed(on: Mapping[str, Subjects]) -> Subjects:
    return on["redis"]


@pytest.fixture(scope="module")
def reset(tmp_path_factory: pytest.TempPathFactory) -> Subjects:
    """Lost requests, lost replies and error replies, with a strict contract for the job."""
    jobs = [replace(job, contracts=(exactly_once(JOB),)) for job in producers("commit_then_push", "outbox_and_relay")]
    report = run(RIGS["redis"], jobs, tmp_path_factory.mktemp("reports"), ("reset",))
    return {subject.name: subject for subject in report.subjects}


@pytest.mark.parametrize(
    ("broker", "name"), [*(("redis", name) for name in ALL), *(("rabbitmq", name) for name in BAD)]
)
def test_the_row_is_there_if_and_only_if_the_job_is(on: Mapping[str, Subjects], broker: str, name: str) -> None:
    subject = on[broker][name]
    assert subject.problem == ""
    assert subject.coverage.exhausted
    assert subject.coverage.fired == subject.coverage.strikes == subject.coverage.points + 1
    bad = [strike.verdict for strike in subject.strikes if strike.verdict != "ok"]
    assert bad == ([BAD[name][0]] if name in BAD else [])


@pytest.mark.parametrize("broker", RIGS)
@pytest.mark.parametrize("name", BAD)
def test_a_finding_says_what_is_left_and_what_would_mend_it(on: Mapping[str, Subjects], broker: str, name: str) -> None:
    (finding,) = on[broker][name].findings
    verdict, where = BAD[name]
    assert (finding.effect, finding.verdict, finding.where) == (JOB, verdict, where.format(push=PUSH[broker]))
    assert "when the producer dies" in finding.title
    assert "outbox" in finding.advice
    assert finding.verified == {"reproduced": 3, "of": 3}
    assert finding.code.startswith("shop/")
    assert finding.story[-1].text == f"what is left: {'db INSERT invoices' if verdict == 'lost' else JOB}"


def test_the_relay_carries_out_what_a_dead_producer_left(killed: Subjects) -> None:
    outbox = killed["outbox"]
    assert outbox.effects[JOB] == 1
    assert outbox.effects["db INSERT outbox"] == 1
    assert finding_words(outbox.findings) == "none"


def test_that_a_relay_may_enqueue_twice_is_told_and_is_no_breach(killed: Subjects) -> None:
    assert any(note.startswith(f"{JOB} may be enqueued twice") for note in killed["outbox_and_relay"].notes)
    assert not any("twice" in note for note in killed["commit_then_push"].notes)


def test_contracts_are_those_of_a_row_and_its_job(killed: Subjects) -> None:
    assert killed["commit_then_push"].contracts == ("at least once: db INSERT invoices", f"at least once: {JOB}")
    assert killed["outbox"].uncontracted == ()


def lost_reply(subject: SubjectReport, shape: str) -> StrikeReport:
    point = next(point for point in subject.points if point.shape == shape)
    return next(strike for strike in subject.strikes if strike.point == point.id and strike.fault == "lose-reply")


def test_redis_py_repeats_an_lpush_whose_reply_was_lost(reset: Subjects) -> None:
    """By name, tap-notes 6.4: the caller sees success, and the queue holds the job twice."""
    subject = reset["commit_then_push"]
    strike = lost_reply(subject, "redis LPUSH celery")
    assert strike.verdict == "duplicated"
    assert strike.effects == (f"{JOB}: 2 times, expected 1",)
    assert [finding.verdict for finding in subject.findings if strike.id in finding.strikes] == ["duplicated"]


def test_a_commit_whose_reply_was_lost_leaves_the_row_and_no_job(reset: Subjects) -> None:
    """The caller is told of an error, and the row is there."""
    strike = lost_reply(reset["commit_then_push"], "postgres COMMIT")
    assert strike.verdict == "lost"


def test_with_an_outbox_no_lost_reply_loses_the_job(reset: Subjects) -> None:
    verdicts = {strike.verdict for strike in reset["outbox_and_relay"].strikes}
    assert verdicts <= {"ok", "duplicated"}


def test_a_function_that_enqueues_nothing_is_no_producer(tmp_path: Path) -> None:
    path = sample("apps", "invoices", "rig.py")
    with pytest.raises(UsageError, match="the broker holds no job of it"):
        run("shop_with_relay", [Job("none", "producer", f"{path}:invoice_row")], tmp_path)
