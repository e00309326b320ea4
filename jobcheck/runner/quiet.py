"""When a queue is quiet: nothing on the broker, nothing in flight, and what was delivered has ended.

An empty broker alone is not quiet where jobs are acknowledged early; there the worker's own word is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from ..clock import left_of
from ..errors import WorkerError
from ..systems.contract import Broker, Settings
from .kin import Kin
from .lane import Lane
from .seats import Seat

GRACE = 0.05
"""Seconds without a message until an empty broker counts as empty."""
ON_ITS_WAY = 0.5
"""Seconds without a message until a job that was enqueued, and that the broker does not have, is not waited for any
longer: a message that nobody confirms reaches RabbitMQ after the broker was asked how many it has."""
SILENCE = 1.5
"""Seconds without any message until a worker that never tells the end of its jobs is taken to be done."""


OFTEN, SELDOM = 0.003, 0.05
"""Seconds between two looks: while messages come, and where a lease or a retry of minutes is waited for."""


def until_next_look(silence: float) -> float:
    """Seconds until it is worth to look again, after so many seconds without a message."""
    return min(SELDOM, max(OFTEN, silence / 50))


class Quiet:
    """Waits for quiet on one lane; `jobs` are those of the case, `others` the workers that serve other queues."""

    def __init__(
        self,
        lane: Lane,
        settings: Settings,
        jobs: Sequence[str],
        deadline: float,
        others: Sequence[Seat] = (),
        kin: Kin | None = None,
    ) -> None:
        self._lane = lane
        self._others = others
        self._settings = settings
        self._jobs = jobs
        self._deadline = deadline
        self._kin = kin
        """The jobs of the case, where they are followed."""
        self.out_of_reach = False
        """The last wait was given up before its time: a job is due later than that, and there is no faster clock."""

    async def reached(self, seat: Seat, *, stuck: float = 0.0, lease: float = 0.0) -> str:
        """Empty when it became quiet, else what was still going on at the deadline.

        With `stuck`, a worker that moves nothing for so many seconds is not waited for any longer, unless it said that
        it will try again. `lease`: the broker may keep a job to itself for so many seconds of real time, which come on
        top of both.
        """
        lane = self._lane
        system = lane.rig.system
        broker = lane.addresses[system.broker]
        service = cast(Broker, lane.services[system.broker])
        patience = self._deadline + lease
        end = lane.stage.clock.now() + patience
        going = "nothing was looked at"
        self.out_of_reach = False
        while lane.stage.clock.now() < end:
            if not seat.alive:
                return "the worker ended by itself; its last lines: " + " | ".join(seat.tail()[-3:])
            self._check()
            going = self._anywhere(seat)
            if not going:
                depth = await system.depth(service, broker, self._settings)
                for one in (seat, *self._others):  # a delivery that came before the broker's answer is seen first
                    await one.slot.drain()
                if depth == 0 and not self._anywhere(seat):
                    return ""
                going = self._waits(seat) or f"{depth} job(s) on the broker"
            if lane.stage.kept and self._due_in(seat) > end - lane.stage.clock.now() and going == self._waits(seat):
                self.out_of_reach = True
                return going
            if stuck and self._is_stuck(seat, stuck, lease):
                return going
            await asyncio.sleep(until_next_look(lane.trace.quiet_for()))
        return f"not quiet after {lane.stage.patience(patience)}: {going}"

    def _check(self) -> None:
        """Raises WorkerError when somebody whom nothing was done to has ended."""
        self._lane.company.check()
        for other in self._others:
            if not other.alive:
                raise WorkerError(
                    f"worker {other.slot.name} ended by itself; its last lines:\n    " + "\n    ".join(other.tail())
                )

    def _anywhere(self, seat: Seat) -> str:
        """What is still going on at this worker, at those of other queues, or in the app's other processes."""
        found = self._moving(seat) or next((text for one in self._others if (text := self._moving(one))), "")
        return found or self._lane.company.busy()

    def _is_stuck(self, seat: Seat, seconds: float, lease: float) -> bool:
        """Nothing moves, and nothing will. A worker that has not said that its job ended gets twice the time."""
        if seat.slot.in_flight() or self._retries(seat):
            return False
        works = any(job not in seat.ends for job in seat.slot.taken)
        more = lease if seat.dialect.held() else 0.0  # what it holds comes back, to it or to another one
        return self._lane.trace.quiet_for() >= seconds * (2 if works else 1) + more

    def _retries(self, seat: Seat) -> bool:
        return any(how == "retrying" for how in seat.ends.values())

    def _moving(self, seat: Seat) -> str:
        """What is still going on at the worker; empty when nothing is."""
        if flying := seat.slot.in_flight():
            return f"{flying[0].upstream} {flying[0].unit.shape} waits for its answer"
        if queued := self._lane.queued:
            return queued
        silence = self._lane.trace.quiet_for()
        if self._kin is not None and silence < ON_ITS_WAY and (job := self._kin.awaited()):
            return f"{job} was enqueued and not handed out yet"
        taken = seat.slot.taken
        if not taken:
            return "" if silence >= GRACE else "no delivery yet"
        running = [job for job in taken if job not in seat.ends]
        busy = running[0] if running and not self._acknowledged(seat) else ""
        if busy and (seat.tells or silence < SILENCE):
            return self._runs(seat, busy)
        for job in running:
            seat.slot.ended(job)  # its worker tells the end of no job: acknowledged, or silent for long enough
        if seat.slot.polls and not seat.slot.asks:
            # It may have more to do behind the ack.
            return self._runs(seat, busy) if busy else "the worker has not asked for the next job yet"
        return "" if silence >= GRACE / 5 else "messages of a moment ago"

    def _runs(self, seat: Seat, job: str) -> str:
        """`shop.charge has been running for 30 s`: which task of the app hangs is what its owner looks for."""
        trace = self._lane.trace
        task = getattr(seat.dialect, "tasks", {}).get(job, "")
        name = task or f"job {job}"
        if waits := self._waits(seat):
            return waits
        seconds = trace.now() - seat.slot.taken[job]
        return f"{name} has been running for {seconds:.0f} s"

    def _due_in(self, seat: Seat) -> float:
        """Seconds until the last job that the worker holds is due; 0: it holds none until a time."""
        wall = self._lane.stage.job_clock.wall()
        dues = getattr(seat.dialect, "due", {}).items()
        return max((left_of(due, wall) for job, due in dues if job in seat.slot.taken), default=0.0)

    def _waits(self, seat: Seat) -> str:
        """The job that the worker holds until its time has come."""
        for job, due in getattr(seat.dialect, "due", {}).items():
            left = left_of(due, self._lane.stage.job_clock.wall())
            if job in seat.slot.taken and left > 0:
                task = getattr(seat.dialect, "tasks", {}).get(job, "") or f"job {job}"
                return f"{task} is not due for another {left:.0f} s (a countdown, an eta, or the delay of a retry)"
        return ""

    def _acknowledged(self, seat: Seat) -> bool:
        """With late acks, a worker that acknowledged all it was given has ended it.

        That it holds nothing is not enough: on Redis a delivery is in nobody's hands until its reservation is written.
        """
        late = self._settings.guarantee == "at-least-once"
        return late and seat.slot.settled >= seat.slot.deliveries and not seat.dialect.held()
