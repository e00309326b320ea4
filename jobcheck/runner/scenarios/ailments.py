"""Toxics that act on single messages: the first two charges, each COMMIT, the third mail of a worker's connections.

A toxic of a whole upstream is on its connections from the start. This one is put onto a connection when its message
comes by: with `stream: upstream` before the request goes on, else before its answer does. What delays (latency,
bandwidth, slicer) is taken off when that message is through; what breaks (a reset, a timeout, a limit, a slow close)
stays with the connection, which does not outlive it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from ...faults.model import Messages
from ...faults.toxics import Bandwidth, Latency, Slicer, Stream, Toxic
from ...faults.triggers import Draw
from ...tap.gate import COUNTED
from ...tap.link import Link
from ...tap.sight import IN, OUT, Sight
from ...tap.toxics import stage_for

PASSES = (Latency, Bandwidth, Slicer)
"""Toxics that a message comes through."""
NOT_KEPT = ("noise", "poll")


def name_of(sight: Sight) -> str:
    """What a point is called in a scenario file: `payments POST /charges`, `db COMMIT`, `broker delivery`."""
    if sight.role == "delivery":
        return f"{sight.upstream} delivery"
    return f"{sight.upstream} {sight.unit.shape.partition(' ')[2]}"


def is_at(sight: Sight, name: str) -> bool:
    """Whether this is a message of a job under that name: the delivery of one, or a request to a server."""
    if sight.role in NOT_KEPT or not sight.job:
        return False
    if sight.way == IN and sight.role != "delivery":
        return False
    if sight.way == OUT and sight.unit.kind not in COUNTED:
        return False
    if sight.role in ("reserve", "ack") and name == f"{sight.upstream} {sight.role}":
        return True
    found = name_of(sight)
    return found == name or found.startswith(f"{name} ")


class Ailment:
    """One such toxic while it acts; shared by the gates of all workers that it may hit."""

    def __init__(
        self, name: str, toxic: Toxic, messages: Messages, chance: Draw, case_of: Callable[[str], str]
    ) -> None:
        self.name = name
        self.hits = 0
        """Messages that it was put onto."""
        self._toxic = toxic
        self._messages = messages
        self._chance = chance
        self._case_of = case_of
        """The case of a job."""
        self._seen: Counter[str] = Counter()
        self._awaited: set[int] = set()
        """Requests whose answers it waits for, by the number of their sight."""
        self._touched: set[tuple[Link, str]] = set()
        self._over = False

    def meets(self, sight: Sight) -> None:
        """Asked about each unit that is about to pass."""
        if self._over:
            return
        if sight.request is not None and sight.request.seq in self._awaited:
            self._awaited.discard(sight.request.seq)
            self._put(sight.link, sight.way)
        elif is_at(sight, self._messages.name) and self._chosen(sight) and self._chance.random() < self._toxic.toxicity:
            self.hits += 1
            if self._toxic.stream is Stream.UPSTREAM or sight.way == IN or not sight.link.answers(sight.unit):
                self._put(sight.link, sight.way)
            else:
                self._awaited.add(sight.seq)

    def end(self) -> None:
        """Nothing is left of it on any connection; what it held is handed on."""
        self._over = True
        self._awaited.clear()
        touched, self._touched = self._touched, set()
        for link, way in touched:
            link.unpipe(way, self.name)

    def _chosen(self, sight: Sight) -> bool:
        group = self._case_of(sight.job) or sight.job if self._messages.each else ""
        self._seen[group] += 1
        number, messages = self._seen[group], self._messages
        if messages.nth:
            return number == messages.nth
        return not messages.first or number <= messages.first

    def _put(self, link: Link, way: str) -> None:
        loop = asyncio.get_running_loop()
        link.ail(way, self.name, stage_for(self._toxic, loop, self._chance))
        self._touched.add((link, way))
        if isinstance(self._toxic, PASSES):
            # The message itself is fed when the gate has answered, in this turn of the loop.
            loop.call_soon(link.cure, way, self.name)
