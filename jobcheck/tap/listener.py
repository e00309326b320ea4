"""A listener is the tap of one upstream for one worker; a slot is the set of listeners of one worker.

A slot outlives its workers: when one was killed, the next one gets the same addresses.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections.abc import Callable, Mapping
from typing import Protocol

from ..aio import Tasks
from ..errors import ServiceError
from ..wire.unit import Change, Decoder, Kind, Unit
from .gate import Gate
from .link import Link, client_factory
from .refuse import RefusingProxy
from .sides import Client
from .sight import IN, OUT, Sight, Trace
from .toxic_pipeline import ToxicSet
from .turnstile import Turnstile

_link_numbers = itertools.count(1)


class Meaning(Protocol):
    """What a dialect says of a unit."""

    @property
    def role(self) -> str: ...
    @property
    def job(self) -> str: ...
    @property
    def parent(self) -> str: ...
    @property
    def root(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def text(self) -> str: ...


class Reader(Protocol):
    """A job system's dialect, as far as the tap needs it."""

    def read(self, unit: Unit, request: Unit | None, role: str) -> Meaning: ...


class Listener:
    """Accepts a worker's connections to one upstream."""

    def __init__(
        self,
        slot: Slot,
        upstream: str,
        target: tuple[str, int],
        decoder: Callable[[], Decoder],
        reader: Reader | None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.slot = slot
        self.upstream = upstream
        self.target = target
        self.tls = tls
        """The certificate for workers that want TLS; the server behind the tap is spoken to in plain."""
        self.trusted = False
        """A client has taken the certificate."""
        self.links: set[Link] = set()
        self.port = 0
        self.bytes = 0
        self.accepted = 0
        """Connections so far."""
        self.toxics = ToxicSet()
        self.down = False
        """Refuses connections, as a server does that is not there."""
        self.over = False
        """It is closed for good. A worker that lives may be connecting at this very moment."""
        self.refused = ""
        """Why connections to the upstream fail, as last seen."""
        self._decoder = decoder
        self._reader = reader
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listens: on a port of its own that it keeps when it was down in between. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._client, self.slot.host, self.port, backlog=256)
        self.port = self._server.sockets[0].getsockname()[1]

    def _client(self) -> Client:
        return client_factory(self, self._decoder, lambda: next(_link_numbers))

    def adopt(self, transport: asyncio.Transport, early: bytes) -> None:
        """Takes over a worker's connection that came by a proxy; `early` was received on it already."""
        client = self._client()
        transport.set_protocol(client)
        client.connection_made(transport)
        if early:
            client.data_received(early)

    async def take_down(self) -> None:
        """Refuses connections from now on and cuts those that exist."""
        self.down = True
        await self.close()

    async def bring_up(self) -> None:
        """Accepts connections again, on the same port. Raises OSError when somebody else took it."""
        if self.down:
            await self.open()
            self.down = False

    async def close(self) -> None:
        if self._server is not None:
            # A connection that was accepted, and that asyncio has not yet given to the server, is lost with it and
            # never closed (CPython 3.11): it is let in first, and no other after it.
            for socket in self._server.sockets:
                asyncio.get_running_loop().remove_reader(socket.fileno())
            await asyncio.sleep(0)
            self._server.close()
        for link in list(self.links):
            link.sever()
        for _ in range(3):  # transports tell their protocols, and close their sockets, in later turns of the loop
            await asyncio.sleep(0)

    # What links call

    def opened(self, link: Link) -> None:
        self.links.add(link)
        self.accepted += 1
        link.ordinal = self.accepted
        if self.down or self.over:  # it was accepted a moment before
            link.sever()
            self.forget(link)
            return
        if self.toxics:
            self.toxics.dress(link, asyncio.get_running_loop())
        self.slot.tasks.start(f"tap {self.slot.name} {self.upstream} connect", self._connect(link))

    async def _connect(self, link: Link) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: link.upstream, *self.target)
        except OSError as error:
            self.refused = f"{self.upstream} at {self.target[0]}:{self.target[1]}: {error}"
            link.client.abort()
            link.closed.set()
            self.forget(link)

    def note(self, text: str) -> None:
        """Tells the user something about the connections to this upstream, once."""
        self.slot.trace.note(f"{self.upstream}: {text}")

    def forget(self, link: Link) -> None:
        self.links.discard(link)

    def count(self, size: int) -> None:
        self.bytes += size

    def seen(self, link: Link, way: str, unit: Unit) -> Sight:
        """Enters the unit into the trace, with what the dialect says about it."""
        trace = self.slot.trace
        sight = trace.add(self.slot.name, self.upstream, link, way, unit)
        if way == OUT:
            if unit.kind is Kind.REQUEST and link.answers(unit):
                link.unanswered[unit.number] = sight
        elif unit.number and (request := link.unanswered.pop(unit.number, None)) is not None:
            sight.request = request
            request.reply = sight
            sight.role = request.role
        if self.slot.ignores is not None and way == OUT and self.slot.ignores(self.upstream, unit.shape):
            sight.role = "noise"
        elif self._reader is not None:
            request_unit = sight.request.unit if sight.request is not None else None
            meaning = self._reader.read(unit, request_unit, sight.role)
            sight.role, sight.job = meaning.role, meaning.job
            if sight.role in ("enqueue", "delivery"):
                sight.parent, sight.root, sight.task, sight.text = (
                    meaning.parent,
                    meaning.root,
                    meaning.task,
                    meaning.text,
                )
        idle = self.slot.background and unit.change is Change.NO
        if sight.role not in ("noise", "poll") and unit.kind is not Kind.CONTROL and not idle:
            trace.touch()
        elif idle and way == OUT and sight.role != "noise" and not _asked_already(link, sight):
            self.slot.looked(f"{self.upstream} {unit.shape}")
        if sight.role == "ack" and (way == IN or not link.answers(unit)):
            self.slot.settled += 1
            self.slot.settles(sight.job or (sight.request.job if sight.request is not None else ""))
        if sight.role == "enqueue":
            sight.sends = sight.job
        runs = self.slot.runs
        if not sight.job or (sight.role == "enqueue" and runs):
            sight.job = runs  # a follow-up job is a step of the job that sends it
        elif sight.role == "delivery":
            self.slot.job = sight.job
            self.slot.deliveries += 1
            self.slot.taken[sight.job] = sight.at
            self.slot.polls = self.slot.polls or sight.request is not None
        return sight

    def ask(self, link: Link, way: str, unit: Unit) -> bool:
        """Records the unit and says whether it is held."""
        sight = self.seen(link, way, unit)
        gate, turnstile = self.slot.gate, self.slot.turnstile
        if turnstile is not None and turnstile.holds(sight):
            return True
        return gate is not None and gate.holds(sight)


