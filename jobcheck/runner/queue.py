"""Queue mode: the job through its real broker and a real worker, with a spare one that takes over after a kill."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ..aio import Tasks
from ..errors import CaseError, WorkerError
from ..faults.strikes import AFTERWARDS, DUPLICATE, ORDER, STOPS, kind_of
from ..history.records import Point, Strike, TrialRecord
from ..services.base import shown
from ..services.spec import Address
from ..systems.contract import Settings, System
from ..tap.gate import Armed
from ..tap.listener import Slot
from . import ordering, queue_strikes
from .boots import COLD, ZYGOTE
from .kin import Kin
from .lane import CANARY, Lane, Producer
from .queue_strikes import Struck
from .quiet import Quiet
from .rig import Rig
from .seats import Seat
from .trial import Running, Sampler, divergence, first_of, foreign, record, settle

SEATS = ("w1", "w2")
AFTER_SUCCESS = f"{DUPLICATE} {AFTERWARDS}"
"""A strike at no message: the job runs to its end first."""


class QueueMode:
    """One worker takes the job; when it is killed, the spare one takes over, and the next spare is booted meanwhile."""

    name = "queue"

    def __init__(
        self, lane: Lane, subject: str, enqueue: str, *, safe: bool = False, boot: str = ZYGOTE, follow: bool = False
    ) -> None:
        self.lane = lane
        self.subject = subject
        self.key = f"{subject}/{lane.rig.system.name}"
        self.enqueue = enqueue
        self.safe = safe
        self.boot = boot
        self.follow = follow
        """The jobs that the job causes are explored with it."""
        self.points: Sequence[Point] = ()
        self.next_rig: Rig | None = None
        """The rig at the next version of the app, where a deploy is a strike."""
        self.task = ""
        """Name of the job's task, once it was seen on the wire."""
        self._settings: Settings | None = None
        """Those of the task, once its name is known: a task may have options of its own."""
        self._tasks = Tasks()

    @property
    def system(self) -> System:
        return self.lane.rig.system

    @property
    def settings(self) -> Settings:
        return self._settings or self._crew.settings

    @property
    def crew(self) -> Crew:
        """Who works here; there while the mode is open."""
        return self._crew

    def enqueued(self) -> list[str]:
        """Ids of the jobs that the present case put on the broker. Raises CaseError when there is none."""
        return self._enqueued(self._crew)

    async def open(self) -> None:
        if self._crew_key not in self.lane.kept:
            self.lane.kept[self._crew_key] = await Crew.hire(self.lane, safe=self.safe, boot=self.boot)
        self._crew: Crew = self.lane.kept[self._crew_key]

    @property
    def _crew_key(self) -> str:
        return f"queue safe={self.safe}"

    async def close(self) -> None:
        await self._tasks.close()

    async def run(self, purpose: str, strike: Strike | None = None, point: Point | None = None) -> TrialRecord:
        crew = self._crew
        try:
            await crew.staffed()
            if strike is not None and not crew.active.warm:
                await self._trial("warm-up", None, None)
            return await self._trial(purpose, strike, point)
        except WorkerError:
            self.lane.kept.pop(self._crew_key, None)  # the next one hires anew
            await crew.dismiss()
            raise

    async def _trial(self, purpose: str, strike: Strike | None, point: Point | None) -> TrialRecord:
        lane, crew = self.lane, self._crew
        lane.check_alive()
        reordered = strike if strike is not None and kind_of(strike.fault) == ORDER else None
        seat = crew.active if reordered is None else await ordering.nobody_fetches(self)
        lane.trace.begin()
        since = await lane.prime()
        kin = self._kin()
        gated = strike is not None and strike.fault != AFTER_SUCCESS and reordered is None
        gate = None
        if gated and strike is not None and point is not None:
            gate = _armed(strike, point, kin)
        sampler = Sampler(seat.pids, lane.stack_file(seat.slot), lane.rig)
        if reordered is None:
            seat.slot.gate = gate or (sampler if purpose == "recording" else None)
        seat.begin()
        started = lane.stage.clock.now()
        case = await (lane.canary_case() if self.enqueue == CANARY else lane.new_case(self.enqueue))
        jobs = self._enqueued(crew)
        case.record = replace(case.record, jobs=tuple(jobs))
        await self._ask_for_settings()
        if kin is not None:
            kin.owns(case.record.ids)
        running = Running(purpose, strike, case, since, started)
        if reordered is not None:
            await ordering.in_other_order(self, seat, reordered, running, jobs)
        quiet = Quiet(lane, self.settings, jobs, lane.stage.deadline)
        struck: Struck | None = None
        label = point.job if point is not None else ""
        try:
            await self._struck_or_quiet(gate, quiet, seat, running)
            if gate is not None and gate.fired.is_set():
                running.fired = True
                running.diverged = divergence(lane, seat.slot.name, gate, self.points)
                await seat.slot.drain()
                struck = Struck(self, crew, running, gate, seat, quiet, kin, label)
                seat = await queue_strikes.carry_out(struck)
            elif reordered is not None:
                running.fired = ordering.came_so(self, reordered, jobs)
            elif strike is not None and not gated and not running.unsettled:
                struck = Struck(self, crew, running, None, seat, quiet, kin, label)
                seat = await queue_strikes.deliver_again(struck)
        finally:
            for one in crew.seats:
                if one.slot.gate in (gate, sampler):  # not that of a spare one, which waits at its first fetch
                    one.slot.gate = None
            await sampler.close()
        return await self._ended(running, seat, struck, quiet, sampler, kin)

    async def _ended(
        self, running: Running, seat: Seat, struck: Struck | None, quiet: Quiet, sampler: Sampler, kin: Kin | None
    ) -> TrialRecord:
        """Settles what is to settle, and closes the trial; `seat` has the word on how the jobs ended."""
        lane, crew = self.lane, self._crew
        jobs: Sequence[str] = running.case.record.jobs
        if lane.rig.settle and not running.unsettled:
            await settle(lane, running)
            running.unsettled = await quiet.reached(crew.active)
        if running.purpose == "recording":
            running.problems += foreign(sampler, lane)
        running.settled = not running.unsettled
        running.deliveries = sum(one.slot.deliveries for one in crew.seats)
        running.deliveries -= struck.others if struck is not None else 0
        if kin is not None:
            running.tree, jobs = kin.tree, kin.jobs
        running.filed = crew.filed(seat, jobs) or await self.system.filed(lane.addresses[self.system.broker], jobs)
        if running.filed and running.purpose in ("warm-up", "recording"):
            running.problems.append(f"the job failed in a clean run: {running.filed}")
        if running.settled and not running.problems:
            seat.warm = seat.warm or seat.slot.deliveries > 0
        for one in struck.used if struck is not None else ():
            await crew.retire(one)
        return await record(lane, self.key, running)

    def _kin(self) -> Kin | None:
        """The family of the case that comes, where its jobs are followed."""
        late = self.settings.guarantee == "at-least-once"
        for seat in self._crew.seats:
            seat.one_at_a_time(self.follow, late=late)
        return Kin(self.lane.trace) if self.follow else None

    async def _struck_or_quiet(self, gate: Armed | None, quiet: Quiet, seat: Seat, running: Running) -> None:
        """Waits until the strike's point is reached, or all is quiet. A job that only the rig's hooks cause, such as a
        relay, has points too where jobs are followed."""
        lane = self.lane
        for hooked in (False, True):
            watch = self._tasks.start(f"quiet {running.case.record.id}", quiet.reached(seat))
            try:
                if gate is not None:
                    await first_of(gate.fired, watch, seconds=lane.stage.deadline)
                if gate is not None and gate.fired.is_set():
                    return
                running.unsettled = await watch
            finally:
                watch.cancel()
            if hooked or not self.follow or not lane.rig.settle or running.unsettled:
                return
            await settle(lane, running)

    async def _ask_for_settings(self) -> None:
        if self._settings is None and self.task:
            call = self._crew.producer.agent.call
            self._settings = await self.system.describe(call, safe=self.safe, task=self.task)

    def _enqueued(self, crew: Crew) -> list[str]:
        """Ids of the jobs that the case put on the broker. Raises CaseError with the reason when there is none."""
        sights = [
            sight
            for sight in self.lane.trace.sights
            if sight.worker == "producer" and sight.role == "enqueue" and sight.job
        ]
        for sight in sights:
            self.task = self.task or str(getattr(crew.producer.dialect, "tasks", {}).get(sight.job, ""))
        if sights:
            return list(dict.fromkeys(sight.job for sight in sights))
        raise CaseError(*_why_nothing_came(self.enqueue, crew.settings, crew.producer.slot, self.system.broker))


