"""A conversation as one string of bytes, as the fuzzer makes and mutates them, and what must hold for each.

The first byte says how big the pieces are into which the rest is cut. Then the client speaks, until `SERVER` or
`CLIENT` gives the word to a side. Nothing here needs atheris: the tests replay the corpus with it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "wire"))

from wire_feeding import Turn, canonical, cut_at, feed, single

from jobcheck.wire.registry import decoder_for
from jobcheck.wire.sql import parse_sql
from jobcheck.wire.sql_words import read_words
from jobcheck.wire.unit import Unit

CLIENT = b"\xfe>"
SERVER = b"\xfe<"
_TURN = re.compile(b"(\xfe[><])")

SQL = "sql"
"""The target that is no decoder: the text of a statement, which both readers of SQL must take."""
CORPUS = Path(__file__).with_name("corpus")

_CHUNKY = {"http": ("body", "summary")}
"""Entries of a unit's `info` that hold what came in the first chunk (`wire_feeding.canonical`)."""


def as_bytes(turns: Iterable[Turn], piece: int = 7) -> bytes:
    """A conversation as one string."""
    return bytes([piece]) + b"".join((CLIENT if side == "client" else SERVER) + data for side, data in turns)


def as_turns(data: bytes) -> tuple[int, list[Turn]]:
    """The size of the pieces, and who says what."""
    if not data:
        return 1, []
    turns: list[Turn] = []
    side = "client"
    for part in _TURN.split(data[1:]):
        if part in (CLIENT, SERVER):
            side = "client" if part == CLIENT else "server"
        elif part:
            turns.append((side, part))
    return data[0] % 64 + 1, turns


def check(target: str, data: bytes, *, tiny: bool = False) -> None:
    """Asserts: every byte is given out, in order; however they are cut, the units are the same; nothing fails inside.

    `tiny`: the limits of all decoders are small (the caller's doing), and where units are split follows the chunks.
    """
    if target == SQL:
        text = data.decode("utf-8", "surrogateescape")
        for statement in (*parse_sql(text), *read_words(text)):
            assert statement.verb
            assert "\n" not in statement.label, statement
        return
    piece, turns = as_turns(data)
    first = feed(decoder_for(target), turns)
    assert not [unit.note for units in first.values() for unit in units if "decoder failed" in unit.note]
    for cut in (single, cut_at([piece])):
        other = feed(decoder_for(target), turns, cut)
        assert not [unit.note for units in other.values() for unit in units if "decoder failed" in unit.note]
        if tiny:
            continue
        for side, units in first.items():
            assert _comparable(target, other[side]) == _comparable(target, units), side


def _comparable(target: str, units: list[Unit]) -> list[Unit]:
    """Without the reason why a decoder gave up: it may be "no number" of the whole line, "too long" of half of it."""
    return [replace(unit, note=unit.note.partition(": ")[0]) for unit in canonical(units, _CHUNKY.get(target, ()))]
