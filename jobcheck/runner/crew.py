"""The workers of a lane: those that are struck, with a spare one that takes over, and those of other queues."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..aio import Tasks
from ..errors import WorkerError
from ..systems.contract import Settings
from .boots import COLD, ZYGOTE
from .lane import Lane, Producer
from .rig import Rig
from .seats import Seat

SEATS = ("w1", "w2")
FIRST = "worker"
"""The seat of a first worker, where those of another role are struck."""


class Crew:
    """The workers of a lane with their seats, and the producer child."""

    def __init__(self, lane: Lane, settings: Settings, seats: list[Seat], producer: Producer) -> None:
        self.lane = lane
        self.settings = settings
        self.seats = seats
        self.producer = producer
        self.active = seats[0]
        self.role = ""
        """Whose workers these are: a role of the rig's, or the first ones."""
        self.others: list[Seat] = []
        """Workers of other roles, which nothing is done to."""
        self.boot = ZYGOTE
        self._tasks = Tasks()
        self._booting: asyncio.Task[None] | None = None
        self._paired = False
        self._newcomer: Seat | None = None

    @classmethod
    async def hire(cls, lane: Lane, *, safe: bool, boot: str, role: str = "") -> Crew:
        """Boots the producer, asks the app for its settings, then boots the workers: two of `role`, and one of each
        other role, which works beside them."""
        system = lane.rig.system
        producer = await lane.producer()
        settings = await system.describe(producer.agent.call, safe=safe)
        lane.broker_is(str(settings.values.get("broker_url", "")))

        async def seat_of(name: str, role: str, *, alone: bool) -> Seat:
            dialect = system.dialect()
            slot = await lane.slot(lane.unused(f"{name}{'s' if safe else ''}"), dialect)
            seat = Seat(lane, slot, dialect, safe, boot if alone else COLD)
            seat.role, seat.alone = role, alone
            return seat

        names = [f"{role}-{name}" for name in SEATS] if role else SEATS
        crew = cls(lane, settings, [await seat_of(name, role, alone=True) for name in names], producer)
        crew.role, crew.boot = role, boot
        beside = [one for one in ("", *lane.rig.crews) if one != role and lane.rig.crews]
        crew.others = [await seat_of(one or FIRST, one, alone=False) for one in beside]
        await asyncio.gather(*(seat.boot() for seat in (*crew.seats[: 2 if crew.spares else 1], *crew.others)))
        for one in (crew.active, *crew.others):
            one.slot.release()
        return crew

    @property
    def spares(self) -> bool:
        """Whether a worker is booted meanwhile and held at its first fetch. Not on a faster clock: kombu drops a fetch
        that is unanswered for 25 s of the worker's own time, and the message goes to a connection that is gone; nor
        where leases run out by themselves, which may take as long."""
        stage = self.lane.stage
        return self.boot != COLD and stage.pace is None and not stage.real_clocks

    async def staffed(self) -> None:
        """Waits until the active worker runs and, with standbys, the spare one is held at its first fetch."""
        if self._booting is not None:
            await self._booting
        if not self.active.alive:
            raise WorkerError(
                f"worker {self.active.slot.name} ended by itself between two trials; its last lines:\n    "
                + "\n    ".join(self.active.tail())
            )

    async def newcomer(self, rig: Rig) -> Seat:
        """A worker of another version, held at its first fetch. It has a seat of its own, and stays for one trial."""
        if self._newcomer is None:
            dialect = rig.system.dialect()
            slot = await self.lane.slot(f"next{len(self.lane.slots)}", dialect)
            self._newcomer = Seat(self.lane, slot, dialect, self.seats[0].safe, COLD)
            self._newcomer.other_rig = rig
            self.seats.append(self._newcomer)
        await self._newcomer.boot()
        return self._newcomer

    async def second(self, first: Seat) -> Seat:
        """The other seat, with a worker that is held at its first fetch, while the first one lives."""
        spare = self._other(first)
        if not spare.alive:
            await spare.boot()
        return spare

    async def replace(self, dead: Seat) -> Seat:
        """The seat that takes over. With standbys, the next spare is booted meanwhile on the seat of the dead one."""
        self.active = await self.second(dead)
        if self.spares:
            self._booting = self._tasks.start(f"boot {dead.slot.name}", dead.boot())
        return self.active

    def filed(self, seat: Seat, jobs: Sequence[str]) -> str:
        """Empty, or how one of the jobs failed: by the word of this seat, or of another one where it has none."""
        others = [one for one in (*self.seats, *self.others) if one is not seat]
        left = [job for job in jobs if job not in seat.ends]
        return seat.filed(jobs) or next(filter(None, (one.filed(left) for one in others)), "")

    async def retire(self, seat: Seat) -> None:
        """Ends a worker that was struck and lives; the other one is the next trial's."""
        await seat.kill()
        (await self.replace(seat)).slot.release()

    async def dismiss(self) -> None:
        """Ends the workers, so that none takes a job that is another crew's."""
        await self.close()
        for seat in (*self.seats, *self.others):
            await seat.kill()
            await seat.slot.close()

    @property
    def spare(self) -> Seat:
        """The seat that is not the active one."""
        return self._other(self.active)

    def _other(self, seat: Seat) -> Seat:
        return next(one for one in self.seats if one not in (seat, self._newcomer))

    async def pair(self) -> None:
        """Both workers take jobs, until `part`."""
        await self.staffed()
        spare = self.spare
        if not spare.alive:
            await spare.boot()
            self._paired = False
        if not self._paired:
            spare.begin()
            spare.slot.release()
            self._paired = True

    async def part(self) -> None:
        """One worker takes jobs, and the other one is a spare that is held at its first fetch, as before `pair`."""
        if not self._paired:
            return
        self._paired = False
        spare = self.spare
        await spare.kill()
        spare.begin()
        if self.spares:
            self._booting = self._tasks.start(f"boot {spare.slot.name}", spare.boot())

    async def close(self) -> None:
        await self._tasks.close()
