"""One trial: what both modes share - sampling the stack, and turning what was seen into a record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..aio import Tasks, wait_for
from ..errors import CaseError
from ..history.ids import short_id
from ..history.records import Effect, Ending, Member, Operation, Point, Strike, TrialRecord
from ..tap.gate import Armed
from ..tap.sight import IN, OUT, Sight
from ..wire.unit import Change, Kind
from ..workers.sockets import peers
from ..workers.stacks import user_frame
from . import around, clocks
from .lane import Case, Lane
from .rig import Rig

NOT_KEPT = ("noise", "poll")


class Mode(Protocol):
    """How a job is run: the handler alone, or through its queue."""

    name: str
    """`handler` or `queue`."""
    lane: Lane
    subject: str
    key: str
    """Subject and system, as ids are made of them: `naive/celery-redis`."""
    points: Sequence[Point]
    """The recorded points, once they are known."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def run(self, purpose: str, strike: Strike | None = None, point: Point | None = None) -> TrialRecord: ...


@dataclass(slots=True)
class Running:
    """A trial while it runs."""

    purpose: str
    strike: Strike | None
    case: Case
    since: int
    started: float
    fired: bool = False
    diverged: str = ""
    deliveries: int = 0
    deliveries_after: int = 0
    settled: bool = True
    unsettled: str = ""
    beyond: str = ""
    """Why the deadline says nothing of it."""
    dues: Sequence[str] = ()
    """When jobs are due that workers hold until then (ISO 8601)."""
    filed: str = ""
    tree: tuple[Member, ...] = ()
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ending: Ending | None = None


class Sampler:
    """A gate that holds each message that may change state, takes the stack of its sender, and passes it on."""

    def __init__(self, pids: Callable[[], Sequence[int]], stacks: Path, rig: Rig) -> None:
        self._pids = pids
        self._stacks = stacks
        self._root = rig.folder
        self._packages = rig.packages
        self._tasks = Tasks()
        self.foreign: dict[str, None] = {}
        """Whom the job talks to around the taps."""

    def holds(self, sight: Sight) -> bool:
        unit = sight.unit
        if sight.way != OUT or unit.kind not in (Kind.REQUEST, Kind.OPAQUE) or sight.role in NOT_KEPT:
            return False
        if unit.change not in (Change.YES, Change.MAYBE):
            return False
        self._tasks.start("stack", self._sample(sight))
        return True

    async def _sample(self, sight: Sight) -> None:
        try:
            # The fork's first message may be here before the agent has told its pid.
            pids = await wait_for(self._pids, "the pid of the process that sent a message", deadline=2.0)
            listener = sight.link.listener
            sight.code = await user_frame(
                pids,
                sight.link.peer_port,
                self._stacks,
                self._root,
                packages=self._packages,
                server_port=sight.link.own_port,
                server_host=listener.slot.host,
            )
            for host, port in peers(pids):
                if host != listener.slot.host and (foreign := around.named(host, port)):
                    self.foreign[foreign] = None
        finally:
            sight.link.release(OUT)

    async def close(self) -> None:
        await self._tasks.close()


def foreign(sampler: Sampler, lane: Lane) -> list[str]:
    """One sentence for each peer that the job reached, or wanted, beside the taps."""
    return around.sentences(lane, sampler.foreign) + around.refusals(lane)


def kept(lane: Lane) -> tuple[Operation, ...]:
    """The operations of the trial that a reader needs: no polls, no noise, no handshakes."""
    sights = [
        sight
        for sight in lane.trace.sights
        if sight.role not in NOT_KEPT and sight.unit.kind is not Kind.CONTROL and sight.unit.shape and not _idle(sight)
    ]
    return lane.trace.operations(lane.stage.redactor.text, sights)


def _idle(sight: Sight) -> bool:
    """A process that looks again and again whether there is something to do has looked."""
    return sight.link.listener.slot.background and sight.changed is Change.NO and sight.fate == "passed"


