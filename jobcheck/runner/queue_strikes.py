"""What each strike does to a worker that holds a job, how the job system gets over it, and when all has ended."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..aio import wait_for
from ..errors import WaitTimeout, WorkerError
from ..faults import strikes as known
from ..tap.gate import Armed, HoldFetch
from ..tap.link import Link
from ..tap.sight import Sight
from ..workers.sockets import owners
from . import leases
from .ending import Waiting, ended, told_to_end
from .kin import Kin
from .lapse import Lapse
from .locks import ends_or_waits
from .quiet import Quiet
from .refusing import refuse
from .seats import Seat
from .trial import Running

if TYPE_CHECKING:
    from .crew import Crew
    from .queue import QueueMode

STUCK = 2.0
"""Seconds of silence after which a worker that lives and leaves its job is given up, and another one takes over."""
CHILD_MISSED = 6.0
"""The same where one of its children died: Celery looks after its children every 5 s (`AsynPool.timers`)."""


@dataclass(slots=True)
class Struck:
    """A trial at the moment of its strike."""

    mode: QueueMode
    crew: Crew
    running: Running
    gate: Armed | None
    seat: Seat
    quiet: Quiet
    kin: Kin | None = None
    """The jobs of the case, where they are followed."""
    label: str = ""
    """The name of the job that is struck, where there are several."""
    used: list[Seat] = field(default_factory=list)
    """Workers that live and were struck: they are replaced before the next trial."""
    waiting: Waiting | None = None
    """The job that waits while a worker is told to end."""

    @property
    def hit(self) -> Sight:
        """The held message."""
        assert self.gate is not None
        assert self.gate.hit is not None
        return self.gate.hit

    @property
    def detail(self) -> str:
        assert self.running.strike is not None
        return known.detail_of(self.running.strike.fault)

    @property
    def others(self) -> int:
        """How often a job was given out that is not the case's."""
        return len(self.waiting.deliveries()) if self.waiting is not None else 0

    @property
    def lapse(self) -> Lapse:
        """How long the broker may keep the job to itself by now."""
        return leases.lapse_of(self.mode)

    def note(self, text: str) -> None:
        self.running.notes.append(text)

    async def waits(self, seat: Seat) -> None:
        """Waits for quiet at a seat; what was still going on at the deadline is kept."""
        self.running.unsettled = await self.quiet.reached(seat, lease=self.lapse.real)


async def carry_out(struck: Struck) -> Seat:
    """Strikes, lets the system recover, waits for the end. Gives the seat whose word on the job counts."""
    assert struck.running.strike is not None
    before = struck.seat.slot.deliveries
    match known.kind_of(struck.running.strike.fault):
        case known.KILL:
            seat = await _take_over(struck)
        case known.KILL_CHILD:
            seat = await _kill_child(struck)
        case known.KILL_PARENT:
            seat = await _kill_parent(struck)
        case known.LOSE_REQUEST | known.LOSE_REPLY:
            struck.hit.link.lose()
            seat = await _goes_on(struck)
        case known.ERROR_REPLY:
            refuse(struck.mode.lane, struck.hit, struck.detail)
            seat = await _goes_on(struck)
        case known.ZOMBIE:
            seat = await _zombie(struck)
        case known.TERM | known.TERM_GROUP:
            seat = await _terminate(struck)
        case known.DUPLICATE:
            seat = await _duplicate(struck)
        case known.DEPLOY:
            seat = await _deploy(struck)
        case other:
            raise ValueError(f"{other} is no strike of a worker")
    later = sum(one.slot.deliveries for one in struck.crew.seats if one is not struck.seat)
    later += max(struck.seat.slot.deliveries - before, 0)
    struck.running.deliveries_after = later - struck.others
    if struck.kin is not None:  # what other jobs of the case were given is not this job's redelivery
        struck.running.deliveries_after = struck.kin.handed_out(struck.hit.job, struck.hit.seq)
    return seat


# The worker is dead, or is given up: another one takes over.


