"""The proxy that says no: whatever is not tapped or declared is refused, and the host is remembered by its name.

A host that the rig declares (`provider(host="api.example.com")`) is let through: to the tap of its stand-in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Protocol, cast
from urllib.parse import urlsplit

MAX_HEAD = 64 * 1024
"""Bytes of a request's head that are looked at."""
PATIENCE = 5.0
"""Seconds in which a client must have said what it wants."""
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Host(Protocol):
    """The tap of a declared host."""

    def adopt(self, transport: asyncio.Transport, early: bytes) -> None:
        """Takes over a connection on which `early` was received."""
        ...


class RefusingProxy:
    """An HTTP proxy that forwards nothing, except to declared hosts.

    `refused` names the hosts that were asked for, in order. `hosts` are the declared ones, by name or by a pattern such
    as `*.example.com`.
    """

    def __init__(
        self, host: str, *, hosts: Mapping[str, Host] | None = None, refused: dict[str, None] | None = None
    ) -> None:
        self._host = host
        self._hosts = hosts or {}
        self._server: asyncio.Server | None = None
        self._clients: set[_Client] = set()
        self.refused: dict[str, None] = {} if refused is None else refused
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
        """Listens on a free port. Raises OSError."""
        self._server = await asyncio.get_running_loop().create_server(lambda: _Client(self), self._host, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stops listening and ends connections that were not handed on. May be called twice."""
        if self._server is not None:
            self._server.close()
        for client in list(self._clients):
            client.abort()
        await asyncio.sleep(0)  # transports close their sockets in a later turn of the loop

    def declared(self, authority: str) -> Host | None:
        """The tap that `api.example.com:443` is led to; None: it is to be refused."""
        name = authority.rpartition(":")[0] or authority
        return next((host for known, host in self._hosts.items() if fnmatchcase(name.lower(), known.lower())), None)


class _Client(asyncio.Protocol):
    """One client until it is refused or handed on."""

    def __init__(self, proxy: RefusingProxy) -> None:
        self._proxy = proxy
        self._head = b""
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._proxy._clients.add(self)
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self._head += data
        head, end, rest = self._head.partition(b"\r\n\r\n")
        if not end:
            if len(self._head) > MAX_HEAD:
                self.abort()
            return
        method, authority = _asked_for(head.partition(b"\r\n")[0].decode("latin-1"))
        if not authority:
            self.abort()  # not a proxy's client; there is nobody to tell
        elif (host := self._proxy.declared(authority)) is None:
            self._refuse(authority)
        else:
            self._leave()
            if method == "CONNECT":
                self._transport.write(ESTABLISHED)
            host.adopt(self._transport, rest if method == "CONNECT" else self._head)

    def _refuse(self, authority: str) -> None:
        self._proxy.refused[authority] = None
        body = f"jobcheck refuses {authority}: it is neither tapped nor declared in the rig\n".encode()
        head = f"HTTP/1.1 403 Refused by jobcheck\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self._transport.write(head.encode() + body)
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()
        self._leave()

    def _leave(self) -> None:
        self._timer.cancel()
        self._proxy._clients.discard(self)


def _asked_for(line: str) -> tuple[str, str]:
    """Method and `api.example.com:443` of `CONNECT api.example.com:443 HTTP/1.1` or of a request with a whole URL;
    two empty texts when it is neither."""
    parts = line.split()
    if len(parts) < 2:
        return "", ""
    if parts[0] == "CONNECT":
        return parts[0], parts[1]
    found = urlsplit(parts[1])
    return parts[0], found.netloc or parts[1]
