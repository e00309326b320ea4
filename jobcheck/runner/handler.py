"""Handler mode: the job function in a fresh fork of a child that has imported the app, without a queue.

A killed run is followed by a second one, as a queue with late acks would do it, and a failed one too.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..aio import bounded
from ..errors import UsageError, WorkerError
from ..faults.strikes import DUPLICATE, STOPS, kind_of
from ..history.records import Point, Strike, TrialRecord
from ..tap.gate import Armed
from ..tap.listener import Slot
from ..workers import platform
from . import handler_strikes
from .agents import Agent, Exit
from .boots import unshared
from .lane import Case, Lane
from .trial import Running, Sampler, divergence, first_of, foreign, record, settle

WORKER = "handler"


class HandlerMode:
    """Runs one function. `case` prepares the rows; what it returns is what the function is called with."""

    name = "handler"
    worker = WORKER
    """Its slot, and how its messages are told from others."""
    runs_again = True
    """A run that died or failed is followed by another one."""

    def __init__(self, lane: Lane, subject: str, job: str, case: str) -> None:
        self.lane = lane
        self.subject = subject
        self.key = f"{subject}/handler"
        self.job = job
        self.case = case
        self.broker = ""
        """The upstream whose points are the job system's own; none where it takes no part."""
        self.points: Sequence[Point] = ()
        self.slot: Slot
        self._handler: Agent

    async def open(self) -> None:
        if WORKER not in self.lane.kept:
            slot = await self.lane.slot(WORKER)
            agent, _ = await asyncio.gather(self.lane.agent(slot), self.lane.producer())
            self.lane.kept[WORKER] = (slot, agent)
        self.slot, self._handler = self.lane.kept[WORKER]
        await self._handler.request("import", function=self.job)
        await unshared(self.slot)
        if self.slot.links:
            names = sorted({link.listener.upstream for link in self.slot.links})
            self.lane.trace.notes.append(f"the app opens connections when it is imported ({', '.join(names)})")

    async def close(self) -> None:
        self.slot.gate = None

    async def run(self, purpose: str, strike: Strike | None = None, point: Point | None = None) -> TrialRecord:
        return await record(self.lane, self.key, await self.played(purpose, strike, point))

    async def prepared(self) -> Case:
        """The case of a trial, before the function is called."""
        return await self.lane.new_case(self.case)

    async def played(self, purpose: str, strike: Strike | None, point: Point | None) -> Running:
        """One trial up to its end, before it is written down."""
        lane = self.lane
        lane.check_alive()
        lane.trace.begin()
        since = await lane.prime()
        case = await self.prepared()
        running = Running(purpose, strike, case, since, lane.stage.clock.now())
        gate = None
        if strike is not None and point is not None and kind_of(strike.fault) != DUPLICATE:
            gate = Armed(point, strike.when, window=True, freeze=kind_of(strike.fault) in STOPS)
        pids: list[int] = []
        sampler = Sampler(lambda: pids, lane.stack_file(self.slot), lane.rig)
        self.slot.gate = gate or (sampler if purpose == "recording" else None)
        try:
            await self._attempt(running, gate, pids)
        finally:
            self.slot.gate = None
            await sampler.close()
        await settle(lane, running)
        if purpose == "recording":
            running.problems += foreign(sampler, lane)
        return running

    async def _attempt(self, running: Running, gate: Armed | None, pids: list[int]) -> None:
        fork = await self.start(running)
        pids.append(fork.pid)
        if gate is None:
            await self.finish(running, fork)
            if running.strike is not None and kind_of(running.strike.fault) == DUPLICATE:
                await handler_strikes.again(self, running)
            return
        await first_of(gate.fired, fork.ended, seconds=self.lane.stage.deadline)
        if not gate.fired.is_set():
            await self.finish(running, fork)
            return
        running.fired = True
        running.diverged = divergence(self.lane, self.worker, gate, self.points)
        await self.slot.drain()
        await handler_strikes.carry_out(self, running, gate, fork)

    # What strikes are made of

    async def start(self, running: Running) -> Fork:
        """One more run of the function, in a fork of its own."""
        running.deliveries += 1
        pid = await self._handler.fork(self.job, *_arguments(running.case), self.lane.temporary_of(running.case))
        return Fork(pid, self._handler.exit_of(pid))

    async def kill(self, fork: Fork) -> None:
        """SIGKILL to the fork and to everything that it started: it leads its own session."""
        fork.send(signal.SIGKILL)
        try:
            await bounded(asyncio.shield(fork.ended), 5)
        except TimeoutError:
            raise WorkerError(f"the handler (pid {fork.pid}) did not end within 5 s of SIGKILL") from None
        self._handler.forget(fork.pid)

    async def end_of(self, running: Running, fork: Fork) -> Exit | None:
        """How the run ended; None when it did not in time, and was killed."""
        try:
            exit_ = await bounded(asyncio.shield(fork.ended), self.lane.stage.deadline)
        except TimeoutError:
            running.settled = False
            running.unsettled = (
                f"the handler was still running after {self.lane.stage.patience(self.lane.stage.deadline)}"
            )
            await self.kill(fork)
            await self.slot.cut()
            return None
        self._handler.forget(fork.pid)
        return exit_

    async def finish(self, running: Running, fork: Fork) -> None:
        """Waits for the end of a run that is not struck."""
        exit_ = await self.end_of(running, fork)
        if exit_ is None:
            return
        if exit_.status != 0:
            running.filed = f"failed: {exit_.text}"
            if running.purpose in ("warm-up", "recording"):
                running.problems.append(
                    f"the handler failed in a clean run: {exit_.text}{where_of(exit_, self.lane.rig.folder)}"
                )
        await self.lane.settle_links([self.slot])


@dataclass(frozen=True, slots=True)
class Fork:
    """One run of the function."""

    pid: int
    ended: asyncio.Future[Exit]

    def send(self, number: int) -> None:
        """A signal to every process of its session."""
        for one in platform.processes():
            if one.session == self.pid:
                platform.send(one.pid, number)
        platform.send(self.pid, number)


def where_of(exit_: Exit, root: Path) -> str:
    """The innermost line of the user's own code, else the last ones there are."""
    lines: Sequence[str] = exit_.error.get("where", ()) if exit_.error else ()
    own = [line for line in lines if line.startswith(f"{root}/")]
    shown = [line.removeprefix(f"{root}/") for line in own[-1:]] or lines[-2:]
    return "".join(f"\n    {line}" for line in shown)


def _arguments(case: Case) -> tuple[list[Any], Mapping[str, Any]]:
    """What the case function returned, as arguments: a list or tuple, a dict of keywords, or one value."""
    value = case.value
    if value is None:
        if not case.record.ids:
            raise UsageError(
                "the case function returned nothing, so the handler has no arguments",
                hint="return the arguments of the job: a value, a list, or a dict of keywords",
            )
        return list(case.record.ids.values()), {}
    if isinstance(value, list):
        return value, {}
    if isinstance(value, dict):
        return [], value
    return [value], {}
