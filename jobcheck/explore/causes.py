"""Bad verdicts to findings: what has one cause is one finding, and each is laid at handler, settings or transport."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..checks.judge import Broken
from ..faults.strikes import FAMILIES, detail_of, family_of, kind_of, told
from ..history.ids import short_id
from ..history.records import NEVER_PASS, Point, Strike, Verdict
from .points import bare_name, name
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
        fault = family_of(self.outcomes[0].strike.fault) if self.outcomes else "kill"
        return short_id(subject, self.layer, self.effects[0] if self.effects else "", str(self.verdict), fault)

    @property
    def faults(self) -> list[str]:
        """The families of its strikes, the one that names it first."""
        return list(dict.fromkeys(family_of(outcome.strike.fault) for outcome in self.outcomes))


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
        cause.outcomes.sort(key=lambda outcome: (_rank(outcome.strike), place_of(outcome.strike, points)))
    return kept


def _rank(strike: Strike) -> int:
    """Kills name a cause before all others: they need no error handling to be understood."""
    families = list(FAMILIES)
    family = family_of(strike.fault)
    return families.index(family) if family in families else len(families)


CALLS_BACK = {
    "twice": "calls back twice",
    "early": "calls back before it answers",
    "late": "calls back after the job has ended",
    "swapped": "calls back in the opposite order",
}


def occasion(strike: Strike, points: Sequence[Point], struck: Point | None = None) -> str:
    """When it happens, as a person says it: `when the worker dies after db COMMIT, before mail DATA`.

    `struck` is the message itself, where it is no point of the job but a read.
    """
    kind, detail = kind_of(strike.fault), detail_of(strike.fault)
    at = struck or next((point for point in points if point.id == strike.point), None)
    what = name(at) if at is not None else "the message"
    match kind:
        case "lose-request":
            return f"when the connection breaks before {what} arrives"
        case "lose-reply" if at is not None and at.side == "delivery":
            return f"when the connection breaks at {what}"
        case "lose-reply":
            return f"when the reply to {what} is lost"
        case "error-reply":
            return f"when {what} is answered with {detail}"
        case "duplicate":
            when = {"afterwards": "after it succeeded", "meanwhile": "while it runs", "beforehand": "before it begins"}
            return f"when the job is delivered again {when.get(detail, '')}".rstrip()
        case "order" if detail.startswith("late"):
            return f"when the {ordinal(int(detail.partition(' ')[2]))} job is delivered after those that follow it"
        case "order":
            return "when the jobs are delivered in the opposite order"
        case "webhook":
            return f"when the provider {CALLS_BACK.get(detail, 'calls back')}"
        case "race":
            return "when two workers have the job at once"
        case _:
            return f"{told(strike.fault).occasion} {gap(strike, points)}"


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `11th`."""
    ends = {1: "st", 2: "nd", 3: "rd"} if number % 100 not in (11, 12, 13) else {}
    return f"{number}{ends.get(number % 10, 'th')}"


def where(strike: Strike, points: Sequence[Point], struck: Point | None = None) -> str:
    """The place alone: a gap between two messages, or the message itself where the worker lived on."""
    if family_of(strike.fault) in ("reset",) and struck is not None:
        return f"at {name(struck)}"
    return gap(strike, points)


def gap(strike: Strike, points: Sequence[Point]) -> str:
    """Between which two messages the strike fell."""
    place = place_of(strike, points)
    one = points[place - 1] if 0 < place <= len(points) else None
    other = points[place] if 0 <= place < len(points) else None
    before = name(one) if one else ""
    after = (bare_name if one and other and one.job == other.job else name)(other) if other else ""
    if before and after:
        return f"after {before}, before {after}"
    return f"before {after}" if after else f"after {before}"