def _armed(strike: Strike, point: Point, kin: Kin | None) -> Armed:
    """The gate that waits for the point, in the job that it belongs to."""
    freeze = kind_of(strike.fault) in STOPS
    if kin is None or not point.job:
        return Armed(point, strike.when, window=False, freeze=freeze)
    return Armed(point, strike.when, window=False, freeze=freeze, whose=lambda sight: kin.label(sight.job) == point.job)


def _why_nothing_came(function: str, settings: Settings, slot: Slot, broker: str) -> tuple[str]:
    what = f"{function} ran, and no job arrived on the broker"
    if settings.eager:
        return (f"{what}: the app runs jobs eagerly (task_always_eager), so nothing is ever enqueued; set it to False",)
    listener = slot.listeners[broker]
    url = str(settings.values.get("broker_url", ""))
    if not listener.bytes and f"{slot.host}:{listener.port}" not in url:
        return (
            f"{what}: the producer never used the tap of {broker!r}, the app's broker is {_masked(url) or 'not set'}; "
            "name the variable that the app reads in the rig's env",
        )
    return (
        f"{what}: {'it talked to the broker but' if listener.bytes else 'it'} enqueued nothing; was the call inside a "
        "transaction whose on_commit never fired, or behind a condition?",
    )


def _masked(url: str) -> str:
    """The URL for people: without the password."""
    try:
        return shown(Address.parse(url)) if url else ""
    except ValueError:
        return "no URL"


