"""What the stand-in servers have in common: a loopback listener whose connections are named tasks."""

from __future__ import annotations

import asyncio

from ..aio import Tasks


class Listener:
    """Listens on a free loopback port and runs `serve` for each connection. Subclasses say what is spoken."""

    limit = 64 * 1024
    """Bytes that a reader keeps ahead, and the longest line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.host = ""
        """Empty before `start`."""
        self.port = 0
        """0 before `start`."""
        self._server: asyncio.Server | None = None
        self._tasks = Tasks()

    async def start(self) -> None:
        """Listens on a free loopback port. Raises OSError when that fails."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=self.limit)
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    async def stop(self) -> None:
        """Closes the listener and every connection. May be called twice."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        await self._tasks.close()
        await asyncio.sleep(0)  # the transports that were just aborted take one turn of the loop to close
        await server.wait_closed()

    @property
    def failures(self) -> list[BaseException]:
        """What went wrong in connections and was not the client's doing: our own defects."""
        return self._tasks.failures

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speaks with one client until it is done. ConnectionError is fine: clients get killed here."""
        raise NotImplementedError

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.start(f"{self.name} connection", self._guard(reader, writer))

    async def _guard(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.serve(reader, writer)
        except ConnectionError:
            pass  # a killed worker resets its connections; what it asked for completely was recorded
        except asyncio.CancelledError:
            writer.transport.abort()  # a stopped client that does not read must not hold up the end
            raise
        finally:
            writer.close()
