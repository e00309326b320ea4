"""What of a recorded trial is the job's own, in each mode: its points, and what it only reads."""

from __future__ import annotations

from ..explore.follow import followed, followed_reads
from ..explore.points import Recorded, reads, recorded
from ..explore.search import Read
from ..history.records import TrialRecord
from .handler import HandlerMode
from .queue import QueueMode
from .trial import Mode


def recorded_of(mode: Mode, trial: TrialRecord) -> Recorded:
    """The points of the job of this trial."""
    if isinstance(mode, QueueMode) and mode.follow:
        return followed(trial, mode.system.broker, mode.lane.company.names)
    if isinstance(mode, QueueMode) and mode.at:
        return recorded(trial.operations, broker=mode.system.broker, worker=mode.at, looks=True)
    if isinstance(mode, QueueMode):
        job, others = next(iter(trial.case.jobs), ""), mode.lane.company.names
        return recorded(trial.operations, broker=mode.system.broker, job=job, others=others)
    assert isinstance(mode, HandlerMode)
    return recorded(trial.operations, worker=mode.worker, broker=mode.broker)


def reads_of(mode: Mode, trial: TrialRecord) -> tuple[Read, ...]:
    """What changes nothing, of the job's own or, where they are followed, of all its jobs."""
    if isinstance(mode, HandlerMode):
        return tuple(reads(trial.operations, worker=mode.worker, broker=mode.broker))
    assert isinstance(mode, QueueMode)
    if mode.follow:
        return tuple(followed_reads(trial, mode.system.broker, mode.lane.company.names))
    if mode.at:  # of what a process asks again and again, no question is like another
        return ()
    others = mode.lane.company.names
    return tuple(reads(trial.operations, broker=mode.system.broker, job=trial.case.jobs[0], others=others))
