"""What a report says beside its verdicts: what the job system promises, what was rewound, which taps saw nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..checks.clean import times
from ..checks.contracts import Contract
from ..checks.keys import check_keys
from ..explore.causes import Outcome
from ..explore.follow import alike
from ..explore.oneoff import first_only
from ..faults.strikes import DEPLOY, TERM_GROUP, kind_of
from ..history.records import Ending, TrialRecord
from ..services.spec import Provider
from . import leases
from .lane import Lane
from .queue import QueueMode
from .recordings import recorded_of
from .stage import STOP_GRACE
from .trial import Mode

VISIBLE = ("failed visibly: ", "misfiled: ")
"""How the judge begins what it says of a job that is filed as failed after a fault that it may fail by."""


def unused(lane: Lane, contracts: Sequence[Contract]) -> list[str]:
    """A contract's upstream whose tap saw no bytes: the app may have gone around it."""
    named = {contract.effect.split(" ", 1)[0] for contract in contracts}
    return [
        f"the tap of {name} saw no bytes: if this job uses it, then by a Unix socket, a pooled address or another "
        "variable than those in the rig's env"
        for name in lane.rig.upstreams
        if name in named
        and not any(slot.listeners[name].bytes for slot in lane.slots.values() if name in slot.listeners)
    ]


def promises(mode: Mode, trials: Sequence[TrialRecord], outcomes: Sequence[Outcome]) -> tuple[str, list[str]]:
    """The guarantee under the user's settings, and the notes of a report."""
    notes = list(mode.lane.trace.notes)
    rig = mode.lane.rig
    honours = [name for name, spec in rig.upstreams.items() if isinstance(spec, Provider) and spec.idempotency]
    notes += [trouble.sentence for trouble in check_keys(list(trials), honours)]
    notes += _filed_as_failed(outcomes)
    notes += told_to_end(trials)
    notes += filled_once(mode, trials)
    if mode.name == "producer":
        return "", notes
    if not isinstance(mode, QueueMode):
        return "at-least-once", notes
    settings = mode.settings
    notes += _followed(mode, trials)
    notes.append(f"Celery {settings.version}: {settings.says}")
    if outcomes and not mode.at and not any(outcome.redelivered for outcome in outcomes):
        notes.append(
            "the job was never run again under these settings, so its handler was not exercised for re-runs; "
            "--assume at-least-once runs it with safe settings"
        )
    if not mode.at:
        notes += leases.said(mode, outcomes)
    return settings.guarantee, notes


def told_to_end(trials: Sequence[TrialRecord]) -> list[str]:
    """How the workers ended that were told to, in one sentence for each way of telling them (rule 14)."""
    found: dict[str, list[Ending]] = {}
    for trial in trials:
        if trial.ending is not None and trial.fired and trial.purpose == "strike" and trial.strike is not None:
            found.setdefault(kind_of(trial.strike.fault), []).append(trial.ending)
    return [
        f"{SIGNALS.get(fault, 'SIGTERM')} at {_points(ends)}: {_how_they_ended(ends)}" for fault, ends in found.items()
    ]


SIGNALS = {TERM_GROUP: "SIGTERM to the whole group", DEPLOY: "SIGTERM of a deploy"}


def _points(ends: Sequence[Ending]) -> str:
    return f"{len(ends)} point{'s' if len(ends) > 1 else ''}"


def _how_they_ended(ends: Sequence[Ending]) -> str:
    took = sum(end.took for end in ends)
    jobs = Counter(end.job for end in ends)
    told = [f"it took a further job {times(took)}" if took else "the worker took nothing new"]
    told += [f"its job was {job} {times(count)}" for job, count in jobs.items()]
    if killed := sum(end.killed for end in ends):
        told.append(f"it did not end within {STOP_GRACE:g} s {times(killed)} and was killed")
    if slowest := max((end.seconds for end in ends if not end.killed), default=0.0):
        codes = sorted({str(end.code) for end in ends if not end.killed and end.code is not None})
        told.append(f"it ended within {slowest:.1f} s" + (f", exit code {' or '.join(codes)}" if codes else ""))
    return "; ".join(told)


def _followed(mode: QueueMode, trials: Sequence[TrialRecord]) -> list[str]:
    """Which jobs stand for others, where jobs are followed."""
    recording = next((trial for trial in trials if trial.purpose == "recording"), None)
    if not mode.follow or recording is None:
        return []
    return alike(recording, mode.system.broker, mode.lane.company.names)


def filled_once(mode: Mode, trials: Sequence[TrialRecord]) -> list[str]:
    """What the warm-up changed and the recording did not: caches that are filled once."""
    warm_up = next((trial for trial in trials if trial.purpose == "warm-up"), None)
    recording = next((trial for trial in trials if trial.purpose == "recording"), None)
    if warm_up is None or recording is None or mode.name == "producer":
        return []
    return first_only(recorded_of(mode, warm_up), recorded_of(mode, recording))


def _filed_as_failed(outcomes: Sequence[Outcome]) -> list[str]:
    """Jobs that failed where a person can see it pass after a network error; how many did is told."""
    found = [(outcome, note) for outcome in outcomes for note in outcome.notes if note.startswith(VISIBLE)]
    if not found:
        return []
    kinds = ", ".join(dict.fromkeys(kind_of(outcome.strike.fault) for outcome, _ in found))
    example = found[0][1].partition(": ")[2]
    return [
        f"after {len(found)} strike{'s' if len(found) > 1 else ''} ({kinds}) the job was left failed, where a person "
        f"can see it and run it again; retries would do that by themselves. The first: {example}"
    ]
