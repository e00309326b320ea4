"""Real servers behind a minimal proxy that decodes what passes: the decoders' conformance suite talks through it.

Everything runs in one asyncio loop in a thread of its own, so that blocking clients can be used in the test itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from jobcheck.aio import wait_for
from jobcheck.seeds import token
from jobcheck.services import start as start_service
from jobcheck.services.base import Service
from jobcheck.services.spec import UpstreamSpec
from jobcheck.wire.registry import decoder_for
from jobcheck.wire.unit import Change, Decoder, Kind, Unit
from jobcheck.workers.guardian import Guardian
from jobcheck.workers.supervisor import Supervisor

T = TypeVar("T")
DEADLINE = 20.0


@dataclass
class Connection:
    """What passed on one connection."""

    decoder: Decoder
    client: list[Unit] = field(default_factory=list)
    server: list[Unit] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=lambda: {"client": 0, "server": 0})

    def said(self) -> list[tuple[str, Change, Change]]:
        """Shape, guess and the server's truth of each request."""
        truths: dict[int, Change] = {}
        for unit in self.server:
            if unit.number and unit.last and unit.kind in (Kind.REPLY, Kind.PART):
                truths[unit.number] = unit.change
        return [
            (unit.shape, unit.change, truths.get(unit.number, unit.change))
            for unit in self.client
            if unit.kind is Kind.REQUEST
        ]


class Proxy:
    """A listener in front of one server. Use it by `World.proxy`."""

    def __init__(self, protocol: str, port: int) -> None:
        self._protocol = protocol
        self._target = port
        self.connections: list[Connection] = []
        self.cut_off = False
        """Requests may be left without a reply."""
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def close(self) -> None:
        """Stops listening and waits until every connection is over."""
        assert self._server is not None
        self._server.close()
        await wait_for(lambda: not self._busy, "the clients to disconnect", deadline=DEADLINE)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        ends = [writer]
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
            ends.insert(0, up_writer)
            connection = Connection(decoder_for(self._protocol))
            self.connections.append(connection)
            await asyncio.gather(
                self._pump(connection, "client", reader, up_writer, writer),
                self._pump(connection, "server", up_reader, writer, up_writer),
            )
        finally:
            for end in ends:
                end.close()
                with contextlib.suppress(ConnectionError):
                    await end.wait_closed()
            self._busy.discard(task)

    async def _pump(
        self,
        connection: Connection,
        side: str,
        reader: asyncio.StreamReader,
        onward: asyncio.StreamWriter,
        back: asyncio.StreamWriter,
    ) -> None:
        decoder = connection.decoder
        push, end = (decoder.client, decoder.client_end) if side == "client" else (decoder.server, decoder.server_end)
        seen = connection.client if side == "client" else connection.server
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                connection.sent[side] += len(data)
                for unit in push(data):
                    seen.append(unit)
                    (back if unit.answer is not None else onward).write(
                        unit.raw if unit.answer is None else unit.answer
                    )
                await onward.drain()
        with contextlib.suppress(OSError):  # shutdown() of a connection that is reset says ENOTCONN
            for unit in end():
                seen.append(unit)
                onward.write(unit.raw)
            if side == "server":
                onward.close()
            elif onward.can_write_eof():
                onward.write_eof()

    # What tests ask

    def units(self, side: str = "client") -> list[Unit]:
        return [unit for connection in self.connections for unit in getattr(connection, side)]

    def said(self) -> list[tuple[str, Change, Change]]:
        """Shape, guess and truth of each request, connection by connection."""
        return [entry for connection in self.connections for entry in connection.said()]

    def changes(self) -> list[str]:
        """Shapes of the requests that changed state."""
        return [shape for shape, _, truth in self.said() if truth in (Change.YES, Change.MAYBE)]

    def check(self) -> None:
        """Asserts what holds for every right client: nothing opaque, no byte lost, each request has one reply."""
        assert self.connections, "nothing went through the proxy"
        for connection in self.connections:
            for side in ("client", "server"):
                units: list[Unit] = getattr(connection, side)
                assert sum(len(unit.raw) for unit in units) == connection.sent[side]
                assert [unit.note for unit in units if unit.note] == []
                assert [unit for unit in units if unit.kind is Kind.OPAQUE] == []
            asked = [unit.number for unit in connection.client if unit.kind is Kind.REQUEST]
            due = {unit.number for unit in connection.client if unit.kind is Kind.REQUEST and not silent(unit)}
            answered = [unit.number for unit in connection.server if unit.kind is Kind.REPLY]
            assert asked == sorted(set(asked))
            assert len(answered) == len(set(answered))
            assert set(answered) == due or (self.cut_off and set(answered) < due)


def silent(unit: Unit) -> bool:
    """The protocol has no answer to this request."""
    return bool(unit.info.get("no_reply"))


class World:
    """A loop in a thread, with the services and proxies that tests of one module use."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="world")
        self._thread.start()
        run = f"wire{token()}"
        self._folder = folder
        self._guardian = Guardian.start(run)
        self._supervisor = Supervisor(run, folder / "logs", self._guardian)
        self._services: list[Service] = []

    def run(self, work: Coroutine[None, None, T]) -> T:
        """Runs a coroutine in the world's loop and waits for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def service(self, spec: UpstreamSpec) -> Service:
        """Starts a server."""
        service = self.run(
            start_service(
                spec,
                name=spec.kind,
                supervisor=self._supervisor,
                guardian=self._guardian,
                folder=self._folder,
                environ={},
            )
        )
        self._services.append(service)
        return service

    @contextlib.contextmanager
    def proxy(self, protocol: str, port: int) -> Iterator[Proxy]:
        """A proxy in front of `port`. At its end all clients must have disconnected, and `check` must hold."""
        proxy = Proxy(protocol, port)
        self.run(proxy.open())
        try:
            yield proxy
        finally:
            self.run(proxy.close())
        proxy.check()

    def settle(self, condition: Callable[[], bool], what: str) -> None:
        """Waits until something that the proxy sees is so."""

        async def wait() -> None:
            await wait_for(condition, what, deadline=DEADLINE)

        self.run(wait())

    def close(self, *last: Callable[[], Awaitable[None]]) -> None:
        async def end() -> None:
            for finish in last:
                await finish()
            for service in reversed(self._services):
                await service.stop()
            await self._supervisor.close()

        try:
            self.run(end())
        finally:
            self._guardian.close()
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()
