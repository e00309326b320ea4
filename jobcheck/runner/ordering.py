"""The jobs of one case come in another order than they were enqueued in: another worker was faster, one was retried.

No worker fetches while they are enqueued; then their messages lie on the broker in the other order, and a worker that
does one job at a time takes them. So a job that comes late comes after the others have been done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..faults import strikes as known
from ..history.records import Strike

if TYPE_CHECKING:
    from .queue import QueueMode
    from .seats import Seat
    from .trial import Running


def order_of(fault: str, jobs: Sequence[str]) -> list[str]:
    """The jobs in the order of this strike: `order late 1` or `order reversed`."""
    way, _, number = known.detail_of(fault).partition(" ")
    if way == known.REVERSED:
        return list(reversed(jobs))
    late = jobs[int(number) - 1]
    return [job for job in jobs if job != late] + [late]


async def in_other_order(mode: QueueMode, strike: Strike, running: Running, jobs: Sequence[str]) -> Seat:
    """Puts the waiting jobs into the strike's order; then another worker comes, and fetches.

    Raises CaseError when they do not all wait on the broker.
    """
    crew, wanted = mode.crew, order_of(strike.fault, jobs)
    await mode.system.reorder(crew.producer.agent.call, mode.settings, wanted)
    places = ", ".join(f"#{jobs.index(job) + 1}" for job in wanted)
    running.notes.append(f"the jobs lie on the broker in another order than they were enqueued in: {places}")
    seat = await crew.replace(crew.active)
    seat.begin()
    seat.slot.release()
    return seat


def came_so(mode: QueueMode, strike: Strike, jobs: Sequence[str]) -> bool:
    """Whether they were given out in the strike's order."""
    given = [sight.job for sight in mode.lane.trace.sights if sight.role == "delivery" and sight.job in set(jobs)]
    return list(dict.fromkeys(given)) == order_of(strike.fault, jobs)
