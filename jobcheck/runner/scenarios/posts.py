"""The posts of a scenario's workers: each has its taps, and one worker after another stands there."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from ...aio import wait_for, within
from ...errors import WaitTimeout, WorkerError
from ...tap.listener import Slot
from ...tap.sight import Sight
from ...workers.output import Line
from ..boots import COLD
from ..lane import Lane
from ..seats import Seat
from .book import Book
from .gate import PostGate
from .scribe import Scribe

ORPHANS_END = 2.0
"""Seconds in which the children of a killed parent may end by themselves."""


@dataclass(frozen=True, slots=True)
class Fallen:
    """What a kill left behind."""

    jobs: tuple[str, ...]
    """Jobs that were running."""
    tags: tuple[str, ...]
    """Deliveries that the broker believes to be held by a worker that is gone."""


class Post(Seat):
    """Where one worker works. Whatever is done to it is done one after another."""

    def __init__(
        self, lane: Lane, slot: Slot, scribe: Scribe, book: Book, gate: PostGate, version: str, boot: str
    ) -> None:
        super().__init__(lane, slot, scribe, safe=False, boot=boot)
        self.name = slot.name
        self.gate = gate
        self.version = version
        self.wanted_up = True
        """It should be running now: an end that nobody wanted is a crash."""
        self.busy = asyncio.Lock()
        self.problem = ""
        """Why the last start failed."""
        self.since = 0.0
        """When its worker began to work, on the clock of the book."""
        self._scribe = scribe
        self._book = book

    @property
    def due(self) -> Mapping[str, str]:
        """When jobs are due that its worker holds until then."""
        return self._scribe.due

    @property
    def tasks(self) -> Mapping[str, str]:
        """Names of the tasks of jobs that its worker got, by the jobs' ids."""
        return self._scribe.tasks

    def serve(self, lane: Lane, version: str) -> None:
        """The next worker here runs this version; `lane` knows where it is."""
        if version != self.version:
            # A zygote has imported the version before.
            self._boot, self.wanted = None, COLD
        self.lane = lane
        self.version = version

    async def start(self, seconds: float) -> None:
        """Starts a worker and lets it work. Raises WorkerError when it is not ready in time."""
        self._scribe.generation = self.generation + 1
        self._scribe.version = self.version
        self.problem = ""
        try:
            await within(self.boot(), seconds, f"{self.name} to be ready")
        except (WorkerError, WaitTimeout) as error:
            self.problem = str(error)
            await self._remove()
            raise WorkerError(str(error)) from None
        self.wanted_up = True
        self.since = self._book.now()
        self.slot.release()
        self.slot.gate = self.gate

    async def fell(self, scope: str, hit: Sight | None = None) -> Fallen:
        """SIGKILL to the tree, to the parent or to a child; then what it leaves behind. The worker must be alive."""
        if scope == "child":
            return await self._child(hit)
        self.wanted_up = False
        await self.slot.drain()
        if scope == "parent" and self._worker is not None:
            self._worker.send_signal(signal.SIGKILL)
            worker = self._worker
            try:
                await wait_for(lambda: not worker.pids(), "children of a killed parent to end", deadline=ORPHANS_END)
            except WaitTimeout:
                pass  # they are killed with the rest, as whoever cleans up after a dead parent would do
        return await self._remove()

    async def _child(self, hit: Sight | None) -> Fallen:
        assert self._worker is not None
        children = self._worker.pids()[1:]
        if not children:
            raise WorkerError(f"expected {self.name} to have child processes to kill, and it has none (a solo pool?)")
        self.gate.detained = ""
        await self.slot.drain()
        jobs = self._book.died(self.name)  # before the kill: the parent may acknowledge them at once
        await self._worker.kill_child(children[0])
        if hit is not None:
            await hit.link.cut(1.0)
        return Fallen(tuple(jobs), ())

    async def stop(self, grace: float, hit: Sight | None = None) -> Fallen:
        """SIGTERM, then what it leaves behind; SIGKILL after `grace` seconds. A message that is held goes on."""
        self.wanted_up = False
        if self._worker is not None:
            # The first one sends its signal before it waits: what was held goes on under the signal.
            await asyncio.gather(self._worker.stop(grace), self._let_on(hit))
        return await self._remove()

    async def _let_on(self, hit: Sight | None) -> None:
        self.gate.let_go()
        if hit is not None:
            hit.link.release(hit.way)

    async def clear(self) -> Fallen:
        """The worker has ended by itself: what it left behind."""
        return await self._remove()

    async def _remove(self) -> Fallen:
        """Nothing of the worker is left; its connections are closed, seen by the servers."""
        self.wanted_up = False
        if self._worker is not None:
            await self.lane.stage.supervisor.forget(self._worker)
            self._worker = None
        await self.slot.cut()
        self.gate.let_go()
        tags = tuple(self._scribe.held())
        self._scribe.reset()
        for arm in self.gate.arms:
            arm.missed()
        return Fallen(tuple(self._book.died(self.name)), tags)

    @property
    def crashed(self) -> bool:
        """It ended by itself."""
        return self.wanted_up and not self.alive and not self.busy.locked()

    def _line(self, line: Line) -> None:
        super()._line(line)
        ended = self.lane.rig.system.ended(line.text)
        if ended is not None and ended[1] != "received":
            self._book.finished(ended[0], self.name, ended[1])
