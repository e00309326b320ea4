"""One connection of a worker through the tap: two asyncio protocols, a decoder between them, and what is held.

    worker --- Client --- decoder --- Upstream --- server

The bytes forwarded are the bytes received. A unit that the gate holds stops its direction only; what follows it waits
in order behind it. Heartbeats overtake, so that a held connection stays alive. Where a toxic acts on a direction, what
the gate lets through goes through its pipeline.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..aio import bounded
from ..wire.refusals import Refusal
from ..wire.unit import Decoder, Kind, Unit
from .sides import Client, Side, Upstream
from .sight import IN, OUT, Sight
from .toxic_pipeline import Pipeline
from .toxics import How, Stage

if TYPE_CHECKING:
    from .listener import Listener


class Link:
    """One connection. `release` and `drop` are for the runner; the rest is for the two protocols (`tap.sides`)."""

    def __init__(self, listener: Listener, number: int, decoder: Decoder) -> None:
        self.listener = listener
        self.number = number
        self.ordinal = 0
        """Which connection of its listener it is, from 1."""
        self.decoder = decoder
        self.client = Client(self)
        self.upstream = Upstream(self)
        self.closed = asyncio.Event()
        self.peer_port = 0
        self.own_port = 0
        """Where the worker connected to: the tap's port, or that of the proxy that it came by."""
        self.cutting = False
        self.unanswered: dict[int, Sight] = {}
        self._held: dict[str, deque[Unit]] = {OUT: deque(), IN: deque()}
        self._passing: dict[str, list[bytes]] = {OUT: [], IN: []}
        """What the gate let through and is not yet written."""
        self._early: list[bytes] = []
        self._instead: dict[int, bytes] = {}
        """By number of the request: what the worker is answered in place of the server's own words."""
        self._ends: dict[str, bool] = {OUT: False, IN: False}
        self._early_end: How | None = None
        self._gone: set[str] = set()
        self._pipes: dict[str, Pipeline] = {}
        """Of the directions that a toxic acts on."""

    # What the runner calls

    def holding(self, way: str) -> bool:
        return bool(self._held[way])

    def release(self, way: str) -> None:
        """Passes on the held unit; those behind it are put before the gate again."""
        if self._held[way]:
            self._go_on(way, self._held[way].popleft().raw)

    def refuse(self, refusal: Refusal) -> None:
        """Has the held request refused: what goes to the server in its place, and what the worker is answered."""
        if not self._held[OUT]:
            return
        unit = self._held[OUT].popleft()
        if refusal.instead:
            self._instead[unit.number] = refusal.instead
        self._go_on(OUT, refusal.send)
        if refusal.answer:
            self.received(IN, refusal.answer)

    def lose(self) -> None:
        """Breaks the worker's side with a TCP reset. What is held is lost; what the server got before stays with it."""
        self.cutting = True
        self._forget_all()
        self.client.reset()
        self.upstream.close()

    def _go_on(self, way: str, first: bytes) -> None:
        queue = self._held[way]
        out = self._passing[way]
        out.append(first)
        while queue and not self._stopped(way, queue[0]):
            out.append(queue.popleft().raw)
        self._pass_on(way)
        if not queue and self._ends[way]:
            self._finish(way)

    def drop(self) -> None:
        """Forgets what is held: it never reaches its receiver."""
        for queue in self._held.values():
            queue.clear()

    async def cut(self, deadline: float) -> None:
        """The worker is dead: ends the upstream connection with a FIN and waits until the server has noticed."""
        self.cutting = True
        self.drop()
        self.client.abort()
        self._discard(IN)
        if OUT in self._pipes:
            self._pipes[OUT].flush()
        if self._ends[IN]:
            self.upstream.close()
        else:
            self.upstream.end()
        try:
            await bounded(self.closed.wait(), deadline)
        except TimeoutError:
            self.upstream.abort()

    def reset(self) -> None:
        """Breaks both sides at once with a TCP reset; what is held or under way is lost."""
        self._forget_all()
        self.client.reset()
        self.upstream.reset()

    def sever(self) -> None:
        """Closes both sides at once; what is held or under way is lost."""
        self._forget_all()
        self.client.abort()
        self.upstream.abort()

    def answers(self, unit: Unit) -> bool:
        """Whether the server will answer this request."""
        return unit.kind is Kind.REQUEST and not unit.info.get("no_reply", False)

    # What the protocols call

    def received(self, way: str, data: bytes) -> None:
        self.listener.count(len(data))
        units = self.decoder.client(data) if way == OUT else self.decoder.server(data)
        self._route(way, units)

    def ended(self, way: str) -> None:
        if self._ends[way]:
            return
        units = self.decoder.client_end() if way == OUT else self.decoder.server_end()
        self._route(way, units)
        self._ends[way] = True
        if not self._held[way]:
            self._finish(way)

    def connected(self) -> None:
        """The upstream answered: what came early goes out."""
        early, self._early = self._early, []
        if early:
            self.upstream.write(b"".join(early))
        if self._early_end is not None:
            self.finished(OUT, self._early_end)

    def lost(self, way: str) -> None:
        """One side is gone. What it sent before goes on through the toxics; what it was to get is forgotten."""
        self._gone.add(way)
        self._discard(IN if way == OUT else OUT)
        if way == IN:
            self.closed.set()
        if way == IN or not self.cutting:
            if way in self._pipes:
                self._pipes[way].finish(How.CLOSE)
            else:
                self._receiver(way).close()
        if IN in self._gone and not (IN in self._pipes and self._pipes[IN].busy):
            self.listener.forget(self)

    @property
    def dead(self) -> bool:
        """The server has ended it, whatever the worker does with its own side: no request is answered any more."""
        return self.closed.is_set() or self._ends[IN]

    @property
    def over(self) -> bool:
        """Nothing more will pass: the side that ended last closes."""
        held = self._held[OUT] or self._held[IN] or any(pipe.busy for pipe in self._pipes.values())
        return self.cutting or (self._ends[OUT] and self._ends[IN] and not held)

    # Inside

    def _route(self, way: str, units: list[Unit]) -> None:
        out = self._passing[way]
        queue = self._held[way]
        for unit in units:
            if way == IN and unit.number in self._instead:
                unit.raw = self._instead.pop(unit.number)
                unit.failed = True
            if unit.answer is not None:
                self.listener.seen(self, way, unit).fate = "answered"
                if unit.info.get("starts_tls"):
                    self.client.start_tls(unit.answer)
                else:
                    self._write(IN if way == OUT else OUT, unit.answer)
            elif unit.info.get("starts_tls"):  # a server agreed to what the client asked
                self.listener.seen(self, way, unit)
                self._write(way, b"".join(out))
                out.clear()
                self.client.start_tls(unit.raw)
            elif unit.info.get("heartbeat"):
                out.append(unit.raw)
            elif queue or self._stopped(way, unit):
                queue.append(unit)
            else:
                out.append(unit.raw)
        self._pass_on(way)

    def _pass_on(self, way: str) -> None:
        """Writes what the gate let through so far."""
        if out := self._passing[way]:
            data = b"".join(out)
            out.clear()
            self._write(way, data)

    def _stopped(self, way: str, unit: Unit) -> bool:
        return unit.kind is not Kind.PART and self.listener.ask(self, way, unit)

    def _write(self, way: str, data: bytes) -> None:
        if way in self._pipes:
            self._pipes[way].feed(data)
        else:
            self.deliver(way, data)

    def _finish(self, way: str) -> None:
        if way in self._pipes:
            self._pipes[way].finish(How.END)
        else:
            self.finished(way, How.END)

    def _discard(self, way: str) -> None:
        if way in self._pipes:
            self._pipes[way].discard()

    def _forget_all(self) -> None:
        self.drop()
        self._discard(OUT)
        self._discard(IN)

    def _receiver(self, way: str) -> Side:
        return self.upstream if way == OUT else self.client

    # What the pipelines call, and who adds and removes toxics

    def pipeline(self, way: str) -> Pipeline:
        """The pipeline of this direction, made when there is none."""
        if way not in self._pipes:
            self._pipes[way] = Pipeline(self, way, asyncio.get_running_loop())
        return self._pipes[way]

    def unpipe(self, way: str, name: str) -> None:
        """Takes a toxic out of this direction; what it holds is handed on."""
        if (pipe := self._pipes.get(way)) is not None:
            pipe.remove(name)
            if pipe.empty:
                del self._pipes[way]

    def ail(self, way: str, name: str, stage: Stage) -> None:
        """Puts a toxic before the message that the gate is asked about; what came before it is through already.

        Nothing happens when that toxic is there still.
        """
        self._pass_on(way)
        if not (pipe := self.pipeline(way)).has(name):
            pipe.add(name, stage)

    def cure(self, way: str, name: str) -> None:
        """Takes that toxic off as soon as it holds nothing."""
        if (pipe := self._pipes.get(way)) is not None:
            pipe.retire(name)

    def deliver(self, way: str, data: bytes) -> None:
        """Writes to the receiver of this direction, or keeps it for when the upstream has answered."""
        if way == IN:
            self.client.write(data)
        elif self.upstream.ready:
            self.upstream.write(data)
        else:
            self._early.append(data)

    def finished(self, way: str, how: How) -> None:
        """Everything of this direction was delivered, and this is how it ends."""
        if how is How.RESET:
            self.reset()
        elif way == OUT and not self.upstream.ready:
            self._early_end = how
        elif how is How.CLOSE:
            self._receiver(way).close()
        else:
            self._receiver(way).end()
            if way in self._pipes and self.over:
                self.upstream.close()
                self.client.close()

    def throttle(self, way: str, on: bool) -> None:
        """Makes the sender of this direction wait, or go on."""
        (self.client if way == OUT else self.upstream).hold_reading("toxics", on)


def client_factory(listener: Listener, decoder: Callable[[], Decoder], number: Callable[[], int]) -> Client:
    """The protocol of a new connection from the worker."""
    return Link(listener, number(), decoder()).client
