"""The Redis protocol, RESP2 and RESP3.

Every command is one REQUEST (CONTROL when it is about the connection only), so that a client that sends MULTI and
waits is never stalled. A command that is queued by MULTI is PENDING; EXEC is the change and carries the queued ones.

`info` of a request: `ops`, a tuple of commands, each a tuple of bytes (strings of at most 256 KiB, at most 256
arguments): the command itself, or for EXEC all that it carries out; secrets of AUTH are replaced. `ttl`: pairs of key
and seconds that the command (or an op of EXEC) sets as a time to live; `expire_at`: pairs of key and Unix time.
`queued`: True inside MULTI. `no_reply`: True after CLIENT REPLY OFF or SKIP. `script`: SHA-1 of a script.

`info` of a reply: `value`, nested bytes, int, None, list, dict; errors are `RespError`. A PUSH has `value` too.
"""

from __future__ import annotations

from typing import Any

from .resp_talk import Talk
from .resp_values import (
    AGGREGATES,
    ARRAY,
    ATTRIBUTE,
    MAP,
    MAX_DEPTH,
    MAX_ITEMS,
    PUSH,
    VALUE_CAP,
    Aggregate,
    RespError,
    length_of,
    scalar,
)
from .stream import MAX_LINE, SKIP_FROM, StreamDecoder
from .unit import MAX_HELD, Change, Kind, Unit, WireError

MAX_ARGS = 256
"""Arguments of one command that are kept."""
MAX_HEADER = 64
"""Bytes of a line that holds a length."""

_BULK_KINDS = frozenset(b"$!=")


