"""The mark server: takes `mark <kind> <key>` lines from workers in any language and answers each with `ok`."""

from __future__ import annotations

import asyncio

from .ledger import Ledger
from .listener import Listener


class MarkServer(Listener):
    """A TCP line server. Each mark is an effect `<name> <kind>` whose body is the key; the name is `mark`."""

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
        self.ledger.record(f"{self.name} {kind}", key, fields={"kind": kind, "key": key})
        return "ok"
