"""What the toxic suite plays in: an engine, a server that says what it is told to, and clients."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import cast

from jobcheck.aio import wait_for
from jobcheck.clock import REAL
from jobcheck.faults.toxics import Stream, Toxic
from jobcheck.network.engine import ToxicEngine
from jobcheck.network.toxiproxy import ToxiproxyEngine
from jobcheck.seeds import Seeds, token
from jobcheck.tap.toxic_engine import EmbeddedToxics
from jobcheck.workers.supervisor import Supervisor, Worker

DEADLINE = 20.0
"""Seconds for whatever must happen; nothing is asserted about being faster."""
EARLY = 0.002
"""Seconds by which a clock may differ from another one."""
ENGINES = ["embedded", "toxiproxy"]
PROXY = "db"


class End(asyncio.Protocol):
    """One end of a connection, and everything that it saw."""

    def __init__(self, made: Callable[[End], None] = lambda end: None) -> None:
        self._made = made
        self.reads: list[bytes] = []
        self.eof = False
        self.closed = False
        self.error: Exception | None = None
        self.began = REAL.now()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._made(self)

    def data_received(self, data: bytes) -> None:
        self.reads.append(data)

    def eof_received(self) -> bool:
        self.eof = True
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed, self.error = True, exc

    @property
    def data(self) -> bytes:
        return b"".join(self.reads)

    @property
    def ended(self) -> bool:
        return self.eof or self.closed

    def send(self, data: bytes) -> None:
        assert self._transport is not None
        self.began = REAL.now()
        self._transport.write(data)

    def close(self) -> None:
        self.began = REAL.now()
        if self._transport is not None:
            self._transport.close()

    async def got(self, data: bytes) -> None:
        """Waits until exactly this was received."""
        await wait_for(
            lambda: len(self.data) >= len(data) or self.closed,
            f"{len(data)} bytes",
            deadline=DEADLINE,
            last_seen=lambda: f"{len(self.data)} bytes, ended: {self.ended}",
        )
        assert self.data == data

    async def saw_the_end(self) -> None:
        await wait_for(lambda: self.ended, "the end", deadline=DEADLINE, last_seen=lambda: f"{len(self.data)} bytes")

    def since(self, other: End) -> float:
        """Seconds since `other` last sent or closed."""
        return REAL.now() - other.began + EARLY


class World:
    """An engine with one proxy in front of one server."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._supervisor = Supervisor(f"toxics-{token()}", folder)
        self.engine: ToxicEngine = (
            EmbeddedToxics(Seeds(7)) if kind == "embedded" else ToxiproxyEngine[Worker](self._supervisor)
        )
        self.address = ("", 0)
        self._accepted: asyncio.Queue[End] = asyncio.Queue()
        self._ends: list[End] = []

    async def __aenter__(self) -> World:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, "127.0.0.1", 0)
        self.upstream: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        await self.engine.start()
        self.address = await self.engine.proxy(PROXY, *self.upstream)
        return self

    def _accept(self) -> End:
        end = End(self._accepted.put_nowait)
        self._ends.append(end)
        return end

    async def connect(self, address: tuple[str, int] | None = None) -> tuple[End, End]:
        """A new connection through the proxy: the client's end and the server's."""
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(End, *(address or self.address))
        self._ends.append(client)
        return client, await asyncio.wait_for(self._accepted.get(), DEADLINE)

    async def refused(self) -> bool:
        try:
            client, _ = await self.connect()
        except ConnectionRefusedError:
            return True
        client.close()
        return False

    async def add(self, toxic: Toxic) -> str:
        return await self.engine.add(PROXY, toxic)

    async def remove(self, name: str) -> None:
        await self.engine.remove(PROXY, name)

    async def alive(self) -> None:
        """A new connection passes everything both ways."""
        client, server = await self.connect()
        client.send(b"ping")
        await server.got(b"ping")
        server.send(b"pong")
        await client.got(b"pong")
        client.close()
        await server.saw_the_end()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.engine.reset()
                await self.alive()
        finally:
            for end in self._ends:
                end.close()
            await self.engine.close()
            await self.engine.close()
            self._server.close()
            await self._supervisor.close()
        assert await self.refused(), "a closed engine leaves no proxy behind"


def sender_and_receiver(stream: Stream, client: End, server: End) -> tuple[End, End]:
    """Who talks in this direction, and who listens."""
    return (client, server) if stream is Stream.UPSTREAM else (server, client)


def play(kind: str, folder: Path, body: Callable[[World], Awaitable[None]]) -> None:
    """Runs the body in a world of its own, which must be healthy again after a reset."""

    async def main() -> None:
        async with World(kind, folder) as world:
            await body(world)

    asyncio.run(main())
