"""The two ends of one connection through the tap, as asyncio protocols: the worker's and the server's."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from typing import TYPE_CHECKING, cast

from ..wire.tls import TLS_UNDECIDED, client_hello
from .sight import IN, OUT
from .tls import BROKEN_OFF, PLAIN, TlsEnd, refusal

if TYPE_CHECKING:
    from .link import Link


class Side(asyncio.Protocol):
    """What both protocols share: writing, ending, back-pressure on the other side."""

    way = OUT

    def __init__(self, link: Link) -> None:
        self.link = link
        self.transport: asyncio.Transport | None = None
        self.ready = False
        self._not_reading: set[str] = set()
        """Why it does not read now."""

    @property
    def _other(self) -> Side:
        return self.link.upstream if self.way == OUT else self.link.client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.ready = True

    def data_received(self, data: bytes) -> None:
        self.link.received(self.way, data)

    def eof_received(self) -> bool:
        self.link.ended(self.way)
        return not self.link.over

    def connection_lost(self, exc: Exception | None) -> None:
        self.ready = False
        self.link.lost(self.way)

    def pause_writing(self) -> None:
        self._other.hold_reading("the other side is full", True)

    def resume_writing(self) -> None:
        self._other.hold_reading("the other side is full", False)

    def hold_reading(self, why: str, on: bool) -> None:
        """Stops reading for this reason, or ends it; it reads when no reason is left."""
        (self._not_reading.add if on else self._not_reading.discard)(why)
        if self.transport is not None and not self.transport.is_closing():
            if self._not_reading:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def end(self) -> None:
        """Half-closes: the peer sees the end of the stream."""
        if self.transport is not None and not self.transport.is_closing():
            try:
                self.transport.write_eof()
            except (OSError, RuntimeError):  # the peer was faster
                self.transport.close()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def reset(self) -> None:
        """Closes with a TCP reset: the peer gets an error, not an end."""
        if self.transport is not None and not self.transport.is_closing():
            own: socket.socket = self.transport.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()


class Client(Side):
    """The worker's side, with the server's end of TLS where the tap has a certificate and the worker wants it."""

    way = OUT

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._tls: TlsEnd | None = None
        self._tls_failed = False
        self._said_goodbye = False
        self._first = b""
        """The first bytes, while they do not tell yet whether the client begins with TLS."""
        self._undecided = link.listener.tls is not None
        if self._undecided and link.decoder.protocol == "smtp":
            # Its server speaks first, so the client's first bytes come too late to tell.
            self._undecided = False
            if not link.decoder.asks_for_tls:
                self.start_tls()

    def start_tls(self, answer: bytes = b"") -> None:
        """What follows `answer`, in both directions, is TLS."""
        if answer:
            super().write(answer)
        context = self.link.listener.tls
        assert context is not None, "only a tap with a certificate agrees to TLS"
        self._undecided = False
        self._tls = TlsEnd(context)

    def data_received(self, data: bytes) -> None:
        if self._undecided:
            data = self._first + data
            hello = client_hello(data)
            if hello is TLS_UNDECIDED:
                self._first = data
                return
            self._decide(bool(hello))
        if self._tls is not None:
            data = self._decrypted(self._tls, data)
        if data:
            super().data_received(data)
        if self._tls is not None and self._tls.over:
            self.link.ended(OUT)

    def _decide(self, hello: bool) -> None:
        self._undecided = False
        self._first = b""
        if hello:
            self.start_tls()
        elif not self.link.decoder.asks_for_tls:
            self.link.listener.note(PLAIN)

    def _decrypted(self, tls: TlsEnd, data: bytes) -> bytes:
        try:
            plain = tls.receive(data)
        except ssl.SSLError as error:
            self._tls_failed = True
            self.link.listener.note(refusal(error))
            super().write(tls.outgoing())
            super().close()
            return b""
        if tls.ready:
            self.link.listener.trusted = True
        if answer := tls.outgoing():
            super().write(answer)
        return plain

    def eof_received(self) -> bool:
        if self._first:
            first, self._first = self._first, b""
            super().data_received(first)
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        began = self._tls is not None and not self._tls.ready and not self._tls_failed
        if began and not self.link.cutting and not self.link.listener.trusted:
            self.link.listener.note(BROKEN_OFF)
        super().connection_lost(exc)

    def write(self, data: bytes) -> None:
        if self._tls is None:
            super().write(data)
        elif not self._tls_failed:
            self._tls.send(data)
            super().write(self._tls.outgoing())

    def end(self) -> None:
        self._say_goodbye()
        super().end()

    def close(self) -> None:
        self._say_goodbye()
        super().close()

    def _say_goodbye(self) -> None:
        if self._tls is not None and not self._said_goodbye:
            self._said_goodbye = True
            self._tls.close()
            super().write(self._tls.outgoing())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self.link.peer_port = peer[1] if peer else 0
        own = transport.get_extra_info("sockname")
        self.link.own_port = own[1] if own else 0
        self.link.listener.opened(self.link)


class Upstream(Side):
    """The server's side."""

    way = IN

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.link.client.transport is None or self.link.client.transport.is_closing():
            self.close()
            return
        self.link.connected()
