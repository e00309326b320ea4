"""Brokers and databases that fail on purpose, while they do so: down, wiped, read-only or out of connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import redis.exceptions

from ...aio import wait_for
from ...errors import WaitTimeout
from ...faults.actions import BeginTrouble, EndTrouble
from ...faults.model import GOES_DOWN, How
from ...services import Service
from ...tap.sight import Sight
from ..company import Companion
from .book import Book
from .lane import ScenarioLane
from .network import LONGER
from .work import Work

Tell = Callable[..., Any]
UNREACHABLE = (OSError, redis.exceptions.RedisError, psycopg.Error)
"""What a client of ours says of a server that is in trouble."""
PATIENCE = 1.0
"""Seconds that a server in its prime waits for a job that it can fail."""


@dataclass(frozen=True, slots=True)
class _Spell:
    """One trouble that acts now."""

    fault: int
    began: float
    seen: int
    """What could have met it had been counted up to here."""
    running: int


class Troubles:
    """Carries them out; those of one server one after another. Every one that has begun is ended by `heal`."""

    def __init__(self, lane: ScenarioLane, book: Book, work: Work) -> None:
        self._lane = lane
        self._book = book
        self._work = work
        self._spells: dict[tuple[str, How], _Spell] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._hurried = False

    def well(self, upstream: str) -> bool:
        """Whether the server answers, takes writes, and takes connections, as far as that is up to us."""
        return not any(name == upstream for name, _ in self._spells)

    async def begin(self, action: BeginTrouble, tell: Tell, hit: Sight | None = None) -> None:
        """The trouble comes, to a message that is held where there is one: what goes to a server that goes down is
        lost, whatever else is held goes on when the server has failed. Raises ServiceError."""
        async with self._turn(action.upstream):
            service = self._who(action.upstream)
            if hit is None and not self._hurried:
                await self._something_runs()
            if service.down:
                tell(action, "it was down already")
                return
            # Whoever stands at the point meets it, though its job may have ended for itself.
            seen, running = self._met(), len(self._book.running()) or int(hit is not None)
            spell = _Spell(action.fault, self._book.now(), seen, running)
            self._spells[action.upstream, action.how] = spell
            if action.how in GOES_DOWN:
                await service.take_down(kill=action.how != "restart")
                if action.upstream in self._lane.services:
                    await self._lane.network.cut_off(action.upstream, _cut(action.upstream))
            else:
                await self._lane.services[action.upstream].hamper(action.how)
                # It lasts from now on: to take all connections of a server is no matter of a moment.
                self._spells[action.upstream, action.how] = _Spell(action.fault, self._book.now(), seen, running)
            if hit is not None and hit.upstream == action.upstream and action.how in GOES_DOWN:
                hit.link.sever()
            elif hit is not None:
                hit.link.release(hit.way)
            tell(action, f"{spell.running} job(s) were running" if spell.running else "no job was running")

    async def end(self, action: EndTrouble, tell: Tell) -> bool:
        """It is over, unless nothing has met it yet: then it stays a while longer. Whether there was one."""
        async with self._turn(action.upstream):
            spell = self._spells.get((action.upstream, action.how))
            if spell is None:
                return False
            due = spell.began + action.lasts
            await self._until(lambda: self._book.now() >= due)
            await self._until(lambda: self._count(spell) > 0, LONGER)
            await self._over(action.upstream, action.how, tell)
            return True

    def hurry(self) -> None:
        """The run is over: nothing waits any more."""
        self._hurried = True

    async def heal(self, tell: Tell) -> None:
        """Ends everything that still acts."""
        for upstream, how in list(self._spells):
            async with self._turn(upstream):
                if (upstream, how) in self._spells:
                    await self._over(upstream, how, tell, "at the end; ")

    async def _over(self, upstream: str, how: How, tell: Tell, when: str = "") -> None:
        service = self._who(upstream)
        spell = self._spells[upstream, how]
        if how in GOES_DOWN:
            await service.bring_back(erased=how == "wipe")
            await self._lane.network.let_back(_cut(upstream))
        else:
            await self._lane.services[upstream].relieve()
        met = self._count(spell)
        del self._spells[upstream, how]
        lasted = self._book.now() - spell.began
        text = f"{met} job(s) met it" if met else "no job met it"
        done = tell(EndTrouble(upstream, how), f"{when}after {lasted:.1f} s; {text}", met > 0)
        done.fault = spell.fault

    def _who(self, name: str) -> Service | Companion:
        """The server, or the process of the app."""
        return self._lane.services.get(name) or self._lane.company.members[name]

    async def _something_runs(self) -> None:
        try:
            await wait_for(lambda: self._hurried or self._book.running(), "a job", deadline=PATIENCE)
        except WaitTimeout:
            pass  # it comes all the same

    async def _until(self, over: Callable[[], bool], seconds: float = 3600.0) -> None:
        try:
            await wait_for(lambda: self._hurried or over(), "the end of a trouble", deadline=seconds, every=0.01)
        except WaitTimeout:
            pass  # it is told as not exercised

    def _count(self, spell: _Spell) -> int:
        """How many jobs have met it so far."""
        return spell.running + self._met() - spell.seen

    def _met(self) -> int:
        """Deliveries and enqueue calls so far: either of them meets a server that is in trouble."""
        deliveries = sum(len(job.deliveries) for job in self._book.jobs.values())
        return deliveries + self._work.begun

    def _turn(self, upstream: str) -> asyncio.Lock:
        return self._turns.setdefault(upstream, asyncio.Lock())


def _cut(upstream: str) -> str:
    """The name under which the network is cut off from a server that is down."""
    return f"{upstream} is down"
