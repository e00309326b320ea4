"""What the fault-free runs showed: the measure of every contract."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import UsageError
from ..history.records import CaseRecord, Effect, TrialRecord
from .contracts import Contract
from .normalise import Ids, normalise

_UPSTREAM_WORDS = {"smtp": "at_least_once"}
"""What is pasted by kind of upstream: a second mail is a nuisance, a missing one is a fault; all else exactly once."""


@dataclass(frozen=True, slots=True)
class Clean:
    """The effects of one fault-free case."""

    case: CaseRecord
    effects: tuple[Effect, ...]
    """Those that happened, in order."""
    differences: tuple[str, ...] = ()
    """Where a further recording showed another number of effects, a sentence each."""
    others: tuple[tuple[CaseRecord, tuple[Effect, ...]], ...] = ()
    """Cases and effects of the further recordings."""

    def counts(self) -> dict[str, int]:
        """How often each effect happened, by name, in order of first appearance."""
        return dict(Counter(effect.name for effect in self.effects))

    def keys(self, contract: Contract | None = None) -> dict[str, Counter[str]]:
        """Normalised keys by effect name; of the names that `contract` matches, by its key, where one is given."""
        return grouped(self.effects, self.case, contract)

    def steady(self, contract: Contract) -> bool:
        """Whether the contract names a key that has the same values in every case, so that another value in a struck
        run is another effect: half a file, a balance that was raised twice."""
        mine = self.keys(contract)
        return bool(contract.key and self.others) and all(
            grouped(effects, case, contract) == mine for case, effects in self.others
        )


def clean_of(recordings: Sequence[TrialRecord]) -> Clean:
    """The first recording is the measure; the others are compared with it. Raises ValueError without a recording."""
    if not recordings:
        raise ValueError("expected at least one recording of a clean run")
    first = Clean(recordings[0].case, happened(recordings[0]))
    differences = []
    for number, other in enumerate(recordings[1:], 2):
        counts = Counter(effect.name for effect in happened(other))
        mine = first.counts()
        for name in dict.fromkeys([*mine, *counts]):
            if mine.get(name, 0) != counts[name]:
                differences.append(
                    f"{name}: {times(mine.get(name, 0))} in clean run 1, {times(counts[name])} in {number}"
                )
    others = tuple((other.case, happened(other)) for other in recordings[1:])
    return Clean(first.case, first.effects, tuple(differences), others)


def happened(trial: TrialRecord) -> tuple[Effect, ...]:
    """The effects of a trial that took place and are not another case's."""
    return tuple(effect for effect in trial.effects if effect.applied and effect.case in ("", trial.case.id))


def grouped(effects: Sequence[Effect], case: CaseRecord, contract: Contract | None = None) -> dict[str, Counter[str]]:
    """Effects counted by name and normalised key, both in order of first appearance."""
    ids = Ids.of(case.ids)
    rule = contract or Contract("", "")
    groups: dict[str, Counter[str]] = {}
    for effect in effects:
        if contract is None or contract.matches(effect.name):
            raw = rule.key_of(effect)
            key = f"no {rule.key}" if raw is None else normalise(raw, ids)
            groups.setdefault(effect.name, Counter())[key] += 1
    return groups


def unmatched(contracts: Sequence[Contract], clean: Clean) -> list[str]:
    """A sentence for each contract whose effect the clean run never showed, or whose key none of its effects has."""
    counts = clean.counts()
    seen = ", ".join(f"{name} ({times(number)})" for name, number in counts.items()) or "none"
    sentences = []
    for contract in contracts:
        effects = [effect for effect in clean.effects if contract.matches(effect.name)]
        if not effects:
            near = _nearest(contract.effect, list(counts))
            meant = f"; did you mean {near!r}?" if near else ""
            sentences.append(f"{contract.text}: the clean run never showed it; effects seen: {seen}{meant}")
        elif all(contract.key_of(effect) is None for effect in effects):
            parts = ", ".join(key_parts(effects[0]))
            sentences.append(f"{contract.text}: no such effect of the clean run has {contract.key}; it has {parts}")
    return sentences


def check_contracts(contracts: Sequence[Contract], clean: Clean) -> None:
    """Raises UsageError when a contract speaks of what the clean run never showed."""
    if sentences := unmatched(contracts, clean):
        raise UsageError("\n".join(sentences), hint="name an effect as the clean run shows it, or the upstream alone")


def uncontracted(clean: Clean, contracts: Sequence[Contract]) -> list[str]:
    """The names of effects of the clean run of which no contract speaks."""
    return [name for name in clean.counts() if not any(contract.matches(name) for contract in contracts)]


def lines_to_paste(clean: Clean, kinds: Mapping[str, str]) -> list[str]:
    """One line for each effect of the clean run, ready for `expect=[...]`; `kinds` gives an upstream's kind."""
    lines = []
    for name in clean.counts():
        upstream = name.partition(" ")[0]
        word = _UPSTREAM_WORDS.get(kinds.get(upstream, ""), "exactly_once")
        contract = Contract(word.replace("_", " "), name)
        lines.append(f"{contract.call},")
    return lines


def times(number: int) -> str:
    """`never`, `1 time`, `2 times`."""
    return {0: "never", 1: "1 time"}.get(number, f"{number} times")


def key_parts(effect: Effect) -> list[str]:
    """The keys that a contract could name for this effect."""
    parts = []
    for name, value in effect.fields.items():
        if name in ("json", "row") and isinstance(value, dict):
            parts += [f"{name}:{field}" for field in value]
        elif name in ("path", "to", "subject", "text"):
            parts.append(name)
    return parts or ["body"]


def _nearest(effect: str, names: list[str]) -> str:
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(effect.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[near[0]] if near else ""
