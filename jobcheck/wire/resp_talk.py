"""What a Redis client asked and what is still due to it: requests, transactions, replies matched by count, pub/sub."""

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
from .resp_routes import asked_for, sent_to
from .resp_values import RespError, changed, combined, describe
from .shapes import normalise
from .unit import MAX_HELD, Change, Kind, Unit

MAX_OPS = 256
"""Commands of one transaction that are kept."""


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


class Talk:
    """Both sides of one connection. Raw bytes are the decoder's business."""

    def __init__(self) -> None:
        self.number = 0
        """Of the last request."""
        self._pending: deque[_Pending] = deque()
        self._queue: list[tuple[Command, Args]] | None = None
        """The transaction under construction."""
        self._queue_size = 0
        self._silent = False
        self._silent_next = False
        self._subscribed = False
        self._channels = {False: 0, True: 0}
        """Subscriptions: plain ones, and those of shards."""

    def request(self, args: list[bytes]) -> Unit:
        """The unit of a complete command; its reply is due from now on."""
        command = command_of(args)
        self.number += 1
        number = self.number
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
        return Unit(b"", kind, shape, number, change, summary, info, note=asked_for(name))

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

    def answer(self, value: Any, pushed: bool, status: bool) -> Unit:
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
        note = sent_to(value) if failed else ""
        return Unit(b"", kind, shape, number, change, describe(value), info, failed, note=note)

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
