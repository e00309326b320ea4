"""Many cases under one plan, each judged on its own and counted, as scenarios report it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..history.records import CaseRecord, Effect, Verdict
from .clean import Clean
from .contracts import Contract
from .judge import Broken, breaches, worst
from .normalise import shorten


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """One case of a scenario after the system became quiet."""

    case: CaseRecord
    acknowledged: bool = True
    """The enqueue call returned without an error. False: it is not known whether the job exists."""
    filed: str = ""
    """What the job system holds of it: empty, `failed: ...`, `dead: ...`."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case, judged."""

    case: CaseRecord
    verdict: Verdict
    broken: tuple[Broken, ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """How all cases ended. A case may be both short of one effect and have another twice: it counts in both."""

    attempted: int = 0
    """Enqueue calls that were made."""
    acknowledged: int = 0
    """Enqueue calls that returned without an error."""
    ok: int = 0
    """Cases with exactly the effects that their contracts ask for."""
    lost: int = 0
    """Acknowledged cases that miss an effect and are filed nowhere."""
    failed_visibly: int = 0
    """Cases that miss an effect and are filed as failed, so that a person can act."""
    duplicated: int = 0
    """Cases with an effect more often than allowed."""
    unexpected: int = 0
    """Cases with an effect that no clean run showed, and effects that belong to no case."""
    recovered: int = 0
    """Cases whose enqueue call failed and whose effects happened all the same."""
    vanished: int = 0
    """Cases whose enqueue call failed and that left no effect: never there, and nothing lost."""

    @property
    def text(self) -> str:
        """One line: `300 attempted, 298 acknowledged: 297 ok, 1 duplicated, 2 recovered`."""
        parts = [f"{self.ok} ok"]
        for name in ("lost", "failed_visibly", "duplicated", "unexpected", "recovered", "vanished"):
            if number := getattr(self, name):
                parts.append(f"{number} {name.replace('_', ' ')}")
        return f"{self.attempted} attempted, {self.acknowledged} acknowledged: {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts, every case that is not ok, and effects without an owner."""

    counts: Counts
    bad: tuple[CaseResult, ...] = ()
    orphans: tuple[str, ...] = ()
    """A sentence for each effect that happened and belongs to no case."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all cases; orphans make it UNEXPECTED at least."""
        verdicts = [result.verdict for result in self.bad]
        return worst([*verdicts, *([Verdict.UNEXPECTED] if self.orphans else [])])


def tally(
    outcomes: Sequence[CaseOutcome],
    effects: Sequence[Effect],
    contracts: Sequence[Contract],
    expected: Clean | Mapping[str, Clean],
) -> Tally:
    """Judges each case on its own by the contracts and counts.

    `effects` have their `case` filled in (`ownership.assign`); `expected` is what a clean case shows, or one such
    picture by case id where cases differ.
    """
    by_case: dict[str, list[Effect]] = {}
    for effect in effects:
        if effect.applied:
            by_case.setdefault(effect.case, []).append(effect)
    counts: dict[str, int] = dict.fromkeys(("ok", "recovered", "vanished"), 0)
    kinds: dict[Verdict, int] = {}
    bad = []
    for outcome in outcomes:
        own = by_case.get(outcome.case.id, [])
        clean = expected if isinstance(expected, Clean) else expected[outcome.case.id]
        if not outcome.acknowledged and not own:
            counts["vanished"] += 1
            continue
        counts["recovered"] += not outcome.acknowledged
        result, verdicts = _judge(outcome, own, clean, contracts)
        for verdict in verdicts:
            kinds[verdict] = kinds.get(verdict, 0) + 1
        counts["ok"] += not verdicts
        if verdicts:
            bad.append(result)
    orphans = _orphans(by_case, {outcome.case.id for outcome in outcomes}, contracts)
    total = Counts(
        attempted=len(outcomes),
        acknowledged=sum(outcome.acknowledged for outcome in outcomes),
        lost=kinds.get(Verdict.LOST, 0),
        failed_visibly=kinds.get(Verdict.FAILED_VISIBLY, 0),
        duplicated=kinds.get(Verdict.DUPLICATED, 0),
        unexpected=kinds.get(Verdict.UNEXPECTED, 0) + len(orphans),
        **counts,
    )
    return Tally(total, tuple(bad), tuple(orphans))


def _judge(
    outcome: CaseOutcome, own: Sequence[Effect], clean: Clean, contracts: Sequence[Contract]
) -> tuple[CaseResult, set[Verdict]]:
    """The case's result, and every kind of breach in it: partial is both duplicated and lost."""
    broken = breaches(own, outcome.case, clean, contracts)
    verdicts: set[Verdict] = set()
    for item in broken:
        verdicts |= {Verdict.DUPLICATED, Verdict.LOST} if item.verdict is Verdict.PARTIAL else {item.verdict}
    if Verdict.LOST in verdicts and outcome.filed:
        verdicts = verdicts - {Verdict.LOST} | {Verdict.FAILED_VISIBLY}
    named = worst([item.verdict for item in broken])
    if named in (Verdict.LOST, Verdict.PARTIAL) and outcome.filed:
        named = worst(sorted(verdicts))
    return CaseResult(outcome.case, named, tuple(broken)), verdicts


def _orphans(by_case: Mapping[str, Sequence[Effect]], known: set[str], contracts: Sequence[Contract]) -> list[str]:
    return [
        f"{effect.name} belongs to no case that was enqueued: {shorten(effect.body)}"
        for case, effects in by_case.items()
        if case not in known
        for effect in effects
        if any(contract.matches(effect.name) for contract in contracts)
    ]
