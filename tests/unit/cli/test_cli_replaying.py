"""FIXED, FAILED and ERROR: what the outcome of a replay rests on. The runs themselves are made by hand here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobcheck.errors import UsageError, WorkerError
from jobcheck.history.records import Point, Strike
from jobcheck.history.report import FindingReport, Report, StrikeReport, SubjectReport
from jobcheck.runner.facade import Request, Result
from jobcheck.runner.replaying import ERROR, FAILED, FIXED, Replay, replay
from jobcheck.store.failures import Failure, Failures
from jobcheck.store.folder import RunFolder

RIG = Path(__file__).parents[2] / "plugin" / "tiny" / "rig.py"
STRIKES = tuple(Strike(f"5{at}", f"9{at}") for at in range(3))
FAILURE = Failure(
    id="c07e11",
    subject="naive [at-least-once]/celery-redis",
    mode="queue",
    rig=f"{RIG}:tiny",
    function=f"{RIG}:put_naive",
    points=tuple(Point(strike.point, "store", "redis SET", 1) for strike in STRIKES),
    strikes=STRIKES,
    contracts=('exactly_once("mark charge")', "at least once: mark mail"),
    options=("at-least-once", "speed=100", "real_clocks=yes"),
    node="tests/test_jobs.py::test_naive",
    seed=7,
)


@pytest.fixture
def replayed(tmp_path: Path) -> Callable[..., tuple[Replay, list[Request]]]:
    """`replayed(verdict_of)`: replays the finding; `verdict_of(run, strike)` says how a strike of the n-th run ends."""
    Failures(tmp_path).remember([FAILURE])

    def go(verdict_of: Callable[[int, str], str], times: int = 3) -> tuple[Replay, list[Request]]:
        requests: list[Request] = []

        def carry_out(request: Request) -> Result:
            requests.append(request)
            subjects = [_subject(job.only, verdict_of(len(requests), job.only), request.verify) for job in request.jobs]
            report = request.finish(Report(request.command, request.seed, "ok", subjects=tuple(subjects)))
            return Result(report, RunFolder.create(request.reports, request.name))

        return replay(tmp_path, "c07", carry_out, times=times, reports=tmp_path / "reports"), requests

    return go


def _subject(strike: str, verdict: str, verify: int) -> SubjectReport:
    values: dict[str, Any] = {"name": "naive", "system": "celery-redis", "mode": "queue"}
    if verdict.startswith("problem"):
        return SubjectReport(**values, problem=verdict)
    bad = verdict == "duplicated"
    phrases = ("mark charge: 2 times, expected 1",) if bad else ()
    finding = FindingReport(
        "f1f1f1", "handler", "mark charge", verdict, (strike,), verified={"reproduced": 2, "of": verify}
    )
    return SubjectReport(
        **values,
        strikes=(StrikeReport(strike, "p", "kill", "before", True, verdict, effects=phrases),),
        findings=(finding,) if bad else (),
    )


def test_a_finding_that_shows_again_has_failed_and_stays(replayed, tmp_path):
    done, requests = replayed(lambda run, strike: "duplicated")
    assert (done.outcome, done.reason) == (FAILED, "mark charge: 2 times, expected 1 (reproduced 2 of 3)")
    assert done.finding is not None
    assert (done.finding.id, done.finding.replay) == ("c07e11", "jobcheck replay c07e11")
    assert [(job.only, request.verify) for request in requests for job in request.jobs] == [("50", 3)]
    assert Failures(tmp_path).lookup("c07e11") == FAILURE


def test_the_strike_is_run_as_it_was_found(replayed):
    _, (request, *_) = replayed(lambda run, strike: "duplicated")
    (job,) = request.jobs
    assert (job.subject, job.mode, job.assume) == ("naive [at-least-once]", "queue", "at-least-once")
    assert [contract.text for contract in job.contracts] == ["exactly once: mark charge", "at least once: mark mail"]
    assert (request.seed, request.node, request.rig.name) == (7, "tests/test_jobs.py::test_naive", "tiny")
    assert (request.speed, request.real_clocks) == (100.0, True)
    assert request.project is None


def test_a_finding_is_fixed_when_all_its_strikes_hold_and_is_forgotten(replayed, tmp_path):
    done, requests = replayed(lambda run, strike: "ok")
    assert done.outcome == FIXED
    assert done.reason.startswith("3 runs of its strike and one of each of the 2 others held")
    assert [[job.only for job in request.jobs] for request in requests] == [["50"], ["50", "50", "51", "52"]]
    assert Failures(tmp_path).all() == []


def test_a_finding_is_not_fixed_while_another_of_its_strikes_fails(replayed, tmp_path):
    done, _ = replayed(lambda run, strike: "duplicated" if strike == "52" else "ok", times=1)
    assert (done.outcome, done.reason) == (FAILED, "mark charge: 2 times, expected 1 (in 1 of 2 runs)")
    assert Failures(tmp_path).all() == [FAILURE]


def test_a_flaky_finding_is_not_fixed(replayed):
    done, _ = replayed(lambda run, strike: "duplicated" if run == 2 else "ok")
    assert done.outcome == FAILED


@pytest.mark.parametrize("verdict", ["not exercised", "diverged", "unknown", "problem: two clean runs differ"])
def test_what_says_nothing_is_an_error_and_forgets_nothing(replayed, tmp_path, verdict):
    done, _ = replayed(lambda run, strike: verdict)
    assert done.outcome == ERROR
    assert done.reason
    assert Failures(tmp_path).all() == [FAILURE]


@pytest.mark.parametrize("error", [WorkerError("the worker died"), UsageError("the job has no strike 50 any more")])
def test_a_run_that_breaks_is_an_error_with_its_reason(replayed, error):
    def breaks(run: int, strike: str) -> str:
        raise error

    done, _ = replayed(breaks)
    assert (done.outcome, done.reason) == (ERROR, error.message)


def test_an_id_that_is_not_known_names_the_closest(tmp_path, replayed):
    with pytest.raises(UsageError, match="no finding 'c07f11'; the closest is c07e11"):
        replay(tmp_path, "c07f11", pytest.fail, times=1, reports=tmp_path)  # type: ignore[arg-type]
