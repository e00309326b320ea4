"""What is said of Redis commands and transactions: labels, times to live, pub/sub messages, hidden secrets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from .resp_commands import SUBSCRIBING, Args, Command, shape_of, ttls_of
from .resp_values import changed, combined
from .shapes import one_line
from .unit import Change

HASH_WRITES = frozenset({b"HSET", b"HMSET", b"HSETNX"})
MOST_OF_A_PART = 60
"""Characters of one command in the summary of a transaction."""
MOST_OPS_SHOWN = 8
"""Different commands of one transaction that its shape names."""

SUBSCRIBING_KINDS = frozenset(name.lower() for name in SUBSCRIBING)
PUSH_KINDS = SUBSCRIBING_KINDS | {b"message", b"pmessage", b"smessage"}
"""First elements of what a server sends without having been asked."""


def is_push(value: Any) -> bool:
    """A pub/sub message of RESP2, where they look like any other array."""
    return (
        isinstance(value, list)
        and len(value) in (3, 4)
        and isinstance(value[0], bytes)
        and value[0].lower() in PUSH_KINDS
    )


def exec_changed(ops: tuple[tuple[Command, Args], ...], value: Any) -> Change:
    """What an EXEC did, from the answers to its parts."""
    if not isinstance(value, list):
        return Change.NO  # nil: a watched key changed; an error: nothing was carried out
    if len(value) != len(ops):
        return Change.YES if value else Change.NO
    return combined([changed(command, args, item) for (command, args), item in zip(ops, value, strict=True)])


def exec_labels(ops: tuple[tuple[Command, Args], ...]) -> tuple[str, str]:
    """Shape and summary of an EXEC."""
    shapes = list(dict.fromkeys(shape_of(command, args) for command, args in ops))
    if len(shapes) > MOST_OPS_SHOWN:
        shapes = [*shapes[:MOST_OPS_SHOWN], "…"]
    summary = "EXEC " + "; ".join(_cut(summary_of(without_secrets(*op))) for op in ops[:6])
    return f"redis EXEC({', '.join(shapes)})", one_line(summary.rstrip())


def note_ttls(info: dict[str, Any], ops: Iterable[tuple[Command, Args]]) -> None:
    """Puts `ttl` and `expire_at` of the ops into `info`."""
    ttl: list[tuple[bytes, float]] = []
    expire_at: list[tuple[bytes, float]] = []
    for command, args in ops:
        after, until = ttls_of(command, args)
        ttl += after
        expire_at += until
    if ttl:
        info["ttl"] = tuple(ttl)
    if expire_at:
        info["expire_at"] = tuple(expire_at)


def without_secrets(command: Command, args: Args) -> Args:
    """The command with its passwords replaced."""
    name = command.name
    if name == "AUTH" or name in ("ACL SETUSER", "MIGRATE"):
        return [args[0], *(b"***" for _ in args[1:])]
    if name == "HELLO" and len(args) > 2:
        return [*args[:2], *(b"***" for _ in args[2:])]
    if name == "CONFIG SET" and len(args) > 3 and args[2].lower() in (b"requirepass", b"masterauth"):
        return [*args[:3], b"***"]
    return args


def script_sha(name: str, text: bytes) -> str:
    """The SHA-1 by which Redis knows a script."""
    if name == "EVALSHA":
        return text[:40].decode("ascii", "replace").lower()
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()


def summary_of(args: Args) -> str:
    """The command on one line for a person. Values of a hash with spaces in them are quoted: else nobody could tell
    where one ends and the next field begins."""
    shown = [arg[:120] for arg in args[:16]]
    if shown[0].upper() in HASH_WRITES:
        shown = [_quoted(arg) for arg in shown]
    return one_line(b" ".join(shown)[:600].decode("utf-8", "replace"))


def _quoted(arg: bytes) -> bytes:
    if not any(byte in arg for byte in (b" ", b'"', b"\n", b"\t", b"; ")):
        return arg
    return b'"' + arg.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _cut(summary: str) -> str:
    """A part of a transaction, short; what was quoted ends with a quote."""
    cut = summary[:MOST_OF_A_PART]
    return cut + '"' if cut.replace("\\\\", "").replace('\\"', "").count('"') % 2 else cut
