"""AMQP 0-9-1, as RabbitMQ speaks it.

Method, header and body frames of one content are one unit. A publish, ack, nack or reject is a REQUEST without reply
(`no_reply` in `info`); on a channel in confirm mode the server's ack is the REPLY to the publish. Other methods of the
client are REQUESTs answered by the server's `-ok`. What concerns the connection or opens a channel is CONTROL, and so
are heartbeats, which must overtake held units (`heartbeat` in `info`). A delivery is a PUSH.

`info`: `channel` and `method` of every unit; of a publish `exchange`, `routing_key`, `properties` (with `headers`),
`body` (at most 256 KiB), `confirms`; of a delivery or get-ok the same with `delivery_tag`, `redelivered`,
`consumer_tag`, `queue`, `no_ack`; of an ack `delivery_tag`, `multiple`, `requeue`; of a consume `queue`,
`consumer_tag`, `no_ack`; of a close `reply_code` and `reply_text`.
"""

from __future__ import annotations

import struct
from typing import Any

from .amqp_channels import Channel, Channels
from .amqp_frames import (
    BODY,
    BODY_CAP,
    CONTENT,
    FRAME_END,
    HEADER,
    HEARTBEAT,
    MAX_DECODED,
    MAX_FRAME,
    METHOD,
    Method,
    read_header,
    read_method,
)
from .stream import SKIP_FROM, Side, StreamDecoder
from .unit import Kind, Unit, WireError

_FRAME = struct.Struct(">BHI")
MAX_OPEN = 1000
"""Contents under way on one connection, one a channel."""
_GREETING = b"AMQP\x00\x00\x09\x01"


class Content:
    """A message on its way: what is known of it so far."""

    __slots__ = ("body", "channel", "left", "method", "properties")

    def __init__(self, channel: Channel, method: Method) -> None:
        self.channel = channel
        self.method = method
        self.properties: dict[str, Any] = {}
        self.body = bytearray()
        self.left = -1
        """Bytes of the body that are to come; -1 before the header."""


class _Way:
    """One direction: the content that each channel has begun, and the one whose frames are held."""

    def __init__(self, side: Side, client: bool) -> None:
        self.side = side
        self.client = client
        self.begun: dict[int, Content] = {}
        self.given: dict[int, int] = {}
        """Channels whose content was given out before it was complete, and its number."""
        self.held: int | None = None
        """The channel whose frames are held."""
        self.long: tuple[int, int] | None = None
        """Channel and length of the body frame that is passed through because it is long."""


