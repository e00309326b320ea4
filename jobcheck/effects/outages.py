"""The outages of one stand-in provider while they last: which call meets which, and what waits for their end."""

from __future__ import annotations

import asyncio
import math
from collections import Counter as Tally
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..aio import bounded
from ..clock import Clock
from ..faults.outages import CASE, CUT, GARBAGE, HANG, KEY, LOST, Reply
from ..faults.routes import EVERYTHING, fits
from .answer_words import NONSENSE
from .answers import Call, Silence
from .bodies import canonical
from .capacity import Counter
from .idempotency import Stored

CaseOf = Callable[[Call], Awaitable[str]]
"""The case that a call belongs to; empty: nobody's."""


async def nobody(call: Call) -> str:
    """No case is known."""
    return ""


@dataclass(slots=True, eq=False)
class Spell:
    """One outage that acts, or has acted."""

    reply: Reply
    hits: int = 0
    """Calls that met it."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    counter: Counter | None = None
    """Of an outage that takes capacity away."""
    hung: set[asyncio.BaseTransport] = field(default_factory=set)
    """Connections of calls that are never answered."""
    _seen: Tally[str] = field(default_factory=Tally)

    def takes(self, group: str) -> bool:
        """Whether a call of this group is one of the first ones; it is counted."""
        self._seen[group] += 1
        return not self.reply.first or self._seen[group] <= self.reply.first

    async def pause(self, seconds: float) -> None:
        """Waits so long, or until the outage is over: then nothing is slow any more."""
        try:
            await bounded(self.over.wait(), seconds)
        except TimeoutError:
            pass

    def end(self) -> None:
        """What waits goes on at once; what hangs is cut, as it is when a server comes back."""
        self.over.set()
        for transport in self.hung:
            if isinstance(transport, asyncio.Transport):
                transport.abort()
        self.hung.clear()


class Outages:
    """Several may act at once; a call meets the one that began last among those that it fits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._all: dict[str, Spell] = {}
        self._case_of: dict[str, CaseOf] = {}

    def begin(self, name: str, reply: Reply, case_of: CaseOf = nobody) -> None:
        """An outage under a name of its own. `case_of` is asked where the first ones of each case are meant."""
        self.end(name)
        spell = Spell(reply)
        if reply.capacity is not None:
            spell.counter = Counter(self._clock, reply.capacity)
        self._all[name] = spell
        self._case_of[name] = case_of

    def end(self, name: str) -> None:
        """It is over. Nothing happens when there is none of that name."""
        if (spell := self._all.get(name)) is not None:
            spell.end()

    def end_all(self) -> None:
        """Nothing is out of order any more."""
        for spell in self._all.values():
            spell.end()

    def hits(self, name: str) -> int:
        """Calls that have met it so far; also when it is over."""
        spell = self._all.get(name)
        return 0 if spell is None else spell.hits

    @property
    def counters(self) -> list[Counter]:
        """Of all outages that took capacity away, also those that are over."""
        return [spell.counter for spell in self._all.values() if spell.counter is not None]

    @property
    def narrow(self) -> Spell | None:
        """The outage that takes capacity away now."""
        return next((spell for spell in self._acting if spell.counter is not None), None)

    async def meets(self, call: Call, key: str) -> Spell | None:
        """The outage that this call meets; it is counted there."""
        for name, spell in reversed(list(self._all.items())):
            if spell.over.is_set() or spell.counter is not None:
                continue
            if not fits(spell.reply.route or EVERYTHING, call.method, call.path):
                continue
            group = await self._group(name, spell, call, key) if spell.reply.each else ""
            if spell.takes(group) and not spell.over.is_set():
                spell.hits += 1
                return spell
        return None

    @property
    def _acting(self) -> list[Spell]:
        return [spell for spell in reversed(self._all.values()) if not spell.over.is_set()]

    async def _group(self, name: str, spell: Spell, call: Call, key: str) -> str:
        """What the call is counted with. One without a key, or of no case, is counted with those that say the same."""
        same = f"{call.method} {call.path} {call.body}"
        if spell.reply.each == KEY:
            return key or same
        assert spell.reply.each == CASE
        return await self._case_of[name](call) or same


def outage_note(reply: Reply) -> str:
    """Why a call had no effect, for the ledger."""
    if reply.answer == HANG:
        return "no answer"
    if reply.answer == CUT or (reply.answer == LOST and reply.status is None):
        return "connection closed"
    return str(reply.status) if reply.status else "garbage" if reply.answer == GARBAGE else "outage"


def spoiled(answer: Stored | Silence, reply: Reply) -> Stored | Silence:
    """What an outage makes of an answer."""
    if reply.answer == HANG:
        return Silence.HANG
    if reply.answer in (CUT, LOST):
        return Silence.DROP
    if isinstance(answer, Silence):
        return answer
    if reply.status is not None:
        answer = json_answer(reply.status, {"error": f"status {reply.status}"})
    if reply.answer == GARBAGE:
        answer = replace(answer, content=NONSENSE)
    if reply.content_type:
        answer = replace(answer, headers={**answer.headers, "content-type": reply.content_type})
    return with_pause(answer, reply.retry_after)


def told_pause(seconds: float | None) -> int:
    """The whole seconds that `Retry-After` says; 0 for none."""
    return 0 if seconds is None else math.ceil(seconds)


def with_pause(answer: Stored, seconds: float | None) -> Stored:
    """With `Retry-After`, in whole seconds, as HTTP has it."""
    if seconds is None:
        return answer
    return replace(answer, headers={**answer.headers, "retry-after": str(told_pause(seconds))})


def json_answer(status: int, value: Any) -> Stored:
    """An answer in JSON."""
    return Stored(status, {"content-type": "application/json"}, canonical(value).encode())