def _asked_already(link: Link, sight: Sight) -> bool:
    """The same question is still unanswered: whoever sends several at once asks one after the other, and does not look
    again. kombu asks so for the length of a queue in each priority before it sends its first job."""
    return any(one.unit.shape == sight.unit.shape for one in link.unanswered.values() if one is not sight)


class Slot:
    """All taps of one worker."""

    def __init__(self, name: str, trace: Trace, host: str = "127.0.0.1") -> None:
        self.name = name
        self.host = host
        """The loopback address of the run: what is left of another run has another one, and finds nobody here."""
        self.trace = trace
        self.tasks = Tasks()
        self.listeners: dict[str, Listener] = {}
        self.proxy: RefusingProxy | None = None
        """The worker's own proxy, where the rig declares fixed hosts."""
        self.gate: Gate | None = None
        self.background = False
        """A process that looks again and again whether there is something to do: what it only reads is no work."""
        self.looks: dict[str, tuple[float, float]] = {}
        """When each of its questions was asked the last two times, on the clock; 0: never."""
        self.ignores: Callable[[str, str], bool] | None = None
        """Upstream and shape of what the user wants no points of: it is noise."""
        self.turnstile: Turnstile | None = None
        """One job at a time, where jobs and those that they cause are told apart."""
        self.job = ""
        """The job that was delivered last."""
        self.deliveries = 0
        self.settled = 0
        """Acknowledgements that reached the broker since the trial began."""
        self.polls = False
        """Deliveries answer requests for them; a broker that pushes is not asked."""
        self.taken: dict[str, float] = {}
        """Jobs that were delivered since the trial began, and when, in seconds of the trace."""

    def looked(self, shape: str) -> None:
        """A background process has asked whether there is something to do."""
        before = self.looks.get(shape, (0.0, 0.0))[1]
        self.looks[shape] = (before, self.trace.now() + self.trace.started)

    async def tap(
        self,
        upstream: str,
        target: tuple[str, int],
        decoder: Callable[[], Decoder],
        reader: Reader | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> int:
        """Puts a tap in front of `target` and returns its port on the slot's host.

        With `tls` it ends the TLS of workers that begin it. Raises ServiceError when it cannot listen.
        """
        listener = Listener(self, upstream, target, decoder, reader, tls)
        try:
            await listener.open()
        except OSError as error:
            raise ServiceError(f"cannot listen on {self.host} for {upstream} of {self.name}: {error}") from None
        self.listeners[upstream] = listener
        return listener.port

    async def open_proxy(self, hosts: Mapping[str, str], refused: dict[str, None]) -> None:
        """Answers CONNECT for `hosts`, by upstream; other hosts are refused and entered into `refused`."""
        taps = {host: self.listeners[upstream] for host, upstream in hosts.items()}
        self.proxy = RefusingProxy(self.host, hosts=taps, refused=refused)
        await self.proxy.start()

    @property
    def runs(self) -> str:
        """The job that a message belongs to which does not say so itself."""
        return self.job if self.turnstile is None else self.turnstile.job

    def settles(self, job: str) -> None:
        """The broker took the ack of a job."""
        if self.turnstile is not None and self.turnstile.late:
            self.ended(job)

    def ended(self, job: str) -> None:
        """The worker is done with a job."""
        if self.turnstile is not None:
            self.turnstile.ended(job, self.gate)

    @property
    def links(self) -> list[Link]:
        return [link for listener in self.listeners.values() for link in listener.links]

    def in_flight(self) -> list[Sight]:
        """Requests that wait for their answer, polls and noise left out."""
        return [
            sight
            for link in self.links
            for sight in link.unanswered.values()
            if sight.role not in ("noise", "poll") and sight.unit.kind is Kind.REQUEST
        ]

    @property
    def asks(self) -> bool:
        """A request for the next job waits for its answer."""
        return any(sight.role == "poll" for link in self.links for sight in link.unanswered.values())

    async def drain(self) -> None:
        """Takes in what is already readable on every connection, so that a cut through them is consistent."""
        for _ in range(3):
            await asyncio.sleep(0)

    async def cut(self, deadline: float = 2.0) -> None:
        """The worker is dead: drops what is held and closes its upstream connections, seen by the servers."""
        self.gate = None
        await asyncio.gather(*(link.cut(deadline) for link in self.links))
        self.job = ""
        if self.turnstile is not None:
            self.turnstile.clear()

    def release(self) -> None:
        """Takes the gate away and passes on whatever is held."""
        self.gate = None
        for link in self.links:
            for way in (OUT, "in"):
                while link.holding(way):
                    link.release(way)

    async def close(self) -> None:
        if self.proxy is not None:
            await self.proxy.close()
        for listener in self.listeners.values():
            listener.over = True
            await listener.close()
        await self.tasks.close()
