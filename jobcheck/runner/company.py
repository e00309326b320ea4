"""The app's other processes on a lane: a relay, a web server, a scheduler. Each has taps of its own.

They run from the first job until the lane is closed. One that ends by itself stops the run with one clear error.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..aio import wait_for
from ..errors import WaitTimeout, WorkerError
from ..explore.points import CONNECTIONS_OWN
from ..services.spec import Address
from ..systems.contract import Dialect
from ..tap.listener import Slot
from ..wire.unit import Change
from ..workers.spec import ProcessSpec, Ready, ReadyLine, ReadyNow, ReadyPort
from ..workers.supervisor import Worker
from .rig import expand
from .roles import Process
from .stage import STOP_GRACE, Stage, programs_of

if TYPE_CHECKING:
    from .lane import Lane

PATIENCE = 1.5
"""Seconds without a message of its own after which a process is taken to look for nothing, or to be done."""
HANDSHAKES = tuple(f"redis {word}" for word in ("HELLO", "CLIENT", "AUTH", "SELECT", "PING", "INFO", "COMMAND"))
PORTS = 1000
"""How many are tried."""
BOOTS_WITHIN = 10.0
"""Seconds until one that looked again and again before is taken to do so no longer."""
Readers = Callable[[str], Dialect]
"""What reads a process's messages on the broker, by its name."""


class Companion:
    """One process of the app. It outlives its ends: the next one gets the same addresses."""

    def __init__(self, lane: Lane, name: str, role: Process, slot: Slot) -> None:
        self.lane = lane
        self.name = name
        self.role = role
        self.slot = slot
        self.generation = 0
        self.worker: Worker | None = None
        self._started = 0.0
        self._linked = 0.0
        """When it was first seen to have a connection."""
        self._every = 0.0
        """Seconds from one look to the next, at most, as far as was seen; 0: it never looked twice."""
        slot.background = True

    @property
    def alive(self) -> bool:
        return self.worker is not None and self.worker.alive

    def pids(self) -> list[int]:
        return self.worker.pids() if self.worker is not None else []

    async def start(self) -> None:
        """Starts it and waits until it is ready. Raises WorkerError with its last lines when it is not."""
        lane, self.generation = self.lane, self.generation + 1
        argv, ready = self._command()
        spec = ProcessSpec(
            name=f"{lane.process_name(self.slot)}-{self.generation}",
            argv=argv,
            env={"PATH": programs_of(lane.rig), **lane.environment(self.slot, self.role.env)},
            cwd=lane.rig.folder,
            ready=ready,
            ready_within=self.role.within,
        )
        self._started, self._linked = lane.stage.clock.now(), 0.0
        self.worker = await lane.stage.supervisor.start(spec)
        try:
            await self.worker.ready()
        except BaseException:
            await self.kill()
            raise

    def _command(self) -> tuple[list[str], Ready]:
        lane, role = self.lane, self.role
        places = lane.tapped(self.slot)
        words = [expand(word, places, folder=str(lane.folder)) for word in role.words]
        line = role.ready
        if role.schedules:
            launch = lane.rig.system.scheduler(str(lane.folder), words)
            return list(launch.argv), ReadyLine(line or launch.ready)
        if words[0] in ("python", "python3"):
            words[0] = lane.rig.system.interpreter
        if line:
            return words, ReadyLine(line)
        own = lane.company.addresses[self.name]
        return words, ReadyPort(own.host, own.port) if lane.rig.listens(self.name) else ReadyNow()

    async def kill(self) -> None:
        """SIGKILL to its tree; its connections are closed, seen by the servers."""
        worker, self.worker = self.worker, None  # from now on its end is no news
        if worker is not None:
            await self.lane.stage.supervisor.forget(worker)
        await self.slot.cut()
        self.slot.looks.clear()

    # As a scenario treats a server: down for a while

    @property
    def down(self) -> bool:
        """It was ended, and not started again."""
        return self.worker is None

    async def take_down(self, *, kill: bool) -> None:
        """SIGKILL, or SIGTERM and a grace time."""
        worker, self.worker = self.worker, None
        if worker is not None:
            if not kill:
                await worker.stop(STOP_GRACE)
            await self.lane.stage.supervisor.forget(worker)
        await self.kill()

    async def bring_back(self, *, erased: bool = False) -> None:
        """It is started again. Raises WorkerError when it is not ready in time."""
        await self.start()

    def check(self) -> None:
        """Raises WorkerError when it has ended by itself."""
        worker = self.worker
        if worker is not None and not worker.alive:
            tail = "\n    ".join(worker.output.tail(8)) or "(nothing)"
            raise WorkerError(
                f"{self.name}, a process of the rig, {worker.how_it_ended()}; its last lines:\n    {tail}",
                hint=f"its output is in {worker.name}.log of the run",
            )

    def busy(self) -> str:
        """What it is about; empty when it does nothing, or has looked once more since the last change and found that
        nothing is to do."""
        trace = self.lane.trace
        waits = [sight for sight in self.slot.in_flight() if sight.unit.change is not Change.NO]
        if waits and trace.now() - waits[0].at < PATIENCE:
            return f"{waits[0].upstream} {waits[0].unit.shape} of {self.name} waits for its answer"
        rounds = [at for shape, at in self.slot.looks.items() if at[0] > trace.last_at and _asks(shape)]
        self._every = max([self._every, *(last - before for before, last in rounds)])
        looked = bool(rounds)
        now = self.lane.stage.clock.now()
        if not self.slot.links:  # it has nothing to look with, or boots
            done = not self._every or now - self._started > BOOTS_WITHIN
            return "" if looked or done else f"{self.name} is not there yet"
        self._linked = self._linked or now
        still = now - max(self._linked, trace.last_at)
        once = not self._every and now - self._linked >= PATIENCE  # it was there to be seen for long enough
        if looked or once or still >= 3 * self._every + PATIENCE:
            return ""
        return f"{self.name} has not looked yet whether there is more to do"


