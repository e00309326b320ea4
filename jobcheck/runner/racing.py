"""Races as a part of an exploration: whether they are wanted, how many come, and what they add to the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..events import StrikeDone
from ..explore.causes import Outcome
from ..explore.races import RACE
from ..faults.strikes import counted
from ..history.records import Strike, TrialRecord
from .races import RaceOptions, race
from .telling import joined, same_cause

if TYPE_CHECKING:
    from .explore import Exploration


def wanted(exploration: Exploration) -> bool:
    """Whether this exploration has races: they were asked for, or one of them is replayed."""
    options = exploration.options
    if exploration.mode.lane.stage.pace is not None:
        return False  # asked for by name, it was refused (`clocks.check`)
    return options.schedule is not None or (RACE in options.faults and not options.only)


def expected(exploration: Exploration) -> list[Strike]:
    """As many strikes as a right job has schedules, roughly: how many there are is known when they were run.

    The broker's own points are no steps of a race; one read at least is.
    """
    if not wanted(exploration) or exploration.options.schedule is not None:
        return []
    steps = sum(not point.broker for point in exploration.points) + 1
    return [Strike("", "", RACE)] * (1 + (steps - 1) + (steps - 1) * steps)


def plan_of(exploration: Exploration, planned: Sequence[Strike]) -> str:
    """The strikes in words: `4 kills and about 16 races`."""
    parts = [counted(strike.fault for strike in planned)]
    if many := len(expected(exploration)):
        parts.append(f"about {many} races")
    return " and ".join(filter(None, parts))


async def races(exploration: Exploration, recording: TrialRecord) -> None:
    """Runs the races, where they are wanted. What other strikes show too is one finding, which the race is one more
    sign of."""
    if not wanted(exploration):
        return
    assert exploration.clean is not None
    options, outcomes, mode = exploration.options, exploration.outcomes, exploration.mode
    seen: list[Outcome] = []

    def done(outcome: Outcome, left: int) -> None:
        seen.append(outcome)
        at = len(outcomes) + len(seen)
        exploration.bus.emit(StrikeDone(mode.subject, mode.name, str(outcome.verdict), at, at + left))

    raced = await race(
        mode,
        RaceOptions(
            contracts=options.contracts,
            clean=exploration.clean,
            recording=recording,
            most=max(options.max_points - len(outcomes), 1) if options.max_points else 0,
            until=options.until,
            verify=options.verify,
            only=options.schedule,
            keep=exploration.keep,
            done=done,
            replay=options.replay,
        ),
    )
    exploration.raced = raced
    exploration.trials.update(raced.trials)
    outcomes += raced.outcomes
    found = exploration.found
    for one in raced.findings:
        at = next((at for at, other in enumerate(found) if same_cause(other, one)), None)
        if at is None:
            found.append(one)
        else:
            found[at] = joined(found[at], one)
