"""From a trial and the clean run to a verdict, with what was broken as evidence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..history.records import NEXT_JOB, WORST_FIRST, CaseRecord, Effect, TrialRecord, Verdict
from .clean import Clean, grouped, happened, times
from .contracts import AT_LEAST, AT_MOST, Contract
from .normalise import shorten

ENDLESS_DELIVERIES = 20
"""A job that was handed out more often than this and is still going is called endless."""
_SOFT_FAULTS = ("reset", "lose", "lost", "error", "outage", "toxic")
"""Faults (by the first word) after which a failed record that a person can act on is good enough: the worker lived,
and its own error handling ran. After all others the job had no say in it."""


@dataclass(frozen=True, slots=True)
class Broken:
    """One breach."""

    contract: str
    """The contract's text; empty where the job's filing or its end is at fault."""
    effect: str
    """The effect's name, empty likewise."""
    verdict: Verdict
    seen: int
    expected: int
    phrase: str
    """`payments POST /charges: 2 times, expected 1`."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a trial ended. It passes if and only if the verdict is OK."""

    verdict: Verdict
    broken: tuple[Broken, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.verdict is Verdict.OK


def judge(trial: TrialRecord, clean: Clean, contracts: Sequence[Contract], *, strict: bool = False) -> Judgement:
    """Compares a trial's effects with the clean run's, contract by contract.

    A trial in which something else happened than was planned, or whose record cannot be trusted, is not judged by its
    effects; what they would have shown is told in the notes. With `strict`, a failed record is never good enough.
    """
    effects = happened(trial)
    broken = breaches(effects, trial.case, clean, contracts)
    notes = [*_uncontracted_changes(effects, clean, contracts)]
    if spoilt := _spoilt(trial):
        verdict, reason = spoilt
        return Judgement(verdict, (), (reason, *(item.phrase for item in broken), *notes))
    if not trial.settled:
        broken = [*_seen_too_often(broken), *_unfinished(trial)]
        if not broken:
            return Judgement(Verdict.UNKNOWN, (), (trial.beyond, *notes))
    elif trial.filed.startswith(("failed", "dead")):
        broken, filed_notes = _filed(trial, broken, effects, clean, contracts, strict)
        notes = filed_notes + notes
    if trial.settled:
        broken = [*broken, *_next_job(trial)]
    return Judgement(worst([item.verdict for item in broken]), tuple(broken), tuple(notes))


def _next_job(trial: TrialRecord) -> list[Broken]:
    """A worker that was told to end lost the job that waited, or took it and did not settle it: rule 14.

    One that takes it and does it well is told in the notes. A job that is done twice by others is what at least once
    means.
    """
    end = trial.ending
    if end is None or end.runs == 1 or (end.runs > 1 and not end.took):
        return []
    verdict = Verdict.DUPLICATED if end.runs else Verdict.LOST
    who = "the worker took it after SIGTERM" if end.took else "it waited on the broker at SIGTERM"
    return [Broken("", NEXT_JOB, verdict, end.runs, 1, f"{NEXT_JOB}: {times(end.runs)}, expected 1; {who}")]


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict that names a trial in which all of these were found; OK for none."""
    return min(verdicts, key=WORST_FIRST.index, default=Verdict.OK)


def breaches(effects: Sequence[Effect], case: CaseRecord, clean: Clean, contracts: Sequence[Contract]) -> list[Broken]:
    """What one case's effects break, by contract and effect name. `effects` are those that happened."""
    names = dict.fromkeys([*clean.counts(), *(effect.name for effect in effects)])
    broken = []
    for contract in contracts:
        expected, seen = clean.keys(contract), grouped(effects, case, contract)
        for name in names:
            if contract.matches(name) and _speaks(contract, name, contracts):
                before, now = expected.get(name, Counter()), seen.get(name, Counter())
                item = _compare(contract, name, before, now, clean.steady(contract))
                if item is not None:
                    broken.append(item)
    return broken


def _speaks(contract: Contract, name: str, contracts: Sequence[Contract]) -> bool:
    """A contract of the exact name goes before those of the upstream as a whole."""
    return contract.effect == name or not any(other.effect == name for other in contracts)


def _compare(contract: Contract, name: str, expected: Counter[str], seen: Counter[str], steady: bool) -> Broken | None:
    if not expected and seen:
        phrase = f"{name}: {times(seen.total())}, never in the clean run"
        return Broken(contract.text, name, Verdict.UNEXPECTED, seen.total(), 0, phrase)
    pairs = _pair(expected, seen, steady)
    over = [pair for pair in pairs if pair[2] > pair[1] and contract.kind != AT_LEAST]
    under = [pair for pair in pairs if pair[2] < pair[1] and contract.kind != AT_MOST]
    if not over and not under:
        return None
    verdict = Verdict.PARTIAL if over and under else Verdict.DUPLICATED if over else Verdict.LOST
    if len(expected) <= 1 and seen.total() != expected.total():
        counts = f"{times(seen.total())}, expected {expected.total()}"
    else:
        counts = "; ".join(f"{shorten(key, 60)} {times(got)}, expected {want}" for key, want, got in over + under)
    return Broken(contract.text, name, verdict, seen.total(), expected.total(), f"{name}: {counts}")


def _pair(expected: Counter[str], seen: Counter[str], steady: bool) -> list[tuple[str, int, int]]:
    """`(key, expected, seen)` of each group: groups with the same key, then what is left by order of appearance, for
    keys may differ from case to case; steady ones do not."""
    pairs = [(key, count, seen[key]) for key, count in expected.items() if key in seen]
    left = [(key, count) for key, count in expected.items() if key not in seen]
    new = [(key, count) for key, count in seen.items() if key not in expected]
    paired = 0 if steady else min(len(left), len(new))
    for (key, want), (_, got) in zip(left[:paired], new[:paired], strict=True):
        pairs.append((key, want, got))
    pairs += [(key, want, 0) for key, want in left[paired:]]
    pairs += [(key, 0, got) for key, got in new[paired:]]
    return pairs


def _spoilt(trial: TrialRecord) -> tuple[Verdict, str] | None:
    """Why the trial says nothing about the job, if so."""
    if trial.diverged:
        return Verdict.DIVERGED, trial.diverged
    if trial.strike is not None and not trial.fired:
        return Verdict.NOT_EXERCISED, "the planned strike did not happen"
    if trial.problems:
        return Verdict.UNKNOWN, "; ".join(trial.problems)
    if not trial.settled and not trial.unsettled:
        return Verdict.UNKNOWN, "the system did not become quiet, and what it was doing was not seen"
    return None


def _seen_too_often(broken: Sequence[Broken]) -> list[Broken]:
    """What waiting longer cannot undo: missing effects of a job that is still going are not lost yet."""
    out = []
    for item in broken:
        if item.verdict is Verdict.PARTIAL:
            out.append(replace(item, verdict=Verdict.DUPLICATED))
        elif item.verdict is not Verdict.LOST:
            out.append(item)
    return out


def _unfinished(trial: TrialRecord) -> list[Broken]:
    """Nothing where time was too short for the job by no fault of its own."""
    if trial.deliveries > ENDLESS_DELIVERIES:
        phrase = f"the job was handed out {trial.deliveries} times and is still going: {trial.unsettled}"
        return [Broken("", "", Verdict.ENDLESS, trial.deliveries, 1, phrase)]
    if trial.beyond:
        return []
    return [Broken("", "", Verdict.HUNG, 0, 1, f"the job did not come to an end: {trial.unsettled}")]


def _filed(
    trial: TrialRecord,
    broken: list[Broken],
    effects: Sequence[Effect],
    clean: Clean,
    contracts: Sequence[Contract],
    strict: bool,
) -> tuple[list[Broken], list[str]]:
    """The breaches and notes of a job that is filed as failed: missing effects are visible, complete ones misfiled."""
    if not any(item.verdict in (Verdict.LOST, Verdict.PARTIAL) for item in broken):
        complete = [replace(contract, kind="exactly once") for contract in contracts]
        missing = [item for item in breaches(effects, trial.case, clean, complete) if item.verdict is Verdict.LOST]
        if not contracts or missing:
            return broken, [f"filed as {trial.filed}"]
        phrase = f"every effect happened, but the job is filed as {trial.filed}"
        if _soft(trial) and not strict:
            return broken, [f"misfiled: {phrase}"]
        return [*broken, Broken("", "", Verdict.MISFILED, 0, 0, phrase)], []
    out, notes = _seen_too_often(broken), []
    for item in broken:
        if item.verdict is Verdict.LOST or item.verdict is Verdict.PARTIAL:
            phrase = f"{item.phrase}; filed as {trial.filed}"
            if _soft(trial) and not strict:
                notes.append(f"failed visibly: {phrase}")
            elif item.verdict is Verdict.LOST:
                out.append(replace(item, verdict=Verdict.FAILED_VISIBLY, phrase=phrase))
    return out, notes


def _soft(trial: TrialRecord) -> bool:
    words = re.split(r"[-_ ]", trial.strike.fault) if trial.strike else [""]
    return words[0] in _SOFT_FAULTS


def _uncontracted_changes(effects: Sequence[Effect], clean: Clean, contracts: Sequence[Contract]) -> list[str]:
    before, now = clean.counts(), Counter(effect.name for effect in effects)
    return [
        f"{name}: {times(now[name])}, {times(before.get(name, 0))} in the clean run (no contract)"
        for name in dict.fromkeys([*before, *now])
        if now[name] != before.get(name, 0) and not any(contract.matches(name) for contract in contracts)
    ]