async def _take_over(struck: Struck) -> Seat:
    """SIGKILL to what is left of the worker; the job system recovers, and the spare one finishes."""
    seat, crew = struck.seat, struck.crew
    held = list(seat.dialect.held())
    await seat.kill()
    return await _finishes(struck, held, lambda: crew.replace(seat))


async def _kill_child(struck: Struck) -> Seat:
    """SIGKILL to the process that sent the message; where that is the main process, the worker is dead."""
    seat = struck.seat
    worker, pid = seat.worker, _sender(struck)
    if pid == worker.pid:
        struck.note("the main process itself sent it: the whole worker died")
        return await _take_over(struck)
    theirs = _links_of(seat, pid)
    await worker.kill_child(pid)
    for link in theirs:
        await link.cut(2.0)
    seat.slot.release()
    return await _goes_on(struck, stuck=CHILD_MISSED)


def _sender(struck: Struck) -> int:
    seat, link = struck.seat, struck.hit.link
    found = owners(seat.pids(), link.peer_port, link.listener.port, seat.slot.host)
    if len(found) != 1:
        raise WorkerError(
            f"expected one process behind the connection to {struck.hit.upstream}, found {found or 'none'}: a "
            "connection that was made before a fork belongs to nobody alone"
        )
    return found[0]


def _links_of(seat: Seat, pid: int) -> list[Link]:
    """The connections that are this process's alone."""
    pids = seat.pids()
    return [
        link for link in seat.slot.links if owners(pids, link.peer_port, link.listener.port, seat.slot.host) == [pid]
    ]


async def _kill_parent(struck: Struck) -> Seat:
    """SIGKILL to the main process alone. Its children go on with what they have; then another worker comes."""
    seat = struck.seat
    worker = seat.worker
    held = list(seat.dialect.held())
    mains = _links_of(seat, worker.pid)
    worker.send_signal(signal.SIGKILL)
    await worker.wait(5.0)
    for link in mains:
        await link.cut(2.0)
    seat.slot.release()  # what the main process still had to say is gone with its connections
    await _silent(struck, seat, 0.3)
    struck.note("the main process died alone; its children had ended what they had before another worker came")
    await seat.kill()
    return await _finishes(struck, held, lambda: struck.crew.replace(seat))


# The worker lives.


async def _goes_on(struck: Struck, *, stuck: float = STUCK) -> Seat:
    """Its own error handling decides. A worker that leaves its job where it is gets a successor."""
    seat = struck.seat
    struck.running.unsettled = await struck.quiet.reached(seat, stuck=stuck, lease=struck.lapse.of_living)
    if not struck.running.unsettled or struck.quiet.out_of_reach:  # a successor would only wait as well
        struck.used.append(seat)
        return seat
    if seat.alive:
        struck.note(f"the worker lives and does not go on with it ({struck.running.unsettled}): its lease runs out")
    else:
        struck.note(f"the worker ended by itself: {struck.running.unsettled}")
    return await _take_over(struck)


async def _zombie(struck: Struck) -> Seat:
    """The worker stands still until its lease is gone and another one has finished; then it goes on."""
    seat, hit = struck.seat, struck.hit
    held = list(seat.dialect.held())
    seat.worker.pause()
    broker = struck.mode.system.broker
    lapse = struck.lapse
    if not lapse.lease and not lapse.real:  # there is no lease but the connection
        for link in [link for link in seat.slot.links if link.listener.upstream == broker]:
            if link is not hit.link:
                await link.cut(2.0)
        if hit.upstream == broker:
            await hit.link.cut(2.0)
    await leases.rewind(struck, held)
    spare = await struck.crew.second(seat)
    spare.begin()
    spare.slot.release()
    await _overtaken(struck, spare, lease=lapse.real)
    leases.ran_out(struck, lapse)
    seat.slot.release()
    seat.worker.resume()
    await struck.waits(spare)
    await _silent(struck, seat, 0.3)
    struck.used.append(seat)
    return spare


async def _terminate(struck: Struck) -> Seat:
    """SIGTERM, the grace time, then SIGKILL; whatever the worker gives back or leaves, another one does."""
    assert struck.running.strike is not None
    seat = struck.seat
    left = await told_to_end(struck, group=struck.running.strike.fault == known.TERM_GROUP)
    spare = await _finishes(struck, left, lambda: struck.crew.replace(seat))
    last, struck.running.ending = ended(struck, spare)
    return last