def _asks(look: str) -> bool:
    """Whether it asks for something to do, and does not only talk about its connection."""
    shape = look.partition(" ")[2]
    return shape not in CONNECTIONS_OWN and not shape.startswith(HANDSHAKES)


class Company:
    """All of a lane. `addresses` says where each listens, before it runs."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self.addresses = {name: Address("http", lane.stage.host, _free(lane.stage)) for name in lane.rig.others}
        self.members: dict[str, Companion] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.members)

    @property
    def alive(self) -> bool:
        """Whether all of them run."""
        return all(one.alive for one in self.members.values())

    async def start(self, *, scenario: bool = False, reader: Readers | None = None) -> None:
        """Starts those that do not run yet. Raises WorkerError for one that is not ready in time."""
        lane = self._lane
        for name, role in lane.rig.others.items():
            if name in self.members or (role.schedules and not scenario):
                continue
            dialect = reader(name) if reader else lane.rig.system.dialect()
            slot = await lane.slot(name, dialect)
            self.members[name] = Companion(lane, name, role, slot)
            await self.members[name].start()

    def check(self) -> None:
        """Raises WorkerError when one has ended by itself."""
        for one in self.members.values():
            one.check()

    def busy(self) -> str:
        """What one of them is about; empty when none is."""
        return next((text for one in self.members.values() if (text := one.busy())), "")

    async def idle(self, seconds: float) -> None:
        """Waits until none has anything to do, or one has ended."""
        try:
            await wait_for(lambda: not (self.alive and self.busy()), "the app's processes to be done", deadline=seconds)
        except WaitTimeout:
            pass  # whoever waits for quiet says what is still going on

    async def close(self) -> None:
        """Ends all of them."""
        for one in self.members.values():
            await one.kill()


def _free(stage: Stage) -> int:
    """A port that nobody has. Raises WorkerError when there is none."""
    for port in itertools.islice(stage.ports, PORTS):
        with contextlib.suppress(OSError), socket.create_server((stage.host, port)):
            return port
    raise WorkerError(f"expected a free port of {PORTS} on {stage.host} for a process of the app, and found none")
