"""A faster clock for an app: what of its rig cannot go along, whether its interpreters follow, and what work costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import UsageError
from .rig import Rig
from .stage import Stage

SPEED = "speed"
"""Among the options of a remembered finding: the clock under which it was found."""


def kept_back(rig: Rig) -> Iterator[str]:
    """A sentence for each thing of the rig that cannot go faster with the rest: all clocks that a due time depends on
    go faster, or none."""
    due = rig.system.due_times
    if due.real:
        yield (f"{rig.system.name} cannot be sped up: {due.real}; leave the clock out: the jobs then live in real time")
    for name, spec in rig.upstreams.items():
        if getattr(spec, "url", None):
            yield (
                f"{name!r} is given by its url and lives in real time: all clocks go faster, or none; leave the url "
                "out of the rig, or the clock out of the run"
            )


def check(rig: Rig, speed: float) -> None:
    """Raises UsageError with all that keeps this rig in real time."""
    if speed != 1 and (found := list(kept_back(rig))):
        raise UsageError(
            f"--speed {speed:g}: " + "; ".join(found), hint="leave --speed out: the jobs then live in real time"
        )


async def told(rigs: Iterable[Rig], speed: float, stage: Stage) -> list[str]:
    """What a report says of the clock. Raises ServiceError when an interpreter of an app does not follow it."""
    if speed == 1:
        return []
    rigs = list(rigs)
    notes = [
        f"clock: workers and producers live {speed:g} times as fast (libfaketime), and all times here are "
        f"theirs; due times of retries are owned by {rigs[0].system.due_times.owner}; brokers and databases go along "
        "with them"
    ]
    for python in dict.fromkeys(one.system.interpreter for one in rigs):
        notes += await stage.check_pace(python)
    return notes
