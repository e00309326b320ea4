"""Where a race is held: two forks of a handler, or two live workers and a message that was put on the broker twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..errors import UsageError
from ..explore.races import A, B, Director, Schedule
from ..explore.shared import Shared
from ..history.records import Strike, TrialRecord
from ..tap.listener import Slot
from ..tap.sight import Sight
from ..tap.turns import Turns
from ..workers.stacks import user_frame
from .agents import Agent, Exit
from .contest import Contest, Side, handed_out
from .handler import WORKER, HandlerMode, _arguments
from .lane import Lane
from .locks import Locks
from .queue import QueueMode
from .quiet import SILENCE, Quiet
from .seats import Seat
from .trial import Mode, Running, record

SECOND = "handler2"
"""The slot of the second delivery in handler mode."""
COPY_WITHIN = 10.0
"""Seconds until a copy that no second worker took is taken to be in the first one's hands."""


@dataclass(frozen=True, slots=True)
class Run:
    """One race under one schedule."""

    trial: TrialRecord
    contest: Contest
    workers: dict[str, str]
    """Worker by side: `{"A": "w2", "B": "w1"}`."""
    failures: tuple[str, ...]
    """How the deliveries ended that failed: `B: UniqueViolation: ...`."""


class Arena(Protocol):
    """Runs one case in two deliveries at once."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def run(self, strike: Strike, schedule: Schedule, shared: Shared, purpose: str, *, sample: bool) -> Run: ...


def arena_of(mode: Mode) -> Arena:
    """The arena of a mode."""
    if isinstance(mode, HandlerMode) and mode.runs_again:
        return HandlerArena(mode)
    if isinstance(mode, QueueMode):
        return QueueArena(mode)
    raise UsageError(f"races are run in handler and queue mode, not in {mode.name} mode")


class _Arena:
    """What both share."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.locks = Locks(lane.addresses)

    def contest(self, schedule: Schedule, shared: Shared) -> Contest:
        return Contest(Director(schedule), shared, self.locks, self.lane.trace)

    def turns(self, contest: Contest, broker: str, *, started: bool) -> Turns:
        return Turns(lambda sight: contest.counts(sight, broker), contest.moved.set, started=started)

    def sampler(self, pids: Callable[[Slot], Sequence[int]]) -> Callable[[Side, Sight], Awaitable[str]]:
        lane = self.lane

        async def sample(side: Side, sight: Sight) -> str:
            listener = sight.link.listener
            return await user_frame(
                pids(side.slot),
                sight.link.peer_port,
                lane.stack_file(side.slot),
                lane.rig.folder,
                packages=lane.rig.packages,
                server_port=listener.port,
                server_host=listener.slot.host,
            )

        return sample

    def settle(self, contest: Contest, running: Running, unsettled: str) -> None:
        """What the contest says of the trial."""
        running.unsettled = running.unsettled or unsettled
        running.settled = not running.unsettled
        running.fired = not contest.director.missed
        running.deliveries_after = 1
        running.notes += contest.notes


class HandlerArena(_Arena):
    """Two forks of the agent, each behind taps of its own."""

    def __init__(self, mode: HandlerMode) -> None:
        super().__init__(mode.lane)
        self.mode = mode

    async def open(self) -> None:
        kept = self.lane.kept
        if SECOND not in kept:
            slot = await self.lane.slot(SECOND)
            kept[SECOND] = (slot, await self.lane.agent(slot))
        await kept[SECOND][1].request("import", function=self.mode.job)

    async def close(self) -> None:
        await self.locks.close()

    async def run(self, strike: Strike, schedule: Schedule, shared: Shared, purpose: str, *, sample: bool) -> Run:
        lane = self.lane
        lane.check_alive()
        lane.trace.begin()
        since = await lane.prime()
        case = await lane.new_case(self.mode.case)
        running = Running(purpose, strike, case, since, lane.stage.clock.now(), deliveries=2)
        contest = self.contest(schedule, shared)
        pairs: list[tuple[Slot, Agent]] = [lane.kept[WORKER], lane.kept[SECOND]]
        contest.tell("the handler runs twice at once: A and B")
        pids: dict[Slot, int] = {}
        if sample:
            contest.sample = self.sampler(lambda slot: [pids[slot]] if slot in pids else [])
        gates = [self.turns(contest, "", started=True) for _ in pairs]
        ends: list[asyncio.Future[Exit]] = []
        try:
            for (slot, agent), gate in zip(pairs, gates, strict=True):
                slot.gate = gate
                pids[slot] = await agent.fork(self.mode.job, *_arguments(case), self.lane.temporary_of(case))
                ends.append(agent.exit_of(pids[slot]))
                ends[-1].add_done_callback(lambda _: contest.moved.set())
            contest.sides += [
                Side(who, slot, gate, end.done)
                for who, (slot, _), gate, end in zip((A, B), pairs, gates, ends, strict=True)
            ]
            self.settle(contest, running, await contest.run(lane.stage.deadline))
        finally:
            for gate in gates:
                gate.finish()
            for slot, _ in pairs:
                slot.gate = None
            failures = await self._ended(pairs, pids, ends)
        if len(failures) == len(pairs):
            running.filed = f"failed: {failures[0]}"
        await lane.settle_links([slot for slot, _ in pairs])
        trial = await record(lane, self.mode.key, running)
        return Run(trial, contest, {who: slot.name for who, (slot, _) in zip((A, B), pairs, strict=True)}, failures)

    async def _ended(
        self, pairs: Sequence[tuple[Slot, Agent]], pids: dict[Slot, int], ends: Sequence[asyncio.Future[Exit]]
    ) -> tuple[str, ...]:
        """How the forks failed. Those that still run are ended."""
        failures = []
        for who, (slot, agent), end in zip((A, B), pairs, ends, strict=False):
            if not end.done():
                await agent.end(pids[slot])
                await slot.cut()
                continue
            agent.forget(pids[slot])
            if text := end.result().text:
                failures.append(f"{who}: {text}")
        return tuple(failures)


