"""A worker is told to end in the middle of its job, while another job waits on the broker (DESIGN section 7, rule 14).

The other job is the canary: one mark, and nothing of the app's. What a right worker does: it takes nothing new,
finishes its job or gives it back, and ends in time. Messages that it had fetched and not begun are given back when
another worker gets them.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..aio import wait_for
from ..errors import CaseError, WaitTimeout
from ..faults.strikes import DEPLOY, TERM, TERM_GROUP, kind_of
from ..history.records import FINISHED, Ending, Strike
from ..tap.sight import OUT, Sight
from .kin import Kin
from .lane import CANARY, MARKS, Lane
from .seats import Seat
from .stage import STOP_GRACE

if TYPE_CHECKING:
    from .queue import QueueMode
    from .queue_strikes import Struck

TOLD_TO_END = (TERM, TERM_GROUP, DEPLOY)
SETTLED = 0.1
"""Seconds without a message after which a worker that fetches ahead has fetched what it wants."""


@dataclass(slots=True)
class Waiting:
    """The job that waits while a worker is told to end."""

    lane: Lane
    seat: Seat
    key: str
    """Of its mark."""
    job: str
    """Its id on the broker."""
    since: int
    """The ledger's number before it."""
    ending: Ending = field(default_factory=Ending)

    def deliveries(self) -> list[Sight]:
        """How often it was given out, to whomever."""
        return [sight for sight in self.lane.trace.sights if sight.role == "delivery" and sight.job == self.job]

    @property
    def held(self) -> bool:
        """The worker that is told to end had it at some time."""
        return any(sight.worker == self.seat.slot.name for sight in self.deliveries())

    @property
    def done_here(self) -> bool:
        """That worker did it, or says so."""
        return self.seat.ends.get(self.job) == "succeeded" or any(
            sight.upstream == MARKS and sight.worker == self.seat.slot.name and sight.way == OUT
            for sight in self.lane.trace.sights
            if self.key in sight.unit.summary
        )

    @property
    def runs(self) -> int:
        """How often it was done so far."""
        return sum(effect.body == self.key for effect in self.lane.ledger.since(self.since))


async def another_waits(mode: QueueMode, seat: Seat, kin: Kin | None) -> Waiting:
    """Puts the canary on the broker. Raises CaseError when it cannot be enqueued."""
    lane = mode.lane
    since, known = lane.ledger.seq, set(mode.enqueued())
    case = await lane.canary_case()
    new = [job for job in mode.enqueued() if job not in known]
    if len(new) != 1:
        raise CaseError(f"expected one job of the canary on the broker, saw {len(new)}")
    if kin is not None:
        kin.leave_out(new[0])
    return Waiting(lane, seat, case.record.ids[CANARY], new[0], since)


async def early(mode: QueueMode, seat: Seat, strike: Strike | None, kin: Kin | None) -> Waiting | None:
    """On a faster clock the canary waits before the strike: while the worker is held for it, seconds of its own would
    go by, and its time-outs fire."""
    if strike is None or kind_of(strike.fault) not in TOLD_TO_END or mode.lane.stage.pace is None:
        return None
    return await another_waits(mode, seat, kin)


async def told_to_end(struck: Struck, *, group: bool) -> list[str]:
    """SIGTERM to a worker that is in the middle of its job, and its end. Gives what it held and did not settle."""
    seat, hit, clock = struck.seat, struck.hit, struck.mode.lane.stage.clock
    waiting = struck.waiting
    if waiting is None or waiting.done_here:  # it came before the job, which had to wait for its time
        waiting = struck.waiting = await another_waits(struck.mode, seat, struck.kin)
        trace = struck.mode.lane.trace
        # A worker that fetches ahead does so now.
        await wait_for(
            lambda: waiting.held or trace.quiet_for() >= SETTLED, "the broker to be silent", deadline=STOP_GRACE
        )
    ahead = waiting.held
    started = clock.now()
    seat.worker.send_signal(signal.SIGTERM, group=group)
    hit.link.release(hit.way)
    killed = False
    try:
        await seat.worker.wait(STOP_GRACE)
    except WaitTimeout:
        killed = True
    seconds, code = clock.now() - started, None if killed else seat.worker.returncode
    if killed:
        struck.note(f"the worker did not end within {STOP_GRACE:g} s of SIGTERM and was killed")
    else:
        struck.note(f"the worker ended {seconds:.1f} s after SIGTERM with exit code {code}")
    took = waiting.done_here and not ahead
    if took:
        struck.note("it took a further job after SIGTERM")
    elif waiting.held:
        struck.note("a further job was in its hands already: " + _how(waiting.done_here))
    waiting.ending = Ending(seconds=round(seconds, 3), killed=killed, code=code, took=took)
    left = list(seat.dialect.held())
    await seat.kill()
    return left


def _how(done: bool) -> str:
    return "it did that one too" if done else "another worker gets it"


def ended(struck: Struck, successor: Seat) -> tuple[Seat, Ending]:
    """Whose word on the job counts, and how the worker ended, once all is quiet."""
    seat, waiting = struck.seat, struck.waiting
    assert waiting is not None
    mine = struck.hit.job or struck.running.case.record.jobs[0]
    again = mine in successor.slot.taken
    job = "given back" if again else FINISHED if seat.ends.get(mine) == "succeeded" else "left"
    end = waiting.ending
    told = Ending(end.seconds, end.killed, end.code, job, end.took, waiting.runs)
    return (successor if again else seat), told