class RespDecoder(StreamDecoder):
    """Both directions of one connection to Redis or Valkey."""

    protocol = "redis"
    tls_advice = "say redis(tls=True) in the rig, or give the worker a redis:// URL instead of rediss:// in the tests"

    def __init__(self) -> None:
        super().__init__()
        self._talk = Talk()
        # The command under construction.
        self._args: list[bytes] | None = None
        self._args_left = 0
        self._args_size = 0
        self._arg_ends = False
        # The reply under construction.
        self._stack: list[Aggregate] = []
        self._bulk_kind = 0
        self._pushed = False
        self._status = False
        self._long_reply = 0, Change.NO
        """Number and change of the reply whose head was given out."""

    # Client.

    def _client_step(self, buf: bytes, pos: int) -> int:
        side = self._from_client
        args = self._args
        if args is None:
            if buf[pos] != ARRAY:
                return self._inline(buf, pos)
            end = buf.find(b"\r\n", pos)
            if end < 0:
                side.want_line(buf, pos, MAX_HEADER)
                return pos
            self._args_left = length_of(buf[pos + 1 : end])
            pos = end + 2
            if self._args_left <= 0:
                self._finish(side, buf, pos, Unit(b"", Kind.CONTROL, "redis empty"))
                return pos
            args = self._args = []
            self._args_size = 0
        pos = self._read_args(buf, pos)
        if self._args_left:
            return pos
        self._args = None
        if side.spilled:
            self._finish(side, buf, pos, Unit(b"", Kind.PART, number=self._talk.number))
        else:
            self._finish(side, buf, pos, self._talk.request(args))
        return pos

    def _read_args(self, buf: bytes, pos: int) -> int:
        """Reads arguments as far as they are here; answers with the position behind them."""
        side = self._from_client
        size = len(buf)
        while self._args_left:
            if self._arg_ends:
                if size - pos < 2:
                    side.want(2)
                    return pos
                self._arg_ends = False
                self._add_arg(bytes(side.capture or b""))
                side.capture = None
                stop = pos + 2
            else:
                end = buf.find(b"\r\n", pos)
                if end < 0:
                    side.want_line(buf, pos, MAX_HEADER)
                    return pos
                if buf[pos] != 0x24 or (length := length_of(buf[pos + 1 : end])) < 0:
                    raise WireError(f"expected an argument of a command, got {buf[pos : pos + 20]!r}")
                start = end + 2
                stop = start + length + 2
                if stop > size:
                    if length <= SKIP_FROM:
                        side.want(stop - pos)
                        return pos
                    return self._skip_arg(buf, start, length)
                self._add_arg(buf[start : stop - 2])
            if buf[stop - 2 : stop] != b"\r\n":
                raise WireError("an argument of a command is longer than its length says")
            pos = stop
            self._args_left -= 1
        return pos

    def _add_arg(self, arg: bytes) -> None:
        args = self._args
        if args is not None and len(args) < MAX_ARGS:
            room = VALUE_CAP if self._args_size < MAX_HELD else 64
            args.append(arg if len(arg) <= room else arg[:room])
            self._args_size += len(args[-1])

    def _skip_arg(self, buf: bytes, start: int, length: int) -> int:
        side = self._from_client
        here = min(length, len(buf) - start)
        side.capture = bytearray(buf[start : start + min(here, VALUE_CAP)])
        self._arg_ends = True
        if here == length:  # only the line end is missing
            return start + length
        return side.pass_over(buf, length - here, VALUE_CAP)

    def _inline(self, buf: bytes, pos: int) -> int:
        side = self._from_client
        end = buf.find(b"\n", pos, pos + MAX_LINE + 1)
        line = (side.want_start(buf, pos) if end < 0 else buf[pos:end]).rstrip(b"\r")
        if not line.isascii() or not line.replace(b"\t", b" ").decode().isprintable():
            raise WireError(f"expected a command, got {line[:20]!r}")
        if end < 0:
            return pos
        args = line.split()
        unit = self._talk.request(args[:MAX_ARGS]) if args else Unit(b"", Kind.CONTROL, "redis empty")
        self._finish(side, buf, end + 1, unit)
        return end + 1

    def _client_head(self) -> Unit:
        return self._talk.request(self._args or [b"?"])

    # Server.

    def _server_step(self, buf: bytes, pos: int) -> int:
        side = self._from_server
        if self._bulk_kind:
            if len(buf) - pos < 2:
                side.want(2)
                return pos
            value: Any = bytes(side.capture or b"")
            side.capture = None
            kind, self._bulk_kind = self._bulk_kind, 0
            return self._bulk(buf, pos + 2, kind, value)
        end = buf.find(b"\n", pos)
        if end < 0:
            side.want_line(buf, pos)
            return pos
        if end - pos < 2 or buf[end - 1] != 13:
            raise WireError(f"expected a reply, got {buf[pos : pos + 20]!r}")
        kind = buf[pos]
        line = buf[pos + 1 : end - 1]
        start = end + 1
        if kind in _BULK_KINDS:
            length = length_of(line)
            if length < 0:
                return self._item(buf, start, None)
            stop = start + length + 2
            if stop <= len(buf):
                return self._bulk(buf, stop, kind, buf[start : min(stop - 2, start + VALUE_CAP)])
            if length <= SKIP_FROM:
                side.want(stop - pos)
                return pos
            self._bulk_kind = kind
            here = min(length, len(buf) - start)
            side.capture = bytearray(buf[start : start + min(here, VALUE_CAP)])
            return start + length if here == length else side.pass_over(buf, length - here, VALUE_CAP)
        if kind in AGGREGATES:
            return self._open(buf, start, kind, length_of(line))
        if not self._stack:
            self._status = kind == 0x2B
        return self._item(buf, start, scalar(kind, line))

    def _bulk(self, buf: bytes, stop: int, kind: int, value: bytes) -> int:
        if buf[stop - 2 : stop] != b"\r\n":
            raise WireError("a string in a reply is longer than its length says")
        if kind == 0x21:  # !
            return self._item(buf, stop, RespError(value[:1000].decode("utf-8", "replace")))
        return self._item(buf, stop, value[4:] if kind == 0x3D else value)

    def _open(self, buf: bytes, pos: int, kind: int, count: int) -> int:
        if len(self._stack) >= MAX_DEPTH:
            raise WireError(f"a reply is nested deeper than {MAX_DEPTH} levels")
        if kind == PUSH and not self._stack:
            self._pushed = True
        if count < 0:
            return self._item(buf, pos, None)
        if kind in (MAP, ATTRIBUTE):
            count *= 2
        if count == 0:
            return pos if kind == ATTRIBUTE else self._item(buf, pos, Aggregate(kind, 0).value())
        self._stack.append(Aggregate(kind, count))
        return pos

    def _item(self, buf: bytes, pos: int, value: Any) -> int:
        """One value is complete; closes what it completes, and gives out the reply when nothing is open any more."""
        stack = self._stack
        while stack:
            top = stack[-1]
            if len(top.items) < MAX_ITEMS:
                top.items.append(value)
            top.left -= 1
            if top.left:
                return pos
            stack.pop()
            if top.kind == ATTRIBUTE:
                return pos
            value = top.value()
        side = self._from_server
        pushed, self._pushed = self._pushed, False
        status, self._status = self._status, False
        if side.spilled:
            number, change = self._long_reply
            self._finish(side, buf, pos, Unit(b"", Kind.PART, "", number, change))
        else:
            self._finish(side, buf, pos, self._talk.answer(value, pushed, status))
        return pos

    def _server_head(self) -> Unit:
        value: Any = bytes(self._from_server.capture or b"")
        if self._stack:
            value = self._stack[0].value()
        unit = self._talk.answer(value, self._pushed, False)
        self._long_reply = unit.number, unit.change
        return unit
