"""Toxics and outages of a scenario while they last, and whether any job met them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...aio import wait_for
from ...errors import WaitTimeout
from ...faults.actions import Action, AddToxic, BeginOutage, EndOutage, RemoveToxic
from ...faults.model import EVERYBODY
from ...faults.toxics import Down
from .ailments import Ailment
from .book import Book
from .lane import PRODUCER, ScenarioLane
from .owners import Owners
from .posts import Post
from .work import Producers, Work

Tell = Callable[..., Any]
LONGER = 5.0
"""Seconds that a fault of the network stays beyond its time while it has met no job: otherwise it proves nothing."""


@dataclass(frozen=True, slots=True)
class _Spell:
    """One fault of the network that acts now."""

    action: AddToxic | BeginOutage
    seen: int
    """What could have met it had been counted up to here when it began."""
    running: int


class Weather:
    """Carries out changes of the network, one after another."""

    def __init__(
        self, lane: ScenarioLane, posts: Mapping[str, Post], book: Book, work: Work, producers: Producers
    ) -> None:
        self._lane = lane
        self._posts = posts
        self._book = book
        self._work = work
        self._owners = Owners(work, producers)
        self._spells: dict[str, _Spell] = {}
        self._ailments: dict[str, Ailment] = {}
        self._acting: set[str] = set()
        self._turn = asyncio.Lock()

    async def change(self, action: Action, tell: Tell) -> None:
        """Carries out one change; the end of a fault that has met no job yet is put off for a while."""
        if isinstance(action, RemoveToxic | EndOutage):
            await self._met(action.name)
        async with self._turn:
            if isinstance(action, AddToxic):
                self._begin(action.name, action)
                await self._poison(action)
                tell(action, "")
            elif isinstance(action, BeginOutage):
                self._begin(action.name, action)
                await self._outage(action)
                tell(action, "")
            elif isinstance(action, RemoveToxic):
                self._cure(action.name)
                await self._lane.network.remove(action.name)
                self._end(action.name, action, tell)
            elif isinstance(action, EndOutage):
                await self._restored(action)
                self._end(action.name, action, tell)

    async def _met(self, name: str) -> None:
        try:
            await wait_for(lambda: self._count(name), "a job that meets it", deadline=LONGER, every=0.02)
        except WaitTimeout:
            pass  # it is told as not exercised

    def _count(self, name: str) -> int:
        """How much has met the fault so far."""
        spell = self._spells.get(name)
        if spell is None:
            return 1
        met = self._seen(spell.action) - spell.seen
        return met + spell.running if self._silent(spell.action) else met

    async def heal(self, tell: Tell) -> None:
        """Ends everything that still acts. All of it is tried, whatever fails."""
        async with self._turn:
            for provider in self._lane.providers.values():
                provider.outages.end_all()
            for name in list(self._acting):
                self._cure(name)
            try:
                await self._lane.network.heal()
            finally:
                for name, spell in list(self._spells.items()):
                    self._end(name, spell.action, tell, "until the end")

    async def _poison(self, action: AddToxic) -> None:
        """Puts a toxic on an upstream, or has the gates of its workers wait for its messages."""
        if action.messages is None:
            await self._lane.network.add(action)
            return
        seeds = self._lane.stage.seeds
        ailment = Ailment(
            action.name, action.toxic, action.messages, seeds.stream("toxic", action.name), self._book.case_of
        )
        self._ailments[action.name] = ailment
        self._acting.add(action.name)
        for slot in self._lane.network.slots(action.role):
            if slot in self._posts:
                self._posts[slot].gate.ailments.append(ailment)

    def _cure(self, name: str) -> None:
        """Nothing is left of a toxic at a point; how much it met is remembered."""
        if name not in self._acting:
            return
        self._acting.discard(name)
        ailment = self._ailments[name]
        ailment.end()
        for post in self._posts.values():
            if ailment in post.gate.ailments:
                post.gate.ailments.remove(ailment)

    async def _outage(self, action: BeginOutage) -> None:
        provider = self._lane.providers.get(action.upstream)
        if provider is None or action.reply.refused:
            await self._lane.network.cut_off(action.upstream, action.name)
        else:
            provider.begin_outage(action.name, action.reply, self._owners)

    async def _restored(self, action: EndOutage) -> None:
        if (provider := self._lane.providers.get(action.upstream)) is not None:
            provider.end_outage(action.name)
        await self._lane.network.let_back(action.name)

    def _begin(self, name: str, action: AddToxic | BeginOutage) -> None:
        self._spells[name] = _Spell(action, self._seen(action), len(self._book.running()))

    def _end(self, name: str, action: Action, tell: Tell, outcome: str = "") -> None:
        met = self._count(name)
        spell = self._spells.pop(name, None)
        if spell is None:
            tell(action, "it had not begun")
            return
        if isinstance(spell.action, BeginOutage) and not spell.action.reply.refused:
            text = f"{met} call(s) met it" if met else "no call met it"
        elif self._silent(spell.action):
            text = f"{met} job(s) ran meanwhile" if met else "no job ran meanwhile"
        else:
            text = f"{met} message(s) of jobs met it" if met else "no job met it"
        done = tell(action, f"{outcome}; {text}" if outcome else text, met > 0)
        done.fault = spell.action.fault

    def _silent(self, action: AddToxic | BeginOutage) -> bool:
        """Nothing gets through, so that nothing of those who meet it is seen."""
        return isinstance(action.toxic, Down) if isinstance(action, AddToxic) else action.reply.refused

    def _seen(self, action: AddToxic | BeginOutage) -> int:
        """How much has been seen so far of what meets the fault."""
        if self._silent(action):
            return sum(len(job.deliveries) for job in self._book.jobs.values())
        if isinstance(action, BeginOutage):
            return self._lane.providers[action.upstream].outages.hits(action.name)
        if action.messages is not None:
            return self._ailments[action.name].hits if action.name in self._ailments else 0
        role = action.role
        slots = self._lane.network.slots(role)
        seen = sum(self._posts[name].gate.traffic[action.upstream] for name in slots if name in self._posts)
        if any(name.startswith(PRODUCER) for name in slots) and role != EVERYBODY:
            seen += len(self._work.cases)
        return seen
