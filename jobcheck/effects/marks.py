"""Marks of workers in any language: `mark <kind> <key>` lines, each answered with `ok`, and lines of their output."""

from __future__ import annotations

import asyncio

from ..aio import Listener
from ..wire.marks import told
from .ledger import Ledger


def record(ledger: Ledger, kind: str, key: str) -> None:
    """The effect of one mark: `mark <kind>`, whose body is the key."""
    ledger.record(f"mark {kind}", key, fields={"kind": kind, "key": key})


def hear(ledger: Ledger, line: str) -> None:
    """A line of a worker's output: `jobcheck-mark: <kind> <key>` in it is an effect, too."""
    if (found := told(line)) is not None:
        record(ledger, *found)


class MarkServer(Listener):
    """A TCP line server for marks that are answered, and so are points."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        super().__init__(name)
        self.ledger = ledger

    @property
    def address(self) -> str:
        """`host:port`, the value of `JOBCHECK_MARKS`."""
        return f"{self.host}:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                line = await reader.readline()
            except ValueError:
                line = b""
                writer.write(b"error: the line is too long\n")
                await writer.drain()
            if not line.endswith(b"\n"):
                return
            writer.write(self._answer(line).encode() + b"\n")
            await writer.drain()

    def _answer(self, line: bytes) -> str:
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            return "error: the line is not UTF-8"
        verb, _, rest = text.partition(" ")
        kind, _, key = rest.partition(" ")
        if verb != "mark" or not kind:
            return f"error: expected `mark <kind> <key>`, got {text[:80]!r}"
        record(self.ledger, kind, key)
        return "ok"