class Crew:
    """The workers of a lane with their seats, and the producer child."""

    def __init__(self, lane: Lane, settings: Settings, seats: list[Seat], producer: Producer) -> None:
        self.lane = lane
        self.settings = settings
        self.seats = seats
        self.producer = producer
        self.active = seats[0]
        self.boot = ZYGOTE
        self._tasks = Tasks()
        self._booting: asyncio.Task[None] | None = None
        self._paired = False
        self._newcomer: Seat | None = None

    @classmethod
    async def hire(cls, lane: Lane, *, safe: bool, boot: str) -> Crew:
        """Boots the producer, asks the app for its settings, then boots the workers."""
        system = lane.rig.system
        producer = await lane.producer()
        settings = await system.describe(producer.agent.call, safe=safe)
        lane.broker_is(str(settings.values.get("broker_url", "")))
        seats = []
        for name in SEATS:
            seat_dialect = system.dialect()
            seats.append(
                Seat(lane, await lane.slot(f"{name}{'s' if safe else ''}", seat_dialect), seat_dialect, safe, boot)
            )
        crew = cls(lane, settings, seats, producer)
        crew.boot = boot
        await asyncio.gather(*(seat.boot() for seat in seats[: 2 if boot != COLD else 1]))
        crew.active.slot.release()
        return crew

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
        if self.boot != COLD:
            self._booting = self._tasks.start(f"boot {dead.slot.name}", dead.boot())
        return self.active

    def filed(self, seat: Seat, jobs: Sequence[str]) -> str:
        """Empty, or how one of the jobs failed: by the word of this seat, or of another one where it has none."""
        others = [one for one in self.seats if one is not seat]
        left = [job for job in jobs if job not in seat.ends]
        return seat.filed(jobs) or next(filter(None, (one.filed(left) for one in others)), "")

    async def retire(self, seat: Seat) -> None:
        """Ends a worker that was struck and lives; the other one is the next trial's."""
        await seat.kill()
        (await self.replace(seat)).slot.release()

    async def dismiss(self) -> None:
        """Ends the workers, so that none takes a job that is another crew's."""
        await self.close()
        for seat in self.seats:
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
        if self.boot != COLD:
            self._booting = self._tasks.start(f"boot {spare.slot.name}", spare.boot())

    async def close(self) -> None:
        await self._tasks.close()
