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

from collections import deque
from typing import Any, NamedTuple

from .resp_commands import SUBSCRIBING, Args, Command, command_of, sets_ttl, shape_of
from .resp_labels import (
    SUBSCRIBING_KINDS,
    exec_changed,
    exec_labels,
    is_push,
    note_ttls,
    script_sha,
    summary_of,
    without_secrets,
)
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
    changed,
    combined,
    describe,
    length_of,
    scalar,
)
from .shapes import normalise
from .stream import MAX_LINE, SKIP_FROM, StreamDecoder
from .unit import MAX_HELD, Change, Kind, Unit, WireError

MAX_ARGS = 256
"""Arguments of one command that are kept."""
MAX_HEADER = 64
"""Bytes of a line that holds a length."""
MAX_OPS = 256
"""Commands of one transaction that are kept."""

_BULK_KINDS = frozenset(b"$!=")


class _Pending(NamedTuple):
    """A command whose reply is due."""

    number: int
    command: Command
    args: Args
    shape: str
    queued: bool
    ops: tuple[tuple[Command, Args], ...] | None
    """What an EXEC carries out."""
    soft: bool
    """Answered out of band: SUBSCRIBE and its kin."""


class RespDecoder(StreamDecoder):
    """Both directions of one connection to Redis or Valkey."""

    protocol = "redis"
    tls_advice = "give the worker a redis:// URL instead of rediss:// in the tests"

    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        self._pending: deque[_Pending] = deque()
        # The command under construction.
        self._args: list[bytes] | None = None
        self._args_left = 0
        self._args_size = 0
        self._arg_ends = False
        # The transaction under construction.
        self._queue: list[tuple[Command, Args]] | None = None
        self._queue_size = 0
        self._silent = False
        self._silent_next = False
        # The reply under construction.
        self._stack: list[Aggregate] = []
        self._bulk_kind = 0
        self._pushed = False
        self._status = False
        self._long_reply = 0, Change.NO
        """Number and change of the reply whose head was given out."""
        self._subscribed = False
        self._channels = {False: 0, True: 0}

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
            self._finish(side, buf, pos, Unit(b"", Kind.PART, number=self._number))
        else:
            self._finish(side, buf, pos, self._request(args))
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
        unit = self._request(args[:MAX_ARGS]) if args else Unit(b"", Kind.CONTROL, "redis empty")
        self._finish(side, buf, end + 1, unit)
        return end + 1

    def _client_head(self) -> Unit:
        return self._request(self._args or [b"?"])

    def _request(self, args: list[bytes]) -> Unit:
        """The unit of a complete command; its reply is due from now on."""
        command = command_of(args)
        self._number += 1
        number = self._number
        name = command.name
        info: dict[str, Any] = {}
        queue = self._queue
        ops: tuple[tuple[Command, Args], ...] | None = None
        queued = False
        change = command.change
        if name == "MULTI":
            self._queue = []
            self._queue_size = 0
        elif name in ("EXEC", "DISCARD", "RESET"):
            self._queue = None
            ops = tuple(queue or ()) if name == "EXEC" else None
        elif queue is not None and name not in ("WATCH", "QUIT", "UNWATCH"):
            queued = True
            info["queued"] = True
            if change is not Change.NO:
                change = Change.PENDING
            self._enqueue(command, args)
        if ops is None:
            shown = without_secrets(command, args)
            info["ops"] = (tuple(shown),)
            shape = "redis " + shape_of(command, args)
            summary = summary_of(shown)
            if sets_ttl(command):
                note_ttls(info, [(command, args)])
            if name in ("EVAL", "EVALSHA") and len(args) > 1:
                info["script"] = script_sha(name, args[1])
        else:
            info["ops"] = tuple(tuple(without_secrets(*op)) for op in ops)
            shape, summary = exec_labels(ops)
            change = combined([op[0].change for op in ops])
            note_ttls(info, ops)
        soft = args[0].upper() in SUBSCRIBING
        if soft:
            self._subscribed = True
        if self._answers(name, args):
            self._pending.append(_Pending(number, command, args, shape, queued, ops, soft))
        else:
            info["no_reply"] = True
        kind = Kind.CONTROL if command.control else Kind.REQUEST
        return Unit(b"", kind, shape, number, change, summary, info)

    def _enqueue(self, command: Command, args: Args) -> None:
        queue = self._queue
        if queue is None or len(queue) >= MAX_OPS:
            return
        if self._queue_size > MAX_HELD:
            args = [arg[:64] for arg in args]
        self._queue_size += sum(map(len, args))
        queue.append((command, args))

    def _answers(self, name: str, args: Args) -> bool:
        """Whether the server answers this one; CLIENT REPLY can forbid it."""
        if name == "CLIENT REPLY" and len(args) > 2:
            word = args[2].upper()
            self._silent_next = word == b"SKIP"
            self._silent = word == b"OFF" or (self._silent and word != b"ON")
            return not self._silent and word == b"ON"
        if self._silent_next:
            self._silent_next = False
            return False
        return not self._silent

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
            self._finish(side, buf, pos, self._answer(value, pushed, status))
        return pos

    def _server_head(self) -> Unit:
        value: Any = bytes(self._from_server.capture or b"")
        if self._stack:
            value = self._stack[0].value()
        unit = self._answer(value, self._pushed, False)
        self._long_reply = unit.number, unit.change
        return unit

    def _answer(self, value: Any, pushed: bool, status: bool) -> Unit:
        """The unit of a reply, matched with the oldest command that has none."""
        pending = self._pending
        if pushed or (self._subscribed and is_push(value)):
            return self._push(value)
        failed = isinstance(value, RespError)
        while pending and pending[0].soft and not failed:
            pending.popleft()  # its confirmations were pushed
        info = {"value": value}
        if not pending:
            return Unit(b"", Kind.CONTROL, "redis unasked", summary=describe(value), info=info, failed=failed)
        number, command, args, shape, queued, ops, _ = pending.popleft()
        if queued and status and value == b"QUEUED":
            change = Change.NO if command.change is Change.NO else Change.PENDING
        elif ops is not None:
            change = exec_changed(ops, value)
        else:
            change = changed(command, args, value)
        kind = Kind.CONTROL if command.control else Kind.REPLY
        return Unit(b"", kind, shape, number, change, describe(value), info, failed)

    def _push(self, value: Any) -> Unit:
        word = value[0] if isinstance(value, list) and value and isinstance(value[0], bytes) else b"?"
        word = word.lower()
        channel = value[1] if isinstance(value, list) and len(value) > 1 and isinstance(value[1], bytes) else b""
        shape = f"redis {normalise(word.decode('ascii', 'replace'))} {normalise(channel.decode('utf-8', 'replace'))}"
        info = {"value": value}
        pending = self._pending
        if word in SUBSCRIBING_KINDS:
            if len(value) > 2 and isinstance(value[2], int):
                self._channels[word.startswith((b"ssub", b"sunsub"))] = value[2]
            if pending and pending[0].soft and pending[0].args[0].lower() == word:
                asked = pending.popleft()
                return Unit(b"", Kind.REPLY, asked.shape, asked.number, summary=describe(value), info=info)
            if not any(self._channels.values()) and not any(entry.soft for entry in pending):
                self._subscribed = False
        return Unit(b"", Kind.PUSH, shape.rstrip(), summary=describe(value), info=info)