def prefix(lane: Lane, worker: str, until: Sight, *, job: str = "") -> list[tuple[str, str]]:
    """Upstream and shape of what changed state before this sight, in order; with `job`, of that one alone."""
    out = []
    for sight in lane.trace.sights:
        if sight is until:
            break
        if sight.worker != worker or sight.role in NOT_KEPT or (job and sight.job != job):
            continue
        if (sight.way == IN and sight.role == "delivery") or _changes(sight):
            out.append((sight.upstream, sight.unit.shape))
    return out


def _changes(sight: Sight) -> bool:
    sent = sight.way == OUT and sight.unit.kind in (Kind.REQUEST, Kind.OPAQUE)
    return sent and sight.changed in (Change.YES, Change.MAYBE)


def divergence(lane: Lane, worker: str, gate: Armed, points: Sequence[Point]) -> str:
    """Empty when the struck run came to its point as the recorded one did; else what was different."""
    if gate.hit is None:
        return ""
    points = [point for point in points if point.job == gate.point.job]
    place = next((at for at, point in enumerate(points) if point.id == gate.point.id), -1)
    if place < 0 or not all(point.ordered for point in points):
        return ""
    upto = place + (1 if gate.when == "after" and gate.hit.way == IN else 0)
    expected = [(point.upstream, point.shape) for point in points[:upto]]
    seen = prefix(lane, worker, gate.hit, job=gate.hit.job if gate.point.job else "")
    if seen == expected:
        return ""
    return f"the run came to its point by another way: expected {_texts(expected)}, saw {_texts(seen)}"


def _texts(steps: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{upstream} {shape.split(' ', 1)[-1]}" for upstream, shape in steps) or "nothing"


async def settle(lane: Lane, running: Running) -> None:
    """Runs the hooks of the rig, such as a relay, as a scheduler would."""
    if not lane.rig.settle:
        return
    producer = await lane.producer()
    for hook in lane.rig.settle:
        where, _, function = lane.rig.reference(hook).rpartition(":")
        try:
            await producer.agent.call(where, function)
        except CaseError as error:
            running.problems.append(f"settle: {error}")
        else:
            running.notes.append(f"{function} runs, as a scheduler runs it again and again")


async def record(lane: Lane, subject: str, running: Running) -> TrialRecord:
    """Reads the effects and closes the trial."""
    effects, problems = await lane.effects(running.since, running.case.record)
    clean = lane.stage.redactor
    seconds = lane.stage.clock.now() - running.started
    return TrialRecord(
        id=short_id(lane.stage.run_id, subject, running.purpose, running.case.record.id),
        subject=subject,
        purpose=running.purpose,
        case=running.case.record,
        strike=running.strike,
        fired=running.fired,
        diverged=running.diverged,
        deliveries=running.deliveries,
        deliveries_after=running.deliveries_after,
        settled=running.settled,
        unsettled=running.unsettled,
        beyond=running.beyond or clocks.out_of_reach(lane.stage, running.unsettled, running.dues),
        filed=clean.text(running.filed),
        tree=running.tree,
        operations=kept(lane),
        effects=tuple(_clean(effect, lane) for effect in effects),
        problems=tuple(clean.text(text) for text in (*running.problems, *problems)),
        notes=tuple(running.notes),
        ending=running.ending,
        seconds=round(seconds, 4),
    )


def _clean(effect: Effect, lane: Lane) -> Effect:
    redactor = lane.stage.redactor
    return Effect(
        seq=effect.seq,
        at=round(effect.at - lane.trace.started, 6),
        name=effect.name,
        body=redactor.text(effect.body),
        fields=redactor.json(effect.fields),
        key=redactor.key(effect.key),
        applied=effect.applied,
        case=effect.case,
        note=effect.note,
    )


async def first_of(*events: asyncio.Event | asyncio.Future[Any], seconds: float) -> bool:
    """Waits until one of them is there; False when none came in time."""
    tasks = Tasks()
    waiters = [tasks.start("event", event.wait()) if isinstance(event, asyncio.Event) else event for event in events]
    try:
        done, _ = await asyncio.wait(waiters, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await tasks.close()
    return bool(done)
