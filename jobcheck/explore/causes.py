"""Bad verdicts to findings: what has one cause is one finding, and each is laid at handler, settings or transport."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..checks.judge import Broken
from ..history.ids import short_id
from ..history.records import NEVER_PASS, Point, Strike, Verdict
from .points import name
from .search import place_of

HANDLER, SETTINGS, TRANSPORT = "handler", "settings", "transport"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One strike with its judgement."""

    strike: Strike
    verdict: Verdict
    broken: tuple[Broken, ...] = ()
    layer: str = ""
    trial: str = ""
    seconds: float = 0.0
    redelivered: bool = False
    fired: bool = True
    notes: tuple[str, ...] = ()

    @property
    def bad(self) -> bool:
        """A contract was broken; unknown and the like are neither bad nor a pass."""
        return self.verdict is not Verdict.OK and self.verdict not in NEVER_PASS


@dataclass(slots=True)
class Cause:
    """Outcomes with one cause."""

    layer: str
    verdict: Verdict
    effects: list[str]
    outcomes: list[Outcome] = field(default_factory=list)

    def id(self, subject: str) -> str:
        return short_id(subject, self.layer, self.effects[0] if self.effects else "", str(self.verdict), "kill")


def causes(outcomes: Sequence[Outcome], points: Sequence[Point]) -> list[Cause]:
    """Groups by layer, verdict and effect; an effect that is only broken where another one is too joins it.

    The transport and the settings lose whole jobs, so all that is lost there has one cause.
    """
    groups: dict[tuple[str, str, str], Cause] = {}
    for outcome in outcomes:
        if not outcome.bad:
            continue
        for verdict, effect in _broken(outcome):
            key = (outcome.layer, str(verdict), effect if outcome.layer == HANDLER else "")
            cause = groups.setdefault(key, Cause(outcome.layer, verdict, []))
            if effect and effect not in cause.effects:
                cause.effects.append(effect)
            if outcome not in cause.outcomes:
                cause.outcomes.append(outcome)
    return _joined(list(groups.values()), points)


def _broken(outcome: Outcome) -> list[tuple[Verdict, str]]:
    if not outcome.broken:
        return [(outcome.verdict, "")]
    return [(item.verdict, item.effect) for item in outcome.broken]


def _joined(found: list[Cause], points: Sequence[Point]) -> list[Cause]:
    """Joins a cause whose strikes are all strikes of a larger one of the same layer and verdict into that one."""
    found.sort(key=lambda cause: -len(cause.outcomes))
    kept: list[Cause] = []
    for cause in found:
        ids = {outcome.strike.id for outcome in cause.outcomes}
        home = next(
            (
                other
                for other in kept
                if (other.layer, other.verdict) == (cause.layer, cause.verdict)
                and ids <= {outcome.strike.id for outcome in other.outcomes}
            ),
            None,
        )
        if home is None:
            kept.append(cause)
        else:
            home.effects.extend(effect for effect in cause.effects if effect not in home.effects)
    for cause in kept:
        cause.outcomes.sort(key=lambda outcome: place_of(outcome.strike, points))
    return kept


def gap(strike: Strike, points: Sequence[Point]) -> str:
    """Between which two messages the worker died."""
    place = place_of(strike, points)
    before = name(points[place - 1]) if 0 < place <= len(points) else ""
    after = name(points[place]) if 0 <= place < len(points) else ""
    if before and after:
        return f"after {before}, before {after}"
    return f"before {after}" if after else f"after {before}"
