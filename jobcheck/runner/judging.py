"""A stored run judged again from its journal: the same checks on the same trials, with the same or other contracts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..checks.clean import check_contracts, clean_of
from ..checks.contracts import Contract
from ..checks.judge import Judgement
from ..checks.producers import judge_of
from ..errors import EXIT_BROKEN, EXIT_OK, EXIT_UNKNOWN, UsageError
from ..explore.causes import HANDLER, SETTINGS, TRANSPORT
from ..history.codec import from_json
from ..history.records import NEVER_PASS, TrialRecord, Verdict
from ..history.report import StrikeReport, SubjectReport
from ..store.journal import read_journal
from .expectations import LAYERS, read_contract

_UNSURE = frozenset(map(str, NEVER_PASS))


@dataclass(frozen=True, slots=True)
class Judged:
    """One subject of a stored run, judged again."""

    subject: SubjectReport
    """As it was stored."""
    contracts: tuple[Contract, ...]
    strikes: tuple[StrikeReport, ...]
    """The new verdicts, in the stored order."""
    problem: str = ""
    """Why nothing could be judged; the stored problem, where there was one."""

    @property
    def changed(self) -> tuple[tuple[StrikeReport, StrikeReport], ...]:
        """The stored strike and the new one, where their verdicts differ."""
        pairs = zip(self.subject.strikes, self.strikes, strict=True)
        return tuple((old, new) for old, new in pairs if old.verdict != new.verdict)


def rejudge(run: Path, contracts: Sequence[Contract] = ()) -> list[Judged]:
    """Judges every subject of the journal again, in its order; `contracts` replace the stored ones.

    Raises UsageError when there is no journal, when it holds no subject, or when a contract speaks of an effect that
    no clean run of it showed.
    """
    try:
        stored = subjects_of(read_journal(run))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise UsageError(
            f"the journal of {run} cannot be read: {error}",
            hint="judge it with the jobcheck that wrote it, or run again",
        ) from error
    judged = [rejudge_subject(subject, trials, contracts) for subject, trials in stored]
    if not judged:
        raise UsageError(f"the journal of {run} holds no job that was explored to its end")
    return judged


def subjects_of(lines: Iterable[Mapping[str, Any]]) -> list[tuple[SubjectReport, list[TrialRecord]]]:
    """Each subject line with the trials that led to it: those of its key since the last subject of that key."""
    waiting: dict[str, list[TrialRecord]] = {}
    found = []
    for line in lines:
        if line["type"] == "trial":
            trial = from_json(TrialRecord, line["trial"])
            waiting.setdefault(trial.subject, []).append(trial)
        elif line["type"] == "subject":
            found.append((from_json(SubjectReport, line["subject"]), waiting.pop(str(line["key"]), [])))
    return found


def rejudge_subject(
    subject: SubjectReport, trials: Sequence[TrialRecord], contracts: Sequence[Contract] = ()
) -> Judged:
    """Judges one subject by its trials. Pure. Raises UsageError as `rejudge` does."""
    chosen = tuple(contracts) or tuple(read_contract(text) for text in subject.contracts)
    recordings = [trial for trial in trials if trial.purpose == "recording"]
    if not subject.strikes or not recordings:
        problem = subject.problem or "the journal holds no clean run of it"
        return Judged(subject, chosen, _all_unknown(subject), problem)
    clean = clean_of(recordings)
    check_contracts(chosen, clean)
    last = {trial.strike.id: trial for trial in trials if trial.purpose == "strike" and trial.strike is not None}
    strikes = []
    for strike in subject.strikes:
        trial = last.get(strike.id)
        if trial is None:
            strikes.append(replace(strike, verdict=str(Verdict.UNKNOWN), layer="", effects=()))
            continue
        judgement = judge_of(subject.mode)(trial, clean, chosen)
        strikes.append(
            replace(
                strike,
                verdict=str(judgement.verdict),
                effects=tuple(item.phrase for item in judgement.broken),
                layer=_layer(subject, strike, trial, judgement),
            )
        )
    return Judged(subject, chosen, tuple(strikes))


def exit_code_of_judged(judged: Iterable[Judged], fail_on: str) -> int:
    """1 when a new verdict is bad and laid at what `fail_on` names, else 2 when one is unknown, else 0."""
    known = list(judged)
    strikes = [strike for item in known for strike in item.strikes]
    if any(strike.layer in LAYERS[fail_on] for strike in strikes if strike.layer):
        return EXIT_BROKEN
    unsure = any(strike.verdict in _UNSURE for strike in strikes) or any(item.problem for item in known)
    return EXIT_UNKNOWN if unsure else EXIT_OK


def _all_unknown(subject: SubjectReport) -> tuple[StrikeReport, ...]:
    return tuple(replace(strike, verdict=str(Verdict.UNKNOWN), layer="", effects=()) for strike in subject.strikes)


def _layer(subject: SubjectReport, strike: StrikeReport, trial: TrialRecord, judgement: Judgement) -> str:
    """The app's settings are not in the journal: for a strike that was good, the stored guarantee stands for them."""
    if judgement.verdict is Verdict.OK or judgement.verdict in NEVER_PASS:
        return ""
    lost = all(item.verdict is Verdict.LOST for item in judgement.broken)
    if subject.mode != "queue" or trial.deliveries_after or not lost:
        return HANDLER
    if strike.layer:
        return strike.layer
    return SETTINGS if subject.guarantee == "at-most-once" else TRANSPORT
