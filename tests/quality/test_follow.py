"""Chains: the job that is named and all that it causes, each struck at its own points, on both brokers.

What is wrong where was worked out by hand from `shop/chains.py`; what a chord does was measured with Celery 5.7.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.checks.contracts import Contract, at_least_once, exactly_once
from jobcheck.events import Bus
from jobcheck.explore.causes import SETTINGS, TRANSPORT
from jobcheck.history.report import StrikeReport, SubjectReport
from jobcheck.runner import facade
from jobcheck.runner.asked import queue_job
from jobcheck.runner.facade import Request
from jobcheck.runner.replaying import FAILED, replay
from jobcheck.runner.rig import load_rig
from jobcheck.runner.samples import sample

pytestmark = pytest.mark.timeout(300)
PATH = sample("apps", "invoices", "rig.py")
CHARGED = exactly_once("payments POST /charges")
CHECK, PAY = "shop.chains.check_invoice", "shop.chains.charge_without_key"
RABBITMQ = "shop_on_rabbitmq"


def explored(
    functions: dict[str, Contract],
    rig: str,
    folder: Path,
    *,
    faults: tuple[str, ...] = ("kill",),
    project: Path | None = None,
    most: int = 0,
) -> dict[str, SubjectReport]:
    """The reports of these jobs by the names of the functions that enqueue them."""
    reference = f"{PATH}:{rig}"
    loaded = load_rig(reference)
    request = Request(
        command="test",
        rig=loaded,
        rig_reference=reference,
        jobs=[queue_job(loaded, function, (contract,), follow=True) for function, contract in functions.items()],
        reports=folder,
        project=project,
        faults=faults,
        lanes=1,
        verify=1,
        seed=5,
        max_points=most,
    )
    subjects = facade.run(lambda: facade.explore(request, Bus())).report.subjects
    return dict(zip(functions, subjects, strict=True))


def steps(subject: SubjectReport, job: str) -> list[str]:
    """The points of one job, without the protocol."""
    return [point.shape.partition(" ")[2] for point in subject.points if point.job == job]


def bad(subject: SubjectReport) -> set[str]:
    """Job and shape of what was struck with a bad end that is not the transport's."""
    points = subject.struck
    found = set()
    for strike in subject.strikes:
        if strike.verdict != "ok" and strike.layer != TRANSPORT:
            point = points[strike.point]
            found.add(f"{point.job.rpartition('.')[2]}: {strike.fault} {strike.when} {point.shape.split()[1]}")
    return found


def unfired(subject: SubjectReport) -> list[StrikeReport]:
    return [strike for strike in subject.strikes if not strike.fired]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def rabbitmq(project: Path) -> dict[str, SubjectReport]:
    jobs = {"settle_wrong": CHARGED, "settle_right": CHARGED, "remind": at_least_once("mail")}
    return explored(jobs, RABBITMQ, project / "reports", project=project)


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SubjectReport]:
    jobs = {"settle_right": CHARGED, "print_book": CHARGED}
    return explored(jobs, "shop_with_results", tmp_path_factory.mktemp("redis"))


@pytest.fixture
def wrong(rabbitmq: dict[str, SubjectReport]) -> SubjectReport:
    return rabbitmq["settle_wrong"]


def test_the_points_are_those_of_both_jobs_under_their_names(wrong: SubjectReport) -> None:
    assert list(dict.fromkeys(point.job for point in wrong.points)) == [CHECK, PAY]
    assert steps(wrong, CHECK) == ["basic.deliver celery", "COMMIT", "basic.publish celery", "basic.ack"]
    assert steps(wrong, PAY) == ["basic.deliver celery", "POST /charges", "COMMIT", "basic.ack"]
    assert len(wrong.strikes) == 9
    assert not unfired(wrong)


def test_a_wrong_second_step_is_found_where_it_is_wrong(wrong: SubjectReport) -> None:
    """The first job is right, but a crash before its ack runs the second one twice: that is one cause with its own."""
    assert bad(wrong) == {
        "check_invoice: kill before basic.ack",
        "charge_without_key: kill before COMMIT",
        "charge_without_key: kill before basic.ack",
    }
    (finding,) = wrong.findings
    assert (finding.layer, finding.verdict, finding.effect) == ("handler", "duplicated", "payments POST /charges")
    assert f"{CHECK}: broker basic.publish" in finding.title
    assert finding.code.startswith("shop/providers.py:")
    codes = {point.shape: point.code for point in wrong.points if point.job == PAY}
    assert codes["postgres COMMIT"].startswith("shop/chains.py:")


