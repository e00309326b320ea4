"""What a PostgreSQL client has said: prepared statements, portals, and the batch under construction."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from .postgres_messages import Bind, Param, read_bind, read_params, read_parse, text_at, with_params
from .postgres_transaction import Transaction
from .shapes import join_labels, one_line
from .sql import parse_sql
from .sql_statement import Statement
from .unit import Change, Kind, Unit

MAX_NAMES = 5000
"""Prepared statements and portals of one connection that are remembered."""
MAX_SHOWN = 50
"""Statements of one batch whose text and parameters are kept in `info`."""


@dataclass(slots=True)
class Prepared:
    """A prepared statement: what it does, and the types of its parameters."""

    statements: tuple[Statement, ...]
    sql: str
    oids: tuple[int, ...] = ()


@dataclass(slots=True)
class Run:
    """One statement that a batch carries out."""

    statement: Statement | None
    sql: str
    params: tuple[Param, ...] = ()


@dataclass(slots=True)
class Op:
    """One message of a batch and the answers that are due to it."""

    code: str
    """`P`, `B`, `C`, `D` (describe), `E`, `Q`, `F`."""
    runs: deque[Run] = field(default_factory=deque)
    """What it carries out."""
    prepared: Prepared | None = None
    """Whose parameter types the answer tells."""


@dataclass(slots=True)
class Batch:
    """A request whose reply is due."""

    number: int
    shape: str
    ops: deque[Op]
    synced: bool
    """The answer ends with ReadyForQuery."""
    guess: Change
    copy_done: bool = False
    """The end of a COPY over the connection."""


class Session:
    """The client's side of one connection."""

    def __init__(self) -> None:
        self.guess = Transaction()
        self.ops: list[Op] = []
        self._prepared: dict[str, Prepared] = {}
        self._portals: dict[str, Run] = {}
        self._labels: list[str] = []
        """Labels of what the batch only prepares or closes."""
        self._number = 0
        self.copying: tuple[Op, bool] | None = None
        """The COPY that waits for its data, and whether it came by the extended protocol."""
        self.copy_ends = False
        """The batch under construction is the end of a COPY's data."""

    def message(self, kind: str, body: bytes) -> None:
        """One message of the client that belongs to a batch."""
        if kind == "P":
            self._parse(body)
        elif kind == "B":
            self._bind(read_bind(body))
        elif kind == "D":
            name, _ = text_at(body, 1)
            if body[:1] == b"S":
                self.ops.append(Op("D", prepared=self._prepared.get(name)))
            else:
                self.ops.append(Op("D"))
        elif kind == "E":
            portal, _ = text_at(body, 0)
            run = self._portals.get(portal) or Run(None, "")
            self.ops.append(Op("E", deque([self._resolve(run)])))
        elif kind == "C":
            name, _ = text_at(body, 1)
            (self._prepared if body[:1] == b"S" else self._portals).pop(name, None)
            self._labels.append("DEALLOCATE" if body[:1] == b"S" else "CLOSE")
            self.ops.append(Op("C"))
        elif kind == "Q":
            sql, _ = text_at(body, 0)
            runs = deque(self._resolve(Run(statement, statement.text)) for statement in parse_sql(sql))
            self.ops.append(Op("Q", runs))
        elif kind == "F":
            function = Statement("FUNCTION", "function call", Change.MAYBE, text="function call")
            self.ops.append(Op("F", deque([Run(function, function.text)])))

    def _parse(self, body: bytes) -> None:
        name, sql, oids = read_parse(body)
        prepared = Prepared(parse_sql(sql), sql, oids)
        _remember(self._prepared, name, prepared)
        self._labels.append("PREPARE " + (join_labels([item.label for item in prepared.statements]) or "nothing"))
        self.ops.append(Op("P", prepared=prepared))

    def _bind(self, bind: Bind) -> None:
        prepared = self._prepared.get(bind.statement)
        if prepared is None:
            run = Run(None, "", read_params(bind, ()))
        else:
            statement = prepared.statements[0] if prepared.statements else None
            text = statement.text if statement else prepared.sql
            run = Run(statement, text, read_params(bind, prepared.oids))
        _remember(self._portals, bind.portal, run)
        self.ops.append(Op("B"))

    def _resolve(self, run: Run) -> Run:
        """Follows SQL's own PREPARE, EXECUTE and DEALLOCATE, whose names are those of the protocol."""
        statement = run.statement
        if statement is None:
            return run
        if statement.verb == "PREPARE":
            _remember(self._prepared, statement.name, Prepared(statement.inner, run.sql))
        elif statement.verb == "EXECUTE" and (prepared := self._prepared.get(statement.name)) and prepared.statements:
            return Run(replace(prepared.statements[0], text=statement.text), run.sql, run.params)
        elif statement.verb == "DEALLOCATE" and statement.name:
            self._prepared.pop(statement.name, None)
        elif statement.verb in ("DEALLOCATE", "DISCARD"):
            self._prepared.clear()
        return run

    def end_batch(self, end: str, *, synced: bool, copy_done: bool = False) -> tuple[Unit, Batch | None]:
        """The request made of all messages since the last one, and what its reply has to be matched with."""
        ops, self.ops = self.ops, []
        self.copy_ends = False
        labels, self._labels = self._labels, []
        runs = [run for op in ops for run in op.runs]
        self.guess.begin_batch()
        for run in runs:
            statement = run.statement
            change = Change.MAYBE if statement is None else statement.change
            if statement is not None and statement.copy == "in" and not copy_done:
                self.copying = (_op_of(ops, run), end != "query")
                break  # what follows it runs when its data has come
            self.guess.run(statement, change, statement.label if statement else "?")
        change = self.guess.settle() if synced and self.copying is None else self.guess.pause()
        shape = join_labels([run.statement.label if run.statement else "EXECUTE ?" for run in runs] or labels)
        shape = f"postgres {shape or end.upper()}"
        info = _info(runs, self.guess)
        self._number += 1
        unit = Unit(b"", Kind.REQUEST, shape, self._number, change, _summary(runs, info, labels or [end]), info)
        if not ops and not synced:
            unit.kind = Kind.CONTROL  # a Flush with nothing before it
            info["no_reply"] = True
            return unit, None
        return unit, Batch(self._number, shape, deque(ops), synced, change, copy_done)

    def copy_end(self, failed: bool) -> bool:
        """CopyDone or CopyFail: queues the change of the COPY. Answers whether a Sync follows."""
        op, extended = self.copying or (Op("Q", deque([Run(None, "")])), False)
        self.copying = None
        runs = deque(op.runs)
        while runs and not (runs[0].statement and runs[0].statement.copy == "in"):
            runs.popleft()
        if failed and runs and runs[0].statement:
            runs[0] = Run(replace(runs[0].statement, change=Change.NO), runs[0].sql)
        self.ops.append(Op(op.code, runs))
        self.copy_ends = extended
        return extended


