"""A contest: two deliveries of one job that take turns, message by message, as a director says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ..aio import bounded, wait_for
from ..clock import REAL
from ..errors import WaitTimeout
from ..explore.race_story import Change
from ..explore.races import Director, Message
from ..explore.shared import Shared
from ..tap.listener import Slot
from ..tap.sight import Sight, Trace
from ..tap.turns import Turns
from .locks import Locks, backend, backends

K = TypeVar("K")

LOOK = 0.004
"""Seconds of waiting after which the database is asked whether somebody waits for a lock."""
SILENT = 5.0
"""Seconds without a message after which a delivery that waits for no server counts as waiting for the other one in a
way that no tap sees. Where that is wrong, the machine was slow: the order is another one, and no less real."""
WAITS = ("BL", "BR", "BZ", "XREAD", "WAIT")
"""How the names of such commands begin."""
MOST_STEPS = 1000
"""Turns after which a contest is given up."""


@dataclass(slots=True, eq=False)
class Side:
    """One of the two deliveries."""

    who: str
    slot: Slot
    turns: Turns
    ended: Callable[[], bool]
    blocked: str = ""
    """Why it cannot go on before the other one does."""

    @property
    def resting(self) -> bool:
        return bool(self.ended() or self.blocked or self.turns.resting)

    @property
    def doing(self) -> str:
        if self.ended():
            return f"{self.who} has ended"
        if self.turns.busy and self.turns.sent is not None:
            return f"{self.who} waits for the answer to {self.turns.sent.upstream} {self.turns.sent.unit.shape}"
        if self.turns.held:
            return f"{self.who} waits for its turn"
        return f"{self.who} runs, and sends nothing"


@dataclass(slots=True)
class Contest:
    """Lets the two sides go on one message at a time."""

    director: Director
    shared: Shared
    locks: Locks
    trace: Trace
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    sides: list[Side] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)
    """The message of each step of the director's."""
    story: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sample: Callable[[Side, Sight], Awaitable[str]] | None = None
    """Tells the line of the user's code that a held message comes from."""

    def tell(self, text: str) -> None:
        """A line of the story, for now."""
        self.story.append(Change(self.trace.now(), text))

    def counts(self, sight: Sight, broker: str) -> bool:
        """Whether a message is a step. What a job system says to its broker about the job itself is none."""
        if sight.upstream == broker and sight.role not in ("", "enqueue"):
            return False
        return self.shared.counts(sight.upstream, sight.link.number, sight.unit)

    async def run(self, seconds: float) -> str:
        """Empty when both sides came to their ends, else what was still going on after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while not all(side.ended() for side in self.sides):
                    await self._rest()
                    if not await self._turn():
                        return f"no end after {MOST_STEPS} messages of both deliveries"
        except TimeoutError:
            return f"not over after {seconds:g} s: {'; '.join(side.doing for side in self.sides)}"
        return ""

    async def _turn(self) -> bool:
        """One side goes on by one message. Where nobody can, the server is left to resolve it."""
        ready = {
            side.who: (self._message(side), self.shared.changes(side.turns.held[0][0].unit))
            for side in self.sides
            if not side.ended() and not side.blocked and side.turns.held
        }
        if not ready:
            for side in self.sides:
                side.blocked = ""
            await self._tick()
            return True
        if len(self.sights) >= MOST_STEPS:
            return False
        preempted = len(self.director.held)
        who = self.director.next(ready)
        side = next(side for side in self.sides if side.who == who)
        if self.sample is not None:
            side.turns.held[0][0].code = await self.sample(side, side.turns.held[0][0])
        came = self._came(side, ready)
        for one in self.sides:
            one.blocked = ""
        self.sights.append(side.turns.go())
        if came:
            self.story.append(Change(self.sights[-1].at, came, len(self.director.held) > preempted))
        await self._rest()
        self.director.answered(side.turns.changed or bool(side.blocked))
        return True

    def _came(self, side: Side, ready: Mapping[str, tuple[Message, bool]]) -> str:
        """Why it is this one's turn, when the other one had it before; else empty."""
        steps = self.director.steps
        if len(steps) < 2 or steps[-2].who == side.who:
            return ""
        other = next(one for one in self.sides if one is not side)
        if other.ended():
            return f"{other.who} has ended; {side.who} goes on"
        if other.blocked:
            return f"{other.who} {other.blocked}; {side.who} goes on"
        return f"{other.who} is held here, before {ready[other.who][0].name}; {side.who} goes on"

    def _message(self, side: Side) -> Message:
        sight, nth = side.turns.held[0]
        return Message(sight.upstream, sight.unit.shape, nth)

    async def _tick(self) -> None:
        """Waits for a move, at most for a moment: answers and ends are looked for, they do not call."""
        try:
            await bounded(self.moved.wait(), 0.001)
        except TimeoutError:
            pass
        self.moved.clear()

    async def _rest(self) -> None:
        """Waits until nobody moves: each side waits for its turn, has ended, or waits for the other one."""
        began = looked = REAL.now()
        while not all(side.resting for side in self.sides):
            await self._tick()
            now = REAL.now()
            if now - looked >= LOOK:
                looked = now
                for side in self.sides:
                    await self._look(side)
            if now - began >= SILENT and self.trace.quiet_for() >= SILENT:
                self._give_up_waiting()

    async def _look(self, side: Side) -> None:
        sent = side.turns.sent
        if side.resting or sent is None or not side.turns.busy or not (pid := backend(sent)):
            return
        others = frozenset[int]().union(*(backends(other.slot.links) for other in self.sides if other is not side))
        if others and await self.locks.blocked(sent.upstream, pid, others) and side.turns.busy:
            side.blocked = "waits for a lock of the other one"

    def _give_up_waiting(self) -> None:
        """Somebody waits for what no tap sees, such as a file lock. The other one goes on, if there is one that can."""
        if not any(side.turns.resting and not side.ended() for side in self.sides):
            return
        for side in self.sides:
            asked = [sight for sight in side.slot.in_flight() if not _waits(sight)]
            if not side.resting and side.turns.sent is not None and not asked:
                side.blocked = "waits for something that no tap sees"
                note = f"{side.doing} for {SILENT:g} s: taken to wait for the other delivery"
                if note not in self.notes:
                    self.notes.append(note)


def _waits(sight: Sight) -> bool:
    """A command of Redis that is answered when somebody else has done something."""
    return sight.unit.shape.split(" ")[:1] == ["redis"] and sight.unit.shape.split(" ")[1].startswith(WAITS)


async def handed_out(gates: Mapping[K, Turns], seconds: float) -> K | None:
    """Waits until the job was delivered behind one of these gates; None when it was not in time."""
    try:
        return await wait_for(
            lambda: next((key for key, turns in gates.items() if turns.delivery is not None), None),
            "a delivery",
            deadline=seconds,
        )
    except WaitTimeout:
        return None
