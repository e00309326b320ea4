"""Values of the Redis protocol: how replies are put together, and what they prove about a command."""

from __future__ import annotations

from typing import Any

from .resp_commands import EARLY_ERRORS, Args, Command, Truth
from .shapes import one_line
from .unit import Change, WireError

VALUE_CAP = 256 * 1024
"""Bytes of one string that are kept as a value."""
MAX_ITEMS = 4096
"""Elements of one array that are kept as a value."""
MAX_DEPTH = 64
"""Nested arrays; real replies have a handful."""


class RespError(str):
    """An error reply, or an error inside an array: its text without the leading dash."""

    __slots__ = ()

    @property
    def code(self) -> str:
        """The first word: `READONLY`, `NOSCRIPT`, `ERR`."""
        return self.partition(" ")[0]


class Aggregate:
    """An array, map, set, push or attribute under construction."""

    __slots__ = ("items", "kind", "left")

    def __init__(self, kind: int, left: int) -> None:
        self.kind = kind
        self.left = left
        self.items: list[Any] = []

    def value(self) -> Any:
        """The finished list or dict."""
        if self.kind != MAP:
            return self.items
        return {_hashable(key): item for key, item in zip(self.items[::2], self.items[1::2], strict=False)}


ARRAY, MAP, SET, PUSH, ATTRIBUTE = b"*%~>|"
AGGREGATES = frozenset(b"*%~>|")


def _hashable(value: Any) -> Any:
    return value if isinstance(value, bytes | int | float | str | None) else repr(value)


def length_of(text: bytes) -> int:
    """A length in a header line; -1 stands for null. Raises WireError."""
    if text.isdigit() and len(text) <= 12:
        return int(text)
    if text == b"-1":
        return -1
    raise WireError(f"expected a length, got {text[:20]!r}")


def scalar(kind: int, line: bytes) -> Any:
    """The value of a one-line reply. Raises WireError."""
    if kind == 0x2B:  # +
        return line
    if kind == 0x3A or kind == 0x28:  # : (
        digits = line[1:] if line[:1] in (b"-", b"+") else line
        if not digits.isdigit() or len(digits) > 4000:
            raise WireError(f"expected a number, got {line[:20]!r}")
        return int(line)
    if kind == 0x2D:  # -
        return RespError(line[:1000].decode("utf-8", "replace"))
    if kind == 0x5F:  # _
        return None
    if kind == 0x23:  # #
        return line == b"t"
    if kind == 0x2C:  # ,
        try:
            return float(line)
        except ValueError:
            raise WireError(f"expected a double, got {line[:20]!r}") from None
    raise WireError(f"a reply begins with byte {kind:#04x}")


def changed(command: Command, args: Args, value: Any) -> Change:
    """The server's truth about one command that was carried out (or refused) on its own."""
    truth = command.truth
    if truth is Truth.NEVER:
        return Change.NO
    if isinstance(value, RespError):
        return Change.MAYBE if truth is Truth.SCRIPT and value.code not in EARLY_ERRORS and _known(value) else Change.NO
    if truth is Truth.ALWAYS:
        return Change.YES
    if truth is Truth.COUNT:
        return Change.NO if value is None or value is False or value in (0, -1) else Change.YES
    if truth is Truth.FOUND:
        return Change.YES if _holds(value) else Change.NO
    if truth is Truth.SET:
        return _set_changed(args, value)
    if truth is Truth.NIL:
        return Change.NO if value is None else Change.YES
    if truth is Truth.CLAIM:
        return Change.YES if _claimed(command, value) else Change.NO
    # A script may write and answer nothing.
    return Change.YES if _holds(value) else Change.MAYBE


def _known(error: RespError) -> bool:
    """Not the complaint about a command that the server does not have, or that was given wrong arguments."""
    text = error.lower()
    return "unknown command" not in text and "wrong number of arguments" not in text


def _holds(value: Any) -> bool:
    """Not nil and not empty."""
    return not (value is None or value == [] or value == {})


def _set_changed(args: Args, value: Any) -> Change:
    options = {word.upper() for word in args[3:] if len(word) <= 7}
    if b"GET" not in options:
        return Change.NO if value is None else Change.YES
    if b"NX" in options:
        return Change.YES if value is None else Change.NO
    if b"XX" in options:
        return Change.NO if value is None else Change.YES
    return Change.YES


def _claimed(command: Command, value: Any) -> bool:
    if not value:
        return False
    if command.name == "XAUTOCLAIM":
        return isinstance(value, list) and any(bool(part) for part in value[1:])
    streams = value.values() if isinstance(value, dict) else [s[1] for s in value if isinstance(s, list) and len(s) > 1]
    return any(bool(entries) for entries in streams)


def combined(changes: list[Change]) -> Change:
    """What several commands did together."""
    for change in (Change.YES, Change.MAYBE, Change.PENDING):
        if change in changes:
            return change
    return Change.NO


def describe(value: Any) -> str:
    """A reply on one line for a person."""
    if isinstance(value, bytes):
        return one_line(value[:400].decode("utf-8", "replace"))
    if isinstance(value, RespError):
        return one_line("-" + value)
    if value is None:
        return "nil"
    if isinstance(value, list):
        if len(value) <= 3 and all(isinstance(item, bytes | int) for item in value):
            return one_line("[" + ", ".join(describe(item)[:80] for item in value) + "]")
        return f"[{len(value)} items]"
    if isinstance(value, dict):
        return f"{{{len(value)} fields}}"
    return str(value)[:60]
