"""One remembered finding again: the strike that showed it, and, when that one is fixed, all others of the finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import JobcheckError
from ..faults.strikes import DEPLOY, RACE
from ..history.records import NEVER_PASS, Strike, Verdict
from ..history.report import FindingReport, Report, StrikeReport, SubjectReport
from ..store.failures import Failure, Failures
from .clocks import SPEED
from .expectations import read_contract
from .facade import Job, Request, Result
from .leases import REAL_CLOCKS, YES
from .remembering import AT, FOLLOW
from .rig import load_rig

FIXED, FAILED, ERROR = "FIXED", "FAILED", "ERROR"
_UNSURE = frozenset(map(str, NEVER_PASS))

CarryOut = Callable[[Request], Result]
"""Runs a request to its end; the face shows progress meanwhile."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How the replay of a finding ended."""

    failure: Failure
    outcome: str
    """FIXED, FAILED or ERROR."""
    reason: str
    """One sentence."""
    results: tuple[Result, ...] = ()
    subject: SubjectReport | None = None
    """The exploration that shows the finding again, when it FAILED."""
    finding: FindingReport | None = None


def replay(project: Path, failure_id: str, carry_out: CarryOut, *, times: int, reports: Path) -> Replay:
    """Runs the finding's first strike again, `times` times; when none fails, its other strikes once each.

    A fixed finding is forgotten. Raises UsageError for an id that is not remembered, naming the closest; what goes
    wrong while the job runs is an ERROR.
    """
    failures = Failures(project)
    failure = failures.lookup(failure_id)
    results: list[Result] = []
    try:
        first = _request(project, failure, failure.strikes[:1], verify=times, reports=reports)
        results.append(carry_out(first))
        if (ended := _ended(failure, results, times)) is not None:
            return ended
        rest = [failure.strikes[0]] * (times - 1) + list(failure.strikes[1:])
        if rest:
            results.append(carry_out(_request(project, failure, rest, verify=1, reports=reports)))
            if (ended := _ended(failure, results, len(rest))) is not None:
                return ended
    except JobcheckError as error:
        return Replay(failure, ERROR, str(error), tuple(results))
    failures.forget(failure.id)
    more = len(failure.strikes) - 1
    said = f"{_runs(times)} of its strike" + (f" and one of each of the {more} others" if more else "")
    return Replay(failure, FIXED, f"{said} held every contract; it is forgotten", tuple(results))


def _request(project: Path, failure: Failure, strikes: Sequence[Strike], *, verify: int, reports: Path) -> Request:
    subject = failure.subject.partition("#")[0].rpartition("/")[0]
    said = dict(word.split("=", 1) for word in failure.options if "=" in word)
    job = Job(
        subject=subject,
        mode=failure.mode,
        function=failure.function,
        handler=failure.handler,
        contracts=tuple(read_contract(text) for text in failure.contracts),
        assume=next((word for word in failure.options if "=" not in word), ""),
        follow=FOLLOW in failure.options,
        deploy=said.get(DEPLOY, ""),
        at=said.get(AT, ""),
    )
    return Request(
        command=f"jobcheck replay {failure.id}",
        rig=load_rig(failure.rig, base=project),
        rig_reference=failure.rig,
        jobs=[_only(job, strike) for strike in strikes],
        name=f"replay-{failure.id}",
        seed=failure.seed,
        reports=reports,
        node=failure.node,
        speed=float(said.get(SPEED, 1)),
        real_clocks=said.get(REAL_CLOCKS) == YES,
        lanes=1,
        verify=verify,
        finish=lambda report: _named(report, failure),
    )


def _named(report: Report, failure: Failure) -> Report:
    """The report with the finding under its own id: one strike alone may group what it broke in another way."""

    def renamed(subject: SubjectReport) -> SubjectReport:
        if not subject.findings:
            return subject
        mine = replace(subject.findings[0], id=failure.id, replay=f"jobcheck replay {failure.id}")
        return replace(subject, findings=(mine, *subject.findings[1:]))

    return replace(report, subjects=tuple(renamed(subject) for subject in report.subjects))


def _ended(failure: Failure, results: Sequence[Result], runs: int) -> Replay | None:
    """FAILED when a strike was bad, ERROR when one says nothing, None when all were good."""
    subjects = results[-1].report.subjects
    strikes = [strike for subject in subjects for strike in subject.strikes]
    for subject in subjects:
        finding = next(iter(subject.findings), None)
        if finding is not None:
            text = _reproduced(finding, runs, [strike for strike in strikes if _bad(strike)])
            return Replay(failure, FAILED, text, tuple(results), subject, finding)
    for subject in subjects:
        if subject.problem or not subject.strikes or any(strike.verdict in _UNSURE for strike in subject.strikes):
            reason = subject.problem or "the strike did not show anything"
            return Replay(failure, ERROR, reason, tuple(results), subject)
    return None


def _bad(strike: StrikeReport) -> bool:
    return strike.verdict not in _UNSURE and strike.verdict != Verdict.OK


def _reproduced(finding: FindingReport, runs: int, bad: Sequence[StrikeReport]) -> str:
    what = "; ".join(bad[0].effects) if bad and bad[0].effects else finding.title
    of = finding.verified.get("of", 0)
    if of > 1:
        return f"{what} (reproduced {finding.verified.get('reproduced', 0)} of {of})"
    return f"{what} (in {len(bad)} of {_runs(runs)})"


def _runs(count: int) -> str:
    return f"{count} run" if count == 1 else f"{count} runs"


def _only(job: Job, strike: Strike) -> Job:
    """The job with this strike alone. A race is named by its schedule."""
    return replace(job, schedule=strike.when) if strike.fault == RACE else replace(job, only=strike.id)
