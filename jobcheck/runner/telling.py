"""What an exploration has seen, as its report tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..explore.causes import Outcome
from ..explore.races import RACE, parse
from ..faults.strikes import SURVIVED, kind_of
from ..history.records import Point, Strike, TrialRecord
from ..history.report import FindingReport, PointReport, StrikeReport


def unconfirmed(findings: Sequence[FindingReport]) -> list[tuple[str, list[str]]]:
    """Findings that are no verdict yet: why not, and their ids."""
    flaky = [item.id for item in findings if item.verified and not item.confirmed]
    left = [item.id for item in findings if not item.verified]
    sentences = (
        ("seen once and not again, so it is not known what it was", flaky),
        ("seen, and not run again because the run was at its end", left),
    )
    return [(sentence, ids) for sentence, ids in sentences if ids]


def same_cause(one: FindingReport, other: FindingReport) -> bool:
    """Whether two findings say the same of the same effect."""
    return (one.layer, one.effect, one.verdict) == (other.layer, other.effect, other.verdict)


def joined(finding: FindingReport, raced: FindingReport) -> FindingReport:
    """A finding that a race shows too."""
    why = f"{finding.why}; so do two workers that have the job at once"
    return replace(finding, strikes=(*finding.strikes, *raced.strikes), why=why)


def spoilt(trial: TrialRecord) -> str:
    """Why nothing can be learnt from a clean run; empty when it is fine."""
    if trial.problems:
        return "; ".join(trial.problems)
    return "" if trial.settled else f"the clean run did not end: {trial.beyond or trial.unsettled}"


def work_of(trial: TrialRecord) -> float:
    """Seconds of the job's own time that its longest job took, from when it was handed out to its last message;
    without a queue, all of its messages."""
    spans: dict[str, list[float]] = {}
    for op in trial.operations:
        if op.role == "delivery" or op.job in spans or not trial.deliveries:
            spans.setdefault(op.job if trial.deliveries else "", []).append(op.at)
    return max((max(times) - min(times) for times in spans.values()), default=0.0)


def point_report(point: Point) -> PointReport:
    """A point without what only the search needs."""
    return PointReport(
        point.id,
        point.upstream,
        point.shape,
        point.nth,
        point.code,
        point.summary,
        point.broker,
        point.side,
        point.ordered,
        point.job,
    )


def strike_report(outcome: Outcome) -> StrikeReport:
    """A strike with its judgement."""
    return StrikeReport(
        id=outcome.strike.id,
        point=outcome.strike.point,
        fault=outcome.strike.fault,
        when=parse(outcome.strike.when).words if outcome.strike.fault == RACE else outcome.strike.when,
        fired=outcome.fired,
        verdict=str(outcome.verdict),
        seconds=outcome.seconds,
        trial=outcome.trial,
        effects=tuple(item.phrase for item in outcome.broken),
        layer=outcome.layer,
        redelivered=outcome.redelivered,
    )


def survived(strike: Strike, point: Point | None) -> bool:
    """Whether the worker lived through it with the job in its hands: it settled the job itself, whatever was missing. A
    message that is no point (`None`) is a read of the job's own.

    At the broker's own messages the job may have been in nobody's hands.
    """
    return kind_of(strike.fault) in SURVIVED and (point is None or not point.broker)
