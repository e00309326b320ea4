"""A cause as a finding: its title, its line of code, its story, and what would mend it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..explore import points as pointing
from ..explore.advice import Evidence, advice, why
from ..explore.causes import HANDLER, TRANSPORT, Cause, occasion, where
from ..explore.search import place_of
from ..explore.story import story
from ..history.records import NEXT_JOB, Point, TrialRecord, Verdict
from ..history.report import FindingReport
from ..services.spec import Provider
from .rig import Rig


@dataclass(frozen=True, slots=True)
class Told:
    """What a finding is told from."""

    subject: str
    points: Sequence[Point]
    struck: Point | None
    """The message that the first strike of the cause hit."""
    order: Sequence[str]
    """Names of effects, as the clean run had them."""
    trial: TrialRecord
    recording: TrialRecord
    honours_keys: bool
    mend: str = ""
    """What mends it where the handler cannot."""


def honours_keys(rig: Rig, cause: Cause) -> bool:
    """Whether the receiver of the first effect recognises repeated calls."""
    effect = cause.effects[0] if cause.effects else ""
    spec = rig.upstreams.get(effect.split(" ", 1)[0])
    return isinstance(spec, Provider) and bool(spec.idempotency)


def finding(cause: Cause, told: Told, verified: dict[str, int], replay: Callable[[str], str]) -> FindingReport:
    """The finding as reports show it."""
    strike, points = cause.outcomes[0].strike, told.points
    number = cause.id(told.subject)
    place = place_of(strike, points)
    guilty = points[min(max(place - 1, 0), len(points) - 1)]
    return FindingReport(
        id=number,
        layer=cause.layer,
        effect=cause.effects[0] if cause.effects else "",
        verdict=str(cause.verdict),
        strikes=tuple(outcome.strike.id for outcome in cause.outcomes),
        title=_title(cause, told),
        code="" if cause.layer == TRANSPORT else _code(cause, points, guilty),
        where=where(strike, points, told.struck),
        verified=verified,
        why=why(cause),
        advice=(NEXT_JOB not in cause.effects and told.mend)
        or advice(cause, points, Evidence(told.trial.effects, told.honours_keys)),
        replay=replay(number),
        clean=story(told.recording),
        story=story(told.trial),
    )


def _code(cause: Cause, points: Sequence[Point], guilty: Point) -> str:
    """The line that caused the effect, else the last one that was reached before the strike."""
    name = cause.effects[0] if cause.effects else ""
    for point in points:
        if point.code and name and pointing.bare_name(point).startswith(name):
            return point.code
    return guilty.code


def _title(cause: Cause, told: Told) -> str:
    order = list(told.order)
    effects = sorted(cause.effects, key=lambda name: order.index(name) if name in order else len(order))
    what = " and ".join(effects) or "the job"
    many = len(effects) > 1
    when = occasion(cause.outcomes[0].strike, told.points, told.struck)
    if cause.layer != HANDLER:
        chord = told.struck is not None and told.struck.role.startswith("chord")
        lost = NEXT_JOB if cause.effects == [NEXT_JOB] else "the body of the chord" if chord else "the job"
        return f"{lost} is {cause.verdict} {when}"
    verbs = {
        Verdict.DUPLICATED: "happen again" if many else "happens again",
        Verdict.LOST: "are lost" if many else "is lost",
    }
    verb = verbs.get(cause.verdict, f"{'are' if many else 'is'} {cause.verdict}")
    return f"{what} {verb} {when}"
