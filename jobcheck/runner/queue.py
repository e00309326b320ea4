"""Queue mode: the job through its real broker and a real worker, with a spare one that takes over after a kill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..aio import Tasks, wait_for
from ..errors import CaseError, UsageError, WaitTimeout, WorkerError
from ..faults.strikes import AFTERWARDS, DUPLICATE, ORDER, STOPS, kind_of
from ..history.records import Point, Strike, TrialRecord
from ..services.base import shown
from ..services.spec import Address
from ..systems.contract import Settings, System
from ..tap.gate import Armed
from ..tap.listener import Slot
from ..tap.sight import Sight
from ..wire.unit import Change
from . import callbacks, ending, leases, ordering, queue_strikes
from .boots import ZYGOTE
from .crew import Crew
from .kin import Kin
from .lane import CANARY, Lane
from .queue_strikes import Struck
from .quiet import Quiet
from .rig import Rig
from .seats import Seat
from .trial import Running, Sampler, divergence, first_of, foreign, record, settle

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
        self.at = ""
        """The process of the app that is struck in the worker's place."""
        self.callbacks = 0
        """How many callbacks of providers a clean case causes."""
        self.timed: tuple[str, ...] = ()
        """What a clean case compares with the clock of a database: `db: SELECT claims with now()`."""
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
        await self.lane.accompanied()

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
            trial = await self._trial(purpose, strike, point)
            if purpose == "warm-up" and (role := self._role_of(trial)) != crew.role:
                await self._goes_to(role)
                trial = await self._trial(purpose, strike, point)
            return trial
        except WorkerError:
            self.lane.kept.pop(self._crew_key, None)  # the next one hires anew
            await crew.dismiss()
            raise

    def _role_of(self, trial: TrialRecord) -> str:
        """Whose queue the job comes by: its workers are those that are struck."""
        taken = {op.worker for op in trial.operations if op.role == "delivery" and op.job in trial.case.jobs[:1]}
        return next((one.role for one in self._crew.others if one.slot.name in taken), self._crew.role)

    async def _goes_to(self, role: str) -> None:
        """Another crew: the workers of this role take the place of the first ones, which live on beside them."""
        await self._crew.dismiss()
        crew = await Crew.hire(self.lane, safe=self.safe, boot=self.boot, role=role)
        self._crew = self.lane.kept[self._crew_key] = crew
        await crew.staffed()

    async def _trial(self, purpose: str, strike: Strike | None, point: Point | None) -> TrialRecord:
        lane, crew = self.lane, self._crew
        lane.check_alive()
        reordered = strike if strike is not None and kind_of(strike.fault) == ORDER else None
        seat = crew.active
        if reordered is not None:
            await seat.kill()  # nobody fetches while the jobs are put into their order
        lane.trace.begin()
        since = await lane.prime()
        kin, called_back = self._kin(), callbacks.varied(strike)
        if strike is not None and called_back:
            callbacks.vary(lane, strike)
        gated = strike is not None and strike.fault != AFTER_SUCCESS and reordered is None and not called_back
        gate = None
        if gated and strike is not None and point is not None:
            gate = _armed(strike, point, kin, at=self.at)
        slot, pids = self.aim(seat)
        sampler = Sampler(pids, lane.stack_file(slot), lane.rig)
        if reordered is None:
            slot.gate = gate or (sampler if purpose == "recording" else None)
        for one in (*crew.seats, *crew.others):  # what a spare one did in an earlier trial is not of this one
            one.begin()
        started = lane.stage.clock.now()
        case = await (lane.canary_case() if self.enqueue == CANARY else lane.new_case(self.enqueue))
        jobs = await self._relayed(crew, gate.fired if gate is not None else asyncio.Event())
        case.record = replace(case.record, jobs=tuple(jobs))
        await self._ask_for_settings()
        if kin is not None:
            kin.owns(case.record.ids)
        running = Running(purpose, strike, case, since, started)
        if reordered is not None:
            seat = await ordering.in_other_order(self, reordered, running, jobs)
        waiting = await ending.early(self, seat, strike, kin)
        quiet = Quiet(lane, self.settings, jobs, lane.stage.deadline, crew.others, kin)
        struck: Struck | None = None
        label = point.job if point is not None else ""
        try:
            await self._struck_or_quiet(gate, quiet, seat, running)
            if gate is not None and gate.fired.is_set():
                running.fired = True
                running.diverged = divergence(lane, slot.name, gate, self.points)
                await slot.drain()
                struck = Struck(self, crew, running, gate, seat, quiet, kin, label, waiting=waiting)
                seat = await self.carry_out(struck)
            elif reordered is not None:
                running.fired = ordering.came_so(self, reordered, jobs)
            elif strike is not None and called_back and not running.unsettled:
                await callbacks.hand_over(lane, strike, running)
                running.unsettled = await quiet.reached(seat)
            elif strike is not None and not gated and not running.unsettled:
                struck = Struck(self, crew, running, None, seat, quiet, kin, label)
                seat = await queue_strikes.deliver_again(struck)
        finally:
            for each in (slot, *(one.slot for one in crew.seats)):
                if each.gate in (gate, sampler):  # not that of a spare one, which waits at its first fetch
                    each.gate = None
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
            self.callbacks = callbacks.made(lane)
            self.timed = leases.timed(lane)
        running.settled = not running.unsettled
        running.beyond = leases.not_over(self) if running.unsettled else ""
        held = (getattr(one.dialect, "due", {}) for one in (*crew.seats, *crew.others))
        running.dues = [due for dues in held for due in dues.values()]
        running.deliveries = sum(one.slot.deliveries for one in crew.seats)
        running.deliveries -= struck.others if struck is not None else 0
        if kin is not None:
            running.tree, jobs = kin.tree, kin.jobs
        running.filed = crew.filed(seat, jobs) or await self.system.filed(lane.addresses[self.system.broker], jobs)
        clean = running.purpose in ("warm-up", "recording")
        if clean and (shorter := leases.shorter_than_the_job(self, jobs)):
            running.problems.append(shorter)
        if running.filed and clean:
            running.problems.append(f"the job failed in a clean run: {running.filed}")
        if running.settled and not running.problems:
            seat.warm = seat.warm or seat.slot.deliveries > 0
        for one in struck.used if struck is not None else ():
            await crew.retire(one)
        trial = await record(lane, self.key, running)
        callbacks.heal(lane)
        return trial

    def _kin(self) -> Kin | None:
        """The family of the case that comes, where its jobs are followed."""
        late = self.settings.guarantee == "at-least-once"
        for seat in (*self._crew.seats, *self._crew.others):
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

    def aim(self, seat: Seat) -> tuple[Slot, Callable[[], Sequence[int]]]:
        """Whom strikes hit: the taps and the processes."""
        return seat.slot, seat.pids

    async def carry_out(self, struck: Struck) -> Seat:
        """Strikes, and waits for the end. Gives the seat whose word on the job counts."""
        return await queue_strikes.carry_out(struck)

    async def _ask_for_settings(self) -> None:
        if self._settings is None and self.task:
            call = self._crew.producer.agent.call
            self._settings = await self.system.describe(call, safe=self.safe, task=self.task)

    async def _relayed(self, crew: Crew, hit: asyncio.Event) -> list[str]:
        """The same, also where the case only leaves a wish, and another process of the app enqueues. None where that
        process was hit before."""
        if not self._pushes() and self.lane.company.names:
            try:
                await wait_for(
                    lambda: self._pushes() or hit.is_set() or not self.lane.company.alive,
                    "a process of the app to enqueue the case's job",
                    deadline=self.lane.stage.deadline,
                    every=0.003,
                )
            except WaitTimeout:
                pass  # what is said then says more
            self.lane.company.check()
        relays = {sight.worker for sight in self._pushes()}
        if self.follow and relays and "producer" not in relays:
            raise UsageError(
                f"{self.enqueue} leaves a wish, and {min(relays)} enqueues the job: when it is begun, nobody knows yet "
                "whose it is, so it cannot be followed",
                hint="explore it without --follow, or name a function that enqueues the first job itself",
            )
        return [] if hit.is_set() and not self._pushes() else self._enqueued(crew)

    def _pushes(self) -> list[Sight]:
        """The jobs that were put on the broker for the case, by whoever makes it or relays it."""
        makers = ("producer", *self.lane.company.names)
        return [
            sight
            for sight in self.lane.trace.sights
            if sight.worker in makers and sight.role == "enqueue" and sight.job
        ]

    def _enqueued(self, crew: Crew) -> list[str]:
        """Ids of the jobs that the case put on the broker. Raises CaseError with the reason when there is none."""
        sights = self._pushes()
        for sight in sights:
            self.task = self.task or str(getattr(crew.producer.dialect, "tasks", {}).get(sight.job, ""))
        if sights:
            return list(dict.fromkeys(sight.job for sight in sights))
        raise CaseError(*_why_nothing_came(self.enqueue, crew.settings, crew.producer.slot, self.system.broker))


def _armed(strike: Strike, point: Point, kin: Kin | None, *, at: str) -> Armed:
    """The gate that waits for the point, in the job that it belongs to. A process of the app says what changes nothing
    any number of times: that is not counted."""
    freeze = kind_of(strike.fault) in STOPS
    if at:
        return Armed(
            point, strike.when, window=True, freeze=freeze, whose=lambda sight: sight.unit.change is not Change.NO
        )
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
