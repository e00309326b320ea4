"""Hands a provider's calls on to a mock or a sandbox, one connection a call, and brings its answers back unchanged."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping

import h11

from ..services.spec import Address
from .answers import Answer, Call
from .backend import plain_conflict

_READ = 64 * 1024
_HOP = ("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect")
"""Headers that belong to one connection."""


class Forward:
    """The server at `address`. `keep_host`: it is told the host that the app named, as a mock on this machine wants."""

    def __init__(self, address: Address, *, keep_host: bool) -> None:
        self.address = address
        self._keep_host = keep_host
        self._base = f"/{address.path}".rstrip("/")

    async def answer(self, call: Call) -> Answer:
        """What the server says; 502 when it says nothing."""
        return await self.ask(call.method, call.path, call.headers, call.raw)

    def conflict(self, status: int, why: str) -> Answer:
        return plain_conflict(status, why)

    async def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """One call of our own making; as `answer`."""
        try:
            return await self._ask(method, target, self._headers(headers, body), body)
        except (OSError, h11.ProtocolError, EOFError) as error:
            said = " ".join(str(error).split()) or type(error).__name__
            where = f"{self.address.scheme}://{self.address.host}:{self.address.port}"
            text = f"jobcheck: expected an answer of the upstream {where}, and got none: {said}"
            return Answer(status=502, json={"error": text}, note=text)

    def _headers(self, headers: Mapping[str, str], body: bytes) -> list[tuple[str, str]]:
        kept = {name: value for name, value in headers.items() if name not in _HOP}
        if not self._keep_host or "host" not in kept:
            kept["host"] = f"{self.address.host}:{self.address.port}"
        kept["connection"] = "close"
        if body or "content-length" in kept:
            kept["content-length"] = str(len(body))
        return list(kept.items())

    async def _ask(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> Answer:
        tls = ssl.create_default_context() if self.address.scheme == "https" else None
        reader, writer = await asyncio.open_connection(self.address.host, self.address.port, ssl=tls)
        try:
            wire = h11.Connection(h11.CLIENT)
            request = h11.Request(method=method, target=self._base + target, headers=headers)
            out = [wire.send(request), wire.send(h11.Data(data=body)) if body else b"", wire.send(h11.EndOfMessage())]
            writer.write(b"".join(part or b"" for part in out))
            await writer.drain()
            return await _answer(wire, reader, method)
        finally:
            writer.close()


async def _answer(wire: h11.Connection, reader: asyncio.StreamReader, method: str) -> Answer:
    status, content = 0, bytearray()
    headers: dict[str, str] = {}
    while True:
        event = wire.next_event()
        if event is h11.NEED_DATA:
            wire.receive_data(await reader.read(_READ))
        elif isinstance(event, h11.Response):
            status = event.status_code
            for raw_name, raw_value in event.headers:
                name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
        elif isinstance(event, h11.Data):
            content += event.data
        elif isinstance(event, h11.EndOfMessage):
            dropped = _HOP if method == "HEAD" else (*_HOP, "content-length")
            kept = {name: value for name, value in headers.items() if name not in dropped}
            return Answer(status=status, headers=kept, raw=bytes(content))
        elif isinstance(event, h11.ConnectionClosed):
            raise EOFError("it closed the connection")
