"""The proxy that says no: whatever is not tapped or declared is refused, and the host is remembered by its name."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from ..aio import Tasks

FIRST_LINE = 8192
"""Bytes of a request's first line that are looked at."""


class RefusingProxy:
    """An HTTP proxy that forwards nothing. `refused` names the hosts that were asked for, in order."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._server: asyncio.Server | None = None
        self._tasks = Tasks()
        self.refused: dict[str, None] = {}
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self.port}"

    def environment(self) -> dict[str, str]:
        """The variables by which clients find a proxy; the taps' own address is left out of it."""
        direct = f"127.0.0.1,localhost,{self._host}"
        values = {"HTTP_PROXY": self.url, "HTTPS_PROXY": self.url, "ALL_PROXY": self.url, "NO_PROXY": direct}
        return {**values, **{name.lower(): value for name, value in values.items()}}

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._host, 0, limit=FIRST_LINE)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._tasks.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await asyncio.wait_for(reader.readline(), 5)).decode("latin-1")
            host = _asked_for(line)
            self.refused[host] = None
            body = f"jobcheck refuses {host}: it is neither tapped nor declared in the rig\n".encode()
            head = f"HTTP/1.1 403 Refused by jobcheck\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        except (TimeoutError, ValueError, ConnectionError):
            pass  # not a proxy's client; there is nobody to tell
        finally:
            writer.close()


def _asked_for(line: str) -> str:
    """`api.example.com:443` of `CONNECT api.example.com:443 HTTP/1.1` or of a request with a whole URL."""
    parts = line.split()
    if len(parts) < 2:
        raise ValueError(f"no request line: {line!r}")
    if parts[0] == "CONNECT":
        return parts[1]
    found = urlsplit(parts[1])
    return found.netloc or parts[1]
