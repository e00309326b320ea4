"""Rule 21: the idempotency key comes from the business event, so it is the same on every attempt and differs between
events."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..history.records import Effect, TrialRecord
from .normalise import Ids, normalise, shorten


@dataclass(frozen=True, slots=True)
class KeyProblem:
    """One way in which idempotency keys do not do their work."""

    effect: str
    sentence: str
    failure: bool = True
    """False: advice only."""


def check_keys(trials: Sequence[TrialRecord], honours: Collection[str] = ()) -> list[KeyProblem]:
    """Compares the keys that providers saw, over the attempts of each case and over the cases.

    `honours` names the upstreams that recognise a repeated call by its key; one that never saw a key is advised
    about. Trials without faults (recordings) say how many different keys a case of this job has by right.
    """
    names = dict.fromkeys(effect.name for trial in trials for effect in trial.effects if _counts(effect, honours))
    problems = []
    for name in names:
        calls = [(trial, [effect for effect in _own(trial) if effect.name == name]) for trial in trials]
        calls = [(trial, effects) for trial, effects in calls if effects]
        if not any(effect.key for _, effects in calls for effect in effects):
            sentence = f"{name}: no idempotency key was seen, though {name.partition(' ')[0]} honours one"
            problems.append(KeyProblem(name, sentence, failure=False))
            continue
        problems += _changed(name, calls)
        problems += _shared(name, calls)
    return problems


def _counts(effect: Effect, honours: Collection[str]) -> bool:
    return bool(effect.key) or effect.name.partition(" ")[0] in honours


def _own(trial: TrialRecord) -> list[Effect]:
    return [effect for effect in trial.effects if effect.case in ("", trial.case.id)]


_Calls = Sequence[tuple[TrialRecord, list[Effect]]]


def _changed(name: str, calls: _Calls) -> list[KeyProblem]:
    """Keys that are not the same on every attempt of one case: more of them than a clean run has."""
    measure = [item for item in calls if item[0].purpose == "recording"] or calls
    by_right = min(len({effect.key for effect in effects}) for _, effects in measure)
    problems: dict[str, KeyProblem] = {}
    for trial, effects in calls:
        keys = list(dict.fromkeys(effect.key for effect in effects))
        if len(keys) <= by_right:
            continue
        odd = keys[by_right]
        first = (difflib.get_close_matches(odd, keys[:by_right], n=1, cutoff=0.0) or [""])[0]
        if not odd or not first:
            sentence = f"{name}: one attempt sent no key, another sent {_quoted(odd or first)}"
        else:
            sentence = f"{name}: key {_quoted(odd)} differs from {_quoted(first)} of the first attempt"
        ids = Ids.of(trial.case.ids)
        problems.setdefault(normalise(sentence, ids), KeyProblem(name, sentence))
    return list(problems.values())


def _shared(name: str, calls: _Calls) -> list[KeyProblem]:
    """Keys that two cases have in common: the second event would be taken for a repetition of the first."""
    owner: dict[str, TrialRecord] = {}
    for trial, effects in calls:
        for key in dict.fromkeys(effect.key for effect in effects if effect.key):
            other = owner.setdefault(key, trial)
            if other.case.id != trial.case.id:
                sentence = f"{name}: key {_quoted(key)} is the same for two events, {_ids(other)} and {_ids(trial)}"
                return [KeyProblem(name, sentence)]
    return []


def _ids(trial: TrialRecord) -> str:
    named = ", ".join(f"{name} {value}" for name, value in trial.case.ids.items())
    return named or f"case {trial.case.id}"


def _quoted(key: str) -> str:
    return '"' + shorten(key, 80) + '"'