def test_a_finding_in_a_followed_job_is_replayed(wrong: SubjectReport, project: Path) -> None:
    again = replay(
        project,
        wrong.findings[0].id,
        lambda request: facade.run(lambda: facade.explore(request, Bus())),
        times=1,
        reports=project / "reports",
    )
    assert again.outcome == FAILED, again.reason


def test_a_right_chain_is_green_with_every_point_struck(
    rabbitmq: dict[str, SubjectReport], redis: dict[str, SubjectReport]
) -> None:
    """The parent enqueues its child twice where it dies in between; the child bears it, and that decides."""
    for subject in (rabbitmq["settle_right"], redis["settle_right"]):
        assert subject.verdict == "ok"
        assert bad(subject) == set()
        assert not unfired(subject)
        assert len(subject.strikes) == len(subject.points) + 1
    assert not rabbitmq["settle_right"].findings
    assert [finding.layer for finding in redis["settle_right"].findings] == [TRANSPORT]


def test_a_followed_job_that_fails_visibly_after_a_reset_is_told_as_that(tmp_path: Path) -> None:
    """One strike of each kind at each shape, as `--max-points` chooses them. Nobody confirms what Celery publishes, so
    the second job is gone with its message, and a setting would have told the first one."""
    subject = explored({"settle_right": CHARGED}, RABBITMQ, tmp_path, faults=("reset",), most=16)["settle_right"]
    assert bad(subject) == {
        "check_invoice: lose-request before basic.publish",
        "check_invoice: error-reply channel-close before basic.publish",
    }
    assert {finding.layer for finding in subject.findings} == {SETTINGS}
    assert all("confirm_publish" in finding.advice for finding in subject.findings)
    assert not unfired(subject)
    (note,) = [note for note in subject.notes if "was left failed" in note]
    assert "error-reply" in note
    struck = {subject.struck[strike.point].job for strike in subject.strikes}
    assert struck == {CHECK, "shop.chains.charge_with_key"}


def test_a_job_that_comes_later_is_waited_for_and_struck(rabbitmq: dict[str, SubjectReport]) -> None:
    subject = rabbitmq["remind"]
    assert subject.verdict == "ok"
    assert steps(subject, "shop.chains.remind_customer") == ["basic.deliver celery", "DATA", "basic.ack"]
    assert bad(subject) == set()
    assert not unfired(subject)


PARTS = ["shop.chains.print_page", "shop.chains.print_page #3"]
"""The second part does what the first does; the third one is the last, which starts the body."""


def test_a_chord_that_dies_when_it_has_counted_loses_its_body_where_it_is_redelivered_at_once(tmp_path: Path) -> None:
    """Measured: Celery 5.7's claim on the body lives for 6 s, and RabbitMQ gives the part out again at once."""
    subject = explored({"print_book": CHARGED}, "shop_with_results_on_rabbitmq", tmp_path)["print_book"]
    jobs = dict.fromkeys(point.job for point in subject.points)
    assert list(jobs) == ["shop.chains.print_book", *PARTS, "shop.chains.bind_book"]
    lost = [strike for strike in subject.strikes if strike.verdict != "ok"]
    assert {(strike.verdict, strike.layer) for strike in lost} == {("lost", TRANSPORT)}
    assert {subject.struck[strike.point].job for strike in lost} == {PARTS[1]}
    (finding,) = subject.findings
    assert finding.title.startswith("the body of the chord is lost when the worker dies after")
    assert "results chord count" in finding.title
    assert any("is struck for 1 more of its task" in note for note in subject.notes)


def test_a_chord_is_recovered_where_the_claim_is_older_than_the_lease(redis: dict[str, SubjectReport]) -> None:
    """On Redis a part is given out again after the lease of an hour: the claim of 6 s is gone by then."""
    subject = redis["print_book"]
    assert subject.verdict == "ok"
    counters = [point.id for point in subject.points if "celery-taskset-meta" in point.shape]
    struck = [strike for strike in subject.strikes if strike.point in counters]
    assert struck
    assert {strike.verdict for strike in struck} == {"ok"}