async def _deploy(struck: Struck) -> Seat:
    """The same, and who comes then is of the next version."""
    seat, rig = struck.seat, struck.mode.next_rig
    assert rig is not None
    left = await told_to_end(struck, group=False)
    new = await _finishes(struck, left, lambda: struck.crew.newcomer(rig))
    last, struck.running.ending = ended(struck, new)
    await new.kill()
    (await struck.crew.replace(seat)).slot.release()
    return last


async def _finishes(struck: Struck, left: list[str], comes: Callable[[], Awaitable[Seat]]) -> Seat:
    """The lease of what was left runs out; then another worker comes and does what is to do. One that boots for it
    waits at its first fetch no longer than it must: on a fast clock that is soon too long."""
    lapse = struck.lapse
    await leases.rewind(struck, left)
    seat = await comes()
    seat.begin()
    seat.slot.release()
    await struck.waits(seat)
    leases.ran_out(struck, lapse)
    return seat


async def deliver_again(struck: Struck) -> Seat:
    """The job has ended well; the same message comes once more."""
    for job in list(struck.seat.ends):
        struck.seat.ends.pop(job)
    before = struck.seat.slot.deliveries
    await _copy(struck)
    await struck.waits(struck.seat)
    struck.running.deliveries_after = struck.seat.slot.deliveries - before
    struck.running.fired = struck.running.deliveries_after > 0
    struck.used.append(struck.seat)
    return struck.seat


async def _duplicate(struck: Struck) -> Seat:
    """The same message once more, before the first one is begun or while it is worked on."""
    seat, hit = struck.seat, struck.hit
    struck.used.append(seat)
    if struck.detail == known.BEFOREHAND:
        await _copy(struck)
        hit.link.release(hit.way)
        await struck.waits(seat)
        return seat
    seat.slot.gate = HoldFetch()
    if seat.slot.polls:  # the request for the next job that is out already would get the copy
        await wait_for(lambda: not seat.slot.asks, "the worker's own fetch to end", deadline=10.0)
    spare = await struck.crew.second(seat)
    await _copy(struck)
    spare.begin()
    spare.slot.release()
    await _overtaken(struck, spare)
    hit.link.release(hit.way)
    await _silent(struck, seat, 0.1)
    seat.slot.release()
    await struck.waits(spare)
    await struck.waits(seat)
    return spare if spare.slot.deliveries else seat


async def _copy(struck: Struck) -> None:
    mode = struck.mode
    mine = struck.kin.delivery(struck.label) if struck.kin is not None and struck.label else None
    first = mine or next(sight for sight in mode.lane.trace.sights if sight.role == "delivery")
    address = mode.lane.addresses[mode.system.broker]
    await mode.system.duplicate(address, first.unit, struck.crew.producer.agent.call, next_up=True)
    struck.note("the same message was put on the broker once more")


async def _overtaken(struck: Struck, spare: Seat, *, lease: float = 0.0) -> None:
    """Waits until the second worker has finished, or waits for something that the first one holds."""
    seat = struck.seat

    def finished() -> bool:
        taken = spare.slot.taken
        told = bool(taken) and all(job in spare.ends for job in taken)
        return told or spare.slot.settled > 0 or not spare.alive

    flying, lane = spare.slot.in_flight, struck.mode.lane
    if not await ends_or_waits(lane, finished, flying, lambda: seat.slot.links, lease=lease):
        struck.note(f"{spare.slot.name} waited for {seat.slot.name}, which went on meanwhile")


async def _silent(struck: Struck, seat: Seat, seconds: float) -> None:
    """Waits until a worker has sent what it had to send: its messages are answered, and no more come."""
    trace = struck.mode.lane.trace
    try:
        await wait_for(
            lambda: not seat.slot.in_flight() and trace.quiet_for() >= seconds,
            f"{seat.slot.name} to be silent",
            deadline=10.0,
        )
    except WaitTimeout:
        struck.note(f"{seat.slot.name} was still at work 10 s later")
