"""What a PostgreSQL server answers: matched with the batches that wait, and what it proves about them."""

from __future__ import annotations

from collections import deque
from typing import Any

from .postgres_messages import SERVER_TYPES, error_fields, number_at, text_at
from .postgres_session import Batch, Run, Session
from .postgres_transaction import Transaction, change_of
from .shapes import one_line
from .unit import Change, Kind, Unit

MAX_TAGS = 200
"""Command tags of one reply that are kept."""

_ANSWER_TO = {"1": "P", "2": "B", "3": "C", "V": "F"}
_FATAL = frozenset(("FATAL", "PANIC"))


class Replies:
    """The server's side of one connection. Raw bytes are the decoder's business."""

    TYPES = SERVER_TYPES

    def __init__(self, session: Session) -> None:
        self._session = session
        self._truth = Transaction()
        self.batches: deque[Batch] = deque()
        self.backend_pid = 0
        self._ready = False
        self._authenticated = False
        self._parameters: dict[str, str] = {}
        self.open = False
        """A reply is under construction."""
        self._tags: list[str] = []
        self._error: tuple[str, str] | None = None
        self._broken = False
        """An error was seen, and the server skips what comes before the next Sync."""
        self._notifications: list[tuple[str, str]] = []

    def message(self, kind: str, body: bytes) -> tuple[list[Unit], bool]:
        """The units that this message completes, the last of which takes the bytes; whether to give out the head."""
        if not self._ready:
            return self._startup(kind, body), False
        if not self.open and kind in "NAS":
            return [self._aside(kind, body)], False
        batch = self.batches[0] if self.batches else None
        if batch is None:
            self.open = False
            return [self._unasked(kind, body)], False
        self.open = True
        if kind == "Z":
            return self._settled(chr(body[0]) if body else "I"), False
        if kind == "E":
            return self._failed(batch, body), False
        if kind in "CIs":
            self._ran(batch, body if kind == "C" else b"")
        elif kind in _ANSWER_TO:
            if batch.ops and batch.ops[0].code == _ANSWER_TO[kind]:
                for run in batch.ops.popleft().runs:  # a function call
                    self._carried_out(run, "")
        elif kind == "t":
            self._types(batch, body)
        elif kind in "Tn":
            if batch.ops and batch.ops[0].code == "D":
                batch.ops.popleft()
        elif kind == "A":
            self._notifications.append(_notification(body))
        elif kind == "G":
            return [self._reply(self.batches.popleft(), self._truth.pause(), copy="in")], False
        if not batch.synced and not batch.ops:
            return [self._reply(self.batches.popleft(), self._truth.pause())], False
        return [], kind in "HW"

    def head(self) -> Unit:
        """The head of the reply under construction, which is too long to be held."""
        if not self.batches:
            return Unit(b"", Kind.CONTROL, "postgres unasked")
        batch = self.batches[0]
        change = batch.guess if batch.guess in (Change.NO, Change.PENDING) else Change.MAYBE
        return Unit(b"", Kind.REPLY, batch.shape, batch.number, change)

    def cut_off(self) -> Unit | None:
        """The reply under construction, when the connection ends in the midst of it."""
        if not self.open or not self.batches:
            return None
        batch = self.batches.popleft()
        change = Change.NO if batch.guess is Change.NO else Change.MAYBE
        return Unit(b"", Kind.REPLY, batch.shape, batch.number, change, "the connection ended", failed=True)

    # Parts of a reply.

    def _ran(self, batch: Batch, body: bytes) -> None:
        """CommandComplete, EmptyQueryResponse or PortalSuspended: one statement is over."""
        tag = text_at(body, 0)[0]
        if tag and len(self._tags) < MAX_TAGS:
            self._tags.append(tag)
        while batch.ops and batch.ops[0].code not in "EQ":
            batch.ops.popleft()
        if not batch.ops:
            return
        op = batch.ops[0]
        run = op.runs.popleft() if op.runs else Run(None, "")
        if op.code == "E":
            batch.ops.popleft()
        if tag or run.statement:
            self._carried_out(run, tag)

    def _carried_out(self, run: Run, tag: str) -> None:
        statement = run.statement
        label = statement.label if statement else tag.rstrip("0123456789 ") or "?"
        self._truth.run(statement, change_of(statement, tag), label, tag)

    def _types(self, batch: Batch, body: bytes) -> None:
        """ParameterDescription: the types that a Parse left open."""
        if not batch.ops or (prepared := batch.ops[0].prepared) is None:
            return
        count, pos = number_at(body, 0)
        count = min(count, (len(body) - pos) // 4)
        prepared.oids = tuple(number_at(body, pos + 4 * index, ">I")[0] for index in range(count))

    def _failed(self, batch: Batch, body: bytes) -> list[Unit]:
        fields = error_fields(body)
        self._error = (fields.get("C", ""), fields.get("M", ""))
        self._broken = True
        batch.ops.clear()
        if fields.get("V", fields.get("S", "")) in _FATAL:
            return [self._reply(self.batches.popleft(), self._truth.done)]
        if batch.synced:
            return []
        return [self._reply(self.batches.popleft(), self._truth.done)]

    def _settled(self, status: str) -> list[Unit]:
        """ReadyForQuery: the first batch that ends with one is over, and so are those before it."""
        units = []
        while len(self.batches) > 1 and not self.batches[0].synced:
            skipped = self.batches.popleft()
            units.append(Unit(b"", Kind.REPLY, skipped.shape, skipped.number, failed=True, summary="skipped"))
        batch = self.batches.popleft()
        failed, self._broken = self._broken, False
        change = self._truth.settle(status, failed=failed)
        unit = self._reply(batch, change, status=status)
        if failed and self.batches and self.batches[0].copy_done:
            skipped = self.batches.popleft()  # the COPY was refused, its data went nowhere
            units.append(Unit(b"", Kind.REPLY, skipped.shape, skipped.number, failed=True, summary="skipped"))
        if not self.batches:
            self._session.guess.copy_from(self._truth)
        return [*units, unit]

    def _reply(self, batch: Batch, change: Change, *, status: str = "", copy: str = "") -> Unit:
        error = self._error
        info: dict[str, Any] = {"tags": self._tags, "status": status, "error": error}
        if wrote := self._truth.labels():
            info["wrote"] = wrote
        if self._notifications:
            info["notifications"] = tuple(self._notifications)
        if copy:
            info["copy"] = copy
        summary = f"ERROR {error[0]}: {error[1]}" if error else ", ".join(self._tags[:8])
        self._tags, self._error, self._notifications = [], None, []
        self.open = False
        self._truth.begin_batch()
        kind = Kind.REPLY
        return Unit(b"", kind, batch.shape, batch.number, change, one_line(summary), info, failed=error is not None)

    # Messages outside of replies.

    def _startup(self, kind: str, body: bytes) -> list[Unit]:
        if kind == "R":
            code, _ = number_at(body, 0, ">I")
            if code == 0:
                self._authenticated = True
                return []
            return [Unit(b"", Kind.CONTROL, "postgres authentication")]
        if kind == "S":
            name, pos = text_at(body, 0)
            self._parameters[name] = text_at(body, pos)[0]
        elif kind == "K":
            self.backend_pid, _ = number_at(body, 0, ">I")
        elif kind == "Z":
            self._ready = True
            info = {"backend_pid": self.backend_pid, "parameters": self._parameters}
            return [Unit(b"", Kind.CONTROL, "postgres ready", info=info)]
        elif kind == "E":
            return [self._unasked(kind, body)]
        return [] if self._authenticated else [Unit(b"", Kind.CONTROL, "postgres startup")]

    def _aside(self, kind: str, body: bytes) -> Unit:
        if kind == "A":
            channel, payload = _notification(body)
            info = {"channel": channel, "payload": payload}
            return Unit(b"", Kind.PUSH, "postgres notification", summary=one_line(f"{channel}: {payload}"), info=info)
        if kind == "S":
            return Unit(b"", Kind.CONTROL, "postgres parameter")
        return Unit(b"", Kind.CONTROL, "postgres notice", summary=one_line(error_fields(body).get("M", "")))

    def _unasked(self, kind: str, body: bytes) -> Unit:
        if kind != "E":
            return Unit(b"", Kind.CONTROL, "postgres unasked")
        fields = error_fields(body)
        error = (fields.get("C", ""), fields.get("M", ""))
        summary = one_line(f"ERROR {error[0]}: {error[1]}")
        return Unit(b"", Kind.CONTROL, "postgres error", summary=summary, info={"error": error}, failed=True)


def _notification(body: bytes) -> tuple[str, str]:
    channel, pos = text_at(body, 4)
    return channel, text_at(body, pos)[0]