def _op_of(ops: list[Op], run: Run) -> Op:
    return next(op for op in ops if any(own is run for own in op.runs))


def _remember(names: dict[str, Any], name: str, value: Any) -> None:
    names.pop(name, None)
    if len(names) >= MAX_NAMES:
        del names[next(iter(names))]
    names[name] = value


def _info(runs: list[Run], guess: Transaction) -> dict[str, Any]:
    statements = [run.statement for run in runs if run.statement]
    info: dict[str, Any] = {
        "sql": [run.sql for run in runs[:MAX_SHOWN]],
        "params": [run.params for run in runs[:MAX_SHOWN]],
        "tables": tuple(dict.fromkeys(table for statement in statements for table in statement.tables)),
        "functions": tuple(dict.fromkeys(name for statement in statements for name in statement.functions)),
        "writes": any(run.statement is None or run.statement.change is not Change.NO for run in runs),
        "locks": any(statement.locks for statement in statements),
    }
    if clock := tuple(dict.fromkeys(name for statement in statements for name in statement.clock)):
        info["clock"] = clock
    if wrote := guess.labels():
        info["wrote"] = wrote
    return info


def _summary(runs: list[Run], info: dict[str, Any], labels: list[str]) -> str:
    if not runs:
        return one_line("; ".join(labels[:6]))
    texts = []
    for run in runs[:6]:
        text = with_params(run.sql, run.params) if run.sql else "EXECUTE ?"
        if run.statement and run.statement.verb == "COMMIT" and (wrote := info.get("wrote")):
            text = f"COMMIT ({', '.join(wrote)})"
        texts.append(text)
    return one_line("; ".join(texts))
