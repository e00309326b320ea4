"""From what is planted to what one exploration must show: points, struck places, findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..checks.judge import worst
from ..explore.causes import SETTINGS, TRANSPORT
from ..faults.strikes import KILL
from ..history.records import Verdict
from .kinds import ACK, DELIVERY, END, QUEUE_MODE, RESERVE, Bad, Planted


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one strike ends. Strikes that are not named end well."""

    verdict: str
    layer: str
    effects: frozenset[str]

    @property
    def text(self) -> str:
        """`duplicated: mail (handler)`."""
        return f"{self.verdict}: {', '.join(sorted(self.effects))} ({self.layer or 'filed as failed'})"


@dataclass(frozen=True, slots=True)
class Expected:
    """All that one exploration of a handler must show."""

    points: tuple[str, ...]
    ordered: bool = True
    """Whether the order of the points is known."""
    bad: dict[str, Outcome] = field(default_factory=dict)
    """By place: `before db COMMIT`, `after mail DATA`."""
    open: dict[str, Outcome] = field(default_factory=dict)
    """Places where both this and a good end are right: what the strike races with has no order with it."""
    findings: frozenset[tuple[str, str]] = frozenset()
    """Layer, and what `finding_words` says."""


def expected(planted: Planted, mode: str) -> Expected:
    """What an exploration in this mode must show, by the rules of the kill and of Celery on Redis."""
    if mode != QUEUE_MODE:  # no broker takes part
        return _expected(planted, mode, planted.steps, f"after {planted.steps[-1]}", {})
    lost = {}
    if planted.must_happen and KILL in planted.faults:
        gone = Outcome("lost", TRANSPORT, frozenset(planted.must_happen))
        lost = {f"before {DELIVERY}": gone, f"before {RESERVE}": gone}
    if planted.acks_early:
        points = (DELIVERY, RESERVE, ACK, *planted.steps)
        return _expected(planted, mode, points, f"after {points[-1]}", lost)
    points = (DELIVERY, RESERVE, *planted.steps, ACK, *planted.after_ack)
    return _expected(planted, mode, points, f"before {ACK}", lost)


def _expected(planted: Planted, mode: str, points: tuple[str, ...], end: str, lost: dict[str, Outcome]) -> Expected:
    bad = dict(lost)
    mine = [item for item in planted.bad if mode in item.modes]
    for place in dict.fromkeys(_place(item, end) for item in mine):
        bad[place] = _outcome([item for item in mine if _place(item, end) == place])
    findings = {(item.layer, finding_words(item.layer, item.verdict, item.effect)) for item in mine}
    findings |= {(TRANSPORT, "lost")} if lost else set()
    # Right after an early ack, the job is somewhere in its first steps: lost, or already charged.
    unsure = {f"after {ACK}": _outcome(mine)} if planted.acks_early else {}
    return Expected(points, not planted.acks_early, bad, unsure, frozenset(findings))


def _place(item: Bad, end: str) -> str:
    if item.fault != KILL:
        return f"{item.fault} at {item.before}"
    return end if item.before == END else f"before {item.before}"


def _outcome(items: Sequence[Bad]) -> Outcome:
    """The worst verdict names the strike; all effects are told."""
    verdict = worst([Verdict(item.verdict) for item in items])
    return Outcome(str(verdict), items[0].layer, frozenset(item.effect for item in items))


def finding_words(layer: str, verdict: str, effect: str) -> str:
    """What tells one finding from another: `lost: mail`. Transport and settings lose whole jobs: there the effect says
    nothing."""
    return verdict if layer in (TRANSPORT, SETTINGS) else f"{verdict}: {effect}"
