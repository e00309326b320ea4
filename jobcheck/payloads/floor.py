"""A floor: one version of the app at work - a worker, and a producer whose own messages nobody takes.

The producer makes the rows that a replayed payload names, by running the enqueue function; what it enqueues goes to a
parked namespace of the broker, so that the worker gets the replayed message and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..aio import wait_for
from ..errors import WaitTimeout
from ..runner.agents import Agent
from ..runner.boots import COLD
from ..runner.lane import MARKS, Lane
from ..runner.quiet import Quiet
from ..runner.rig import Rig
from ..runner.seats import Seat
from ..runner.stage import Stage
from ..runner.versions import Version, rig_at
from ..services.spec import Address
from ..systems.contract import Settings
from ..tap.listener import Slot
from ..tap.sight import OUT, Sight
from ..wire.registry import PROTOCOL_OF, decoder_for
from ..wire.unit import Change, Kind
from . import words
from .broker import INSIDE, WIRES, Sent
from .judge import Evidence
from .payload import Payload
from .shape import Parameter
from .words import End, Said

QUIET_WITHIN = 2.0
"""Seconds that follow-up jobs of a replay get to end, before the worker is replaced by a fresh one."""
WRITTEN_WITHIN = 2.0
"""Seconds in which a traceback is written after the line that announces it."""
OWN_ROLES = frozenset({"delivery", "reserve", "ack", "poll", "noise"})
"""What the job system itself says on the broker; an `enqueue` is the job's own doing."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task as a version's own code declares it."""

    function: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """What an enqueue function did in the parked producer."""

    ids: Mapping[str, str]
    sent: tuple[Sent, ...]


class Floor:
    """Use as an async context manager. One job at a time: callers hold `busy`.

    `home` is the rig whose databases are used: both versions of a check run on the schema of the newer one, as in a
    deploy whose migrations ran first.
    """

    def __init__(self, stage: Stage, home: Rig, version: Version, number: int) -> None:
        self.version = version
        self.lane = Lane(stage, home, number)
        self.rig = rig_at(home, version)
        self.wire = WIRES[self.rig.system.name]
        self.busy = asyncio.Lock()
        self.settings: Settings
        self.tasks: dict[str, Task] = {}
        """The tasks that are registered in this version."""
        self._heard: list[str] = []
        """What the worker has written since the job was put into its queue."""
        self._cases = 0
        self._queues: set[str] = set()
        self._agent: Agent | None = None
        self._parked: Slot | None = None

    async def __aenter__(self) -> Floor:
        await self.lane.__aenter__()
        try:
            self.lane.rig = self.rig
            dialect = self.rig.system.dialect()
            self.seat = Seat(self.lane, await self.lane.slot("worker", dialect), dialect, False, COLD)
            await asyncio.gather(self._boot_worker(), self._boot_producer())
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if "worker" in self.lane.slots:
            await self.seat.kill()  # before its taps close, which it would complain about
        if self._agent is not None:
            await self._agent.close()
        if self._parked is not None:
            await self._parked.close()
        await self.lane.__aexit__()

    async def _boot_worker(self) -> None:
        await self.seat.boot()
        name = f"{self.lane.process_name(self.seat.slot)}-{self.seat.generation}"
        worker = next(one for one in self.lane.stage.supervisor.workers if one.name == name)
        worker.output.subscribe(lambda line: self._heard.append(line.text))
        self.seat.slot.release()

    async def _boot_producer(self) -> None:
        lane, system = self.lane, self.rig.system
        dialect = system.dialect()
        parked = await lane.services[system.broker].namespace(f"{lane.number}-parked")
        addresses = {**lane.addresses, system.broker: parked}
        slot = self._parked = Slot("producer", lane.trace, lane.stage.host)
        for upstream, address in addresses.items():
            kind = MARKS if upstream == MARKS else self.rig.upstreams[upstream].kind
            reader = dialect if upstream == system.broker else None
            await slot.tap(upstream, (address.host, address.port), partial(decoder_for, PROTOCOL_OF[kind]), reader)
        own = lane.addresses
        lane.addresses = addresses
        try:
            env = lane.environment(slot)
        finally:
            lane.addresses = own
        self._agent = await Agent.start(
            lane.stage.supervisor,
            name=lane.process_name(slot),
            python=system.interpreter,
            cwd=self.rig.folder,
            env=env,
            folder=lane.stage.folder,
        )
        self.settings = await system.describe(self._agent.call, safe=False)
        told = await self._agent.call(INSIDE, "signatures", app=self._app)
        self.tasks = {name: _task(one) for name, one in told.items()}

    # Making cases

    async def make(self, function: str) -> Made:
        """Runs an enqueue function; nobody takes what it enqueues. Raises CaseError with the app's own words."""
        assert self._agent is not None
        before = len(self.lane.trace.sights)
        answer = await self._agent.request("case", function=self.rig.reference(function), case=self._case())
        sights = [sight for sight in self.lane.trace.sights[before:] if sight.worker == "producer"]
        return Made(answer["ids"], tuple(self.wire.sent(sights)))

    async def prepare(self, function: str, payload: Payload) -> tuple[Mapping[str, str], Any]:
        """Runs the rig's `prepare` function for a payload; the ids that it owns, and what it returned."""
        assert self._agent is not None
        told = {
            "task": payload.task,
            "version": payload.version,
            "args": payload.args,
            "kwargs": payload.kwargs,
            "ids": dict(payload.ids),
        }
        reference = self.rig.reference(function)
        answer = await self._agent.call(INSIDE, "prepared", prepare=reference, case=self._case(), payload=told)
        return answer["ids"], answer["value"]

    def _case(self) -> dict[str, Any]:
        self._cases += 1
        number = (self.lane.number + 1) * 100_000 + self._cases
        return {"id": f"case-{number}", "number": number, "seed": self.lane.stage.seeds.seed}

    # Running jobs

    def reads(self, payload: Payload) -> bool:
        """Whether the worker takes jobs from where this one was put."""
        return self.wire.reads(payload.queue, payload.raw, self.settings)

    async def _put(self, queue: str, raw: str) -> None:
        assert self._agent is not None
        self._queues.add(queue)
        await self.wire.put(self._broker, queue, raw, self._agent.call, self._app)

    @property
    def _app(self) -> str:
        return str(getattr(self.rig.system, "app", ""))

    async def run(self, queue: str, raw: str, job: str, task: str, within: float) -> Said | None:
        """Puts a message into its queue and waits for the worker's word on it; None when there is none in time."""
        self._begin()
        await self._put(queue, raw)
        said = await self._word(job, task, within)
        if said is not None and said.end in (End.DROPPED, End.REJECTED):
            self.seat.ends[job] = f"failed: {said.text}"  # the system's own reading does not know these
        if said is None or said.end is End.RETRYING or await self._rest():
            await self._renew()
        return said

    async def run_all(self, sent: Sequence[Sent], within: float) -> tuple[list[Sight], str]:
        """Lets the worker run these messages and all that follow from them. What it did, and what was still going on
        at the end, if anything."""
        self._begin()
        for one in sent:
            await self._put(one.queue, one.raw)
        left = await Quiet(self.lane, self.settings, [], within).reached(self.seat)
        sights = [sight for sight in self.lane.trace.sights if sight.worker == self.seat.slot.name]
        if left:
            await self._renew()
        return sights, left

    def evidence(self, *, live: bool) -> Evidence:
        """What the job that ran last did to its upstreams."""
        asked = changed = 0
        delivered = False
        for sight in self.lane.trace.sights:
            if sight.worker != self.seat.slot.name:
                continue
            delivered = delivered or sight.role == "delivery"
            if not delivered or sight.way != OUT or sight.role in OWN_ROLES:
                continue
            if sight.unit.shape.startswith("amqp ") and sight.role != "enqueue":
                continue  # channels and declarations around a publish
            if sight.unit.kind in (Kind.REQUEST, Kind.OPAQUE):
                asked += 1
                changed += sight.changed in (Change.YES, Change.MAYBE)
        return Evidence(asked, changed, live)

    @property
    def _broker(self) -> Address:
        return self.lane.addresses[self.rig.system.broker]

    def _begin(self) -> None:
        self.lane.check_alive()
        self.lane.trace.begin()
        self.seat.begin()
        self._heard.clear()

    async def _word(self, job: str, task: str, within: float) -> Said | None:
        def ended() -> bool:
            return words.read(self._heard, job, task, complete=True) is not None or not self.seat.alive

        try:
            await wait_for(ended, f"the end of {task}", deadline=within)
            return await wait_for(lambda: words.read(self._heard, job, task), "its traceback", deadline=WRITTEN_WITHIN)
        except WaitTimeout:
            return words.read(self._heard, job, task, complete=True)

    async def _rest(self) -> str:
        """Lets follow-up jobs end; what is still going on."""
        return await Quiet(self.lane, self.settings, [], QUIET_WITHIN).reached(self.seat)

    async def _renew(self) -> None:
        """Another worker and empty queues: what the last job left behind is gone."""
        await self.seat.kill()
        assert self._agent is not None
        await self.wire.purge(self._broker, self.settings, sorted(self._queues), self._agent.call, self._app)
        await self._boot_worker()


def _task(told: Mapping[str, Any]) -> Task:
    parameters = tuple(Parameter(one["name"], one["required"], one["kind"]) for one in told["parameters"] or ())
    return Task(told["function"], parameters)
