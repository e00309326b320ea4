"""The server of the HTTP API: HTTP/1.1 on a port of its own, one request at a time."""

from __future__ import annotations

import asyncio

import h11

from ..aio import Listener
from ..errors import ServiceError
from ..seeds import token
from .api import Api
from .api_answers import Answer

LARGEST = 4 * 1024 * 1024
"""Bytes of a body."""
_READ = 64 * 1024


class ApiServer(Listener):
    """Use `start` and `stop`; `host` and `port` say where it listens."""

    def __init__(self, api: Api) -> None:
        super().__init__("toxiproxy api")
        self.api = api
        self._turn = asyncio.Lock()

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listens; with port 0, on a free one. Raises ServiceError."""
        try:
            await super().start(host, port)
        except OSError as error:
            raise ServiceError(
                f"cannot listen on {host}:{port}: {error.strerror or error}", hint="--port 0 takes a free one"
            ) from None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = h11.Connection(h11.SERVER)
        try:
            while await self._one(wire, reader, writer):
                wire.start_next_cycle()
        except h11.RemoteProtocolError:
            pass  # the client speaks something else

    async def _one(self, wire: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; True when another one may follow."""
        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = wire.next_event()
            if event is h11.NEED_DATA:
                if wire.they_are_waiting_for_100_continue:
                    writer.write(wire.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
                wire.receive_data(await reader.read(_READ))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > LARGEST:
                    return False
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                break
            else:
                return False
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.headers}
        method = request.method.decode("latin-1")
        async with self._turn:
            answer = await self.api.answer(
                method, request.target.decode("latin-1"), bytes(body), headers.get("user-agent", "")
            )
        _send(wire, writer, answer, head_only=method == "HEAD")
        await writer.drain()
        return wire.our_state is h11.DONE and wire.their_state is h11.DONE


def _send(wire: h11.Connection, writer: asyncio.StreamWriter, answer: Answer, *, head_only: bool) -> None:
    headers = [("x-toxiproxy-request-id", token(20))] if answer.routed else []
    headers += [("content-type", answer.kind)] if answer.kind else []
    headers += [("x-content-type-options", "nosniff")] if answer.kind.startswith("text/plain") else []
    headers += [("location", answer.location)] if answer.location else []
    if answer.status != 204:
        headers.append(("content-length", str(len(answer.body))))
    out = wire.send(h11.Response(status_code=answer.status, headers=headers)) or b""
    if answer.body and not head_only:
        out += wire.send(h11.Data(data=answer.body)) or b""
    writer.write(out + (wire.send(h11.EndOfMessage()) or b""))