class QueueArena(_Arena):
    """Two live workers. The message that one of them was given is put on the broker once more, for the other one."""

    def __init__(self, mode: QueueMode) -> None:
        super().__init__(mode.lane)
        self.mode = mode

    async def open(self) -> None:
        await self.mode.crew.pair()

    async def close(self) -> None:
        await self.locks.close()
        await self.mode.crew.part()

    async def run(self, strike: Strike, schedule: Schedule, shared: Shared, purpose: str, *, sample: bool) -> Run:
        lane, crew, system = self.lane, self.mode.crew, self.mode.system
        lane.check_alive()
        await crew.pair()
        lane.trace.begin()
        since = await lane.prime()
        contest = self.contest(schedule, shared)
        seats = {seat.slot: seat for seat in crew.seats}
        if sample:
            contest.sample = self.sampler(lambda slot: seats[slot].pids())
        gates = {seat: self.turns(contest, system.broker, started=False) for seat in crew.seats}
        for seat, gate in gates.items():
            seat.begin()
            seat.slot.gate = gate
        started = lane.stage.clock.now()
        try:
            case = await lane.new_case(self.mode.enqueue)
            jobs = self.mode.enqueued()
            case.record = replace(case.record, jobs=tuple(jobs))
            running = Running(purpose, strike, case, since, started)
            order = await self._deliver_twice(contest, gates)
            if len(order) < len(gates):
                running.problems.append("the copy of the message was not given to the other worker")
            else:
                contest.sides += [
                    Side(who, seat.slot, gates[seat], self._ended(seat, jobs[0]))
                    for who, seat in zip((A, B), order, strict=True)
                ]
                self.settle(contest, running, await contest.run(lane.stage.deadline))
        finally:
            for gate in gates.values():
                gate.finish()
            for seat in crew.seats:
                seat.slot.gate = None
        running.problems += [f"worker {seat.slot.name} ended by itself" for seat in crew.seats if not seat.alive]
        quiet = Quiet(lane, self.mode.settings, jobs, lane.stage.deadline, crew.others)
        for seat in crew.seats:
            running.unsettled = running.unsettled or await quiet.reached(seat)
        running.settled = not running.unsettled
        running.deliveries = sum(seat.slot.deliveries for seat in crew.seats)
        failures = tuple(
            f"{who}: {text}" for who, seat in zip((A, B), order, strict=False) if (text := seat.filed(jobs))
        )
        if len(failures) == len(gates):
            running.filed = failures[0].partition(": ")[2]
        trial = await record(lane, self.mode.key, running)
        return Run(trial, contest, {who: seat.slot.name for who, seat in zip((A, B), order, strict=False)}, failures)

    async def _deliver_twice(self, contest: Contest, gates: dict[Seat, Turns]) -> list[Seat]:
        """The seats in the order in which they were given the job; one, when the copy did not come to the other."""
        lane, system = self.lane, self.mode.system
        first = await handed_out(gates, COPY_WITHIN)
        if first is None or (delivery := gates[first].delivery) is None:
            return []
        contest.tell("the same message is put on the broker once more, and comes to another worker: B")
        call = self.mode.crew.producer.agent.call
        await system.duplicate(lane.addresses[system.broker], delivery.unit, call, next_up=True)
        others = {seat: gate for seat, gate in gates.items() if seat is not first}
        second = await handed_out(others, COPY_WITHIN)
        return [first, second] if second is not None else [first]

    def _ended(self, seat: Seat, job: str) -> Callable[[], bool]:
        """By the worker's own word; by its acknowledgement, where that comes late; else by its silence."""
        late = self.mode.settings.guarantee == "at-least-once"

        def ended() -> bool:
            if job in seat.ends or not seat.alive:
                return True
            if late and seat.slot.settled and not seat.dialect.held():
                return True
            return not seat.tells and not seat.slot.in_flight() and self.lane.trace.quiet_for() >= SILENCE

        return ended