class AmqpDecoder(StreamDecoder):
    """Both directions of one connection to RabbitMQ."""

    protocol = "amqp"
    tls_advice = "say rabbitmq(tls=True) in the rig, or give the worker an amqp:// URL instead of amqps:// in the tests"

    def __init__(self) -> None:
        super().__init__()
        self._greeted = False
        self._answered = False
        self._out = _Way(self._from_client, client=True)
        self._in = _Way(self._from_server, client=False)
        self._channels = Channels()
        self.heartbeat = 0
        """Seconds that both sides agreed on; 0: none, or they have not yet."""

    def _client_step(self, buf: bytes, pos: int) -> int:
        if not self._greeted:
            return self._greeting(self._from_client, buf, pos)
        return self._frame(self._out, buf, pos)

    def _server_step(self, buf: bytes, pos: int) -> int:
        if not self._answered and buf[pos : pos + 1] == b"A":
            return self._greeting(self._from_server, buf, pos)
        self._answered = True
        return self._frame(self._in, buf, pos)

    def _greeting(self, side: Side, buf: bytes, pos: int) -> int:
        """The eight bytes by which a client begins, or by which a server refuses its version."""
        start = buf[pos : pos + 8]
        if side is self._from_client:
            if not _GREETING.startswith(start):
                if start[:4] == b"AMQP" and len(start) < 8:
                    side.want(8)
                    return pos
                version = ".".join(str(part) for part in start[5:8]) if start[:4] == b"AMQP" else ""
                raise WireError(f"AMQP {version} instead of 0.9.1" if version else f"no AMQP greeting, got {start!r}")
        elif not b"AMQP".startswith(start[:4]):
            raise WireError(f"no AMQP greeting, got {start!r}")
        if len(start) < 8:
            side.needed = len(buf) - pos + 1
            return pos
        self._greeted = self._greeted or side is self._from_client
        self._answered = self._answered or side is self._from_server
        self._finish(side, buf, pos + 8, Unit(b"", Kind.CONTROL, "amqp header"))
        return pos + 8

    def _frame(self, way: _Way, buf: bytes, pos: int) -> int:
        side = way.side
        if way.long is not None:
            channel, size = way.long
            way.long = None
            body, side.capture = bytes(side.capture or b""), None
            if buf[pos] != FRAME_END:
                raise WireError("a frame does not end where it says")
            return self._body(way, channel, body, size, buf, pos + 1)
        if len(buf) - pos < 7:
            side.want(7)
            return pos
        kind, number, size = _FRAME.unpack_from(buf, pos)
        size = int(size)
        if kind not in (METHOD, HEADER, BODY, HEARTBEAT) or size > MAX_FRAME:
            raise WireError(f"expected a frame, got {buf[pos : pos + 7]!r}")
        end = pos + 8 + size
        if end > len(buf):
            if size <= SKIP_FROM:
                side.want(end - pos)
                return pos
            if kind != BODY:
                raise WireError(f"a frame of type {kind} has {size} bytes")
            if way.held != number:
                self._let_go(way, buf, pos)
            way.long = (number, size)
            side.capture = bytearray(buf[pos + 7 : pos + 7 + BODY_CAP])
            return side.pass_over(buf, end - 1 - len(buf), BODY_CAP)
        if buf[end - 1] != FRAME_END:
            raise WireError("a frame does not end where it says")
        if way.held is not None and way.held != number:
            self._let_go(way, buf, pos)
        if kind == BODY:
            return self._body(way, number, buf[pos + 7 : min(end - 1, pos + 7 + BODY_CAP)], size, buf, end)
        if kind == HEARTBEAT:
            unit = Unit(b"", Kind.CONTROL, "amqp heartbeat", info={"heartbeat": True, "channel": number})
            self._finish(side, buf, end, unit)
        elif size > MAX_DECODED and kind == HEADER:
            raise WireError(f"a frame of type {kind} has {size} bytes")
        elif kind == HEADER:
            self._header(way, number, buf[pos + 7 : end - 1], buf, end)
        else:
            self._method(way, number, read_method(buf[pos + 7 : end - 1]), buf, end)
        return end

    def _method(self, way: _Way, number: int, method: Method, buf: bytes, end: int) -> None:
        if number in way.begun:
            raise WireError(f"a method interrupts a content on channel {number}")
        if method.name == "Connection.TuneOk" and way.client:
            self.heartbeat = method.number("heartbeat")
        channel = self._channels.get(number)
        if method.name in CONTENT:
            if len(way.begun) > MAX_OPEN:
                raise WireError(f"more than {MAX_OPEN} messages at once")
            way.begun[number] = Content(channel, method)
            way.held = number
            return
        units = self._channels.client(channel, method) if way.client else self._channels.server(channel, method)
        self._units += units[:-1]
        self._finish(way.side, buf, end, units[-1])

    def _header(self, way: _Way, number: int, payload: bytes, buf: bytes, end: int) -> None:
        content = way.begun.get(number)
        if content is None or content.left >= 0:
            raise WireError(f"a content header without a method on channel {number}")
        content.left, content.properties = read_header(payload)
        self._maybe_complete(way, number, content, buf, end)

    def _body(self, way: _Way, number: int, start: bytes, size: int, buf: bytes, end: int) -> int:
        content = way.begun.get(number)
        if content is None or content.left < size:
            raise WireError(f"a content body without a header on channel {number}")
        content.left -= size
        if (room := BODY_CAP - len(content.body)) > 0:
            content.body += start[:room]
        self._maybe_complete(way, number, content, buf, end)
        return end

    def _maybe_complete(self, way: _Way, number: int, content: Content, buf: bytes, end: int) -> None:
        side = way.side
        given = way.given.get(number)
        if content.left:
            if given is not None and not side.spilled:  # more of a content whose head is out
                self._finish(side, buf, end, Unit(b"", Kind.PART, number=given, last=False))
            return
        del way.begun[number]
        if way.held == number:
            way.held = None
        if given is not None:
            del way.given[number]
            self._finish(side, buf, end, Unit(b"", Kind.PART, number=given))
        else:
            self._finish(side, buf, end, self._content(way, content))

    def _content(self, way: _Way, content: Content) -> Unit:
        make = self._channels.client_content if way.client else self._channels.server_content
        return make(content.channel, content.method, content.properties, bytes(content.body))

    def _let_go(self, way: _Way, buf: bytes, pos: int) -> None:
        """Another channel's frame comes between: what is held is given out as a head, the rest of it as parts."""
        side = way.side
        if side.spilled:
            side.spilled = False
            if raw := side.take(buf, pos):
                self._units.append(Unit(raw, Kind.PART, last=False))
        elif way.held is not None and way.held not in way.given:
            unit = self._head(way)
            self._finish(side, buf, pos, unit)
            unit.last = False
        way.held = None

    def _head(self, way: _Way) -> Unit:
        number = way.held if way.held is not None else way.long[0] if way.long is not None else 0
        if number in way.given:
            return Unit(b"", Kind.PART, number=way.given[number])
        content = way.begun.get(number)
        if content is None:
            return Unit(b"", Kind.CONTROL, "amqp frame")
        unit = self._content(way, content)
        way.given[number] = unit.number
        return unit

    def _client_head(self) -> Unit:
        return self._head(self._out)

    def _server_head(self) -> Unit:
        return self._head(self._in)
