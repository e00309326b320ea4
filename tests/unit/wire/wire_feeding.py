"""Feeds decoders with bytes cut in every way, and brings what they give into a comparable form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from unittest import mock

from hypothesis import HealthCheck, settings

from jobcheck.wire.unit import Decoder, Kind, Unit

FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Of every fuzz test: how fast the machine is makes no difference."""

Turn = tuple[str, bytes]
"""`client` or `server`, and what it sends."""
Cut = Callable[[bytes], Iterable[bytes]]


def whole(data: bytes) -> Iterable[bytes]:
    return [data]


def single(data: bytes) -> Iterable[bytes]:
    return [data[index : index + 1] for index in range(len(data))]


def cut_at(sizes: list[int]) -> Cut:
    """Pieces of these sizes, over and over."""

    def cut(data: bytes) -> Iterable[bytes]:
        pieces = []
        index = turn = 0
        while index < len(data):
            size = max(1, sizes[turn % len(sizes)])
            pieces.append(data[index : index + size])
            index += size
            turn += 1
        return pieces

    return cut


def feed(decoder: Decoder, turns: Iterable[Turn], cut: Cut = whole, *, end: bool = True) -> dict[str, list[Unit]]:
    """The units of both directions. Asserts that their bytes, joined, are what was sent."""
    got: dict[str, list[Unit]] = {"client": [], "server": []}
    sent = {"client": b"", "server": b""}
    for side, data in turns:
        sent[side] += data
        push = decoder.client if side == "client" else decoder.server
        for piece in cut(data):
            got[side] += push(piece)
    if end:
        got["client"] += decoder.client_end()
        got["server"] += decoder.server_end()
        for side, units in got.items():
            assert b"".join(unit.raw for unit in units) == sent[side]
    return got


def canonical(units: list[Unit], chunky: tuple[str, ...] = ()) -> list[Unit]:
    """PART and OPAQUE units joined to the unit before them, since where those are cut follows the chunks.

    `chunky` names entries of `info` that hold what came in the first chunk, or the summary that shows it.
    """
    out: list[Unit] = []
    for unit in units:
        joins = unit.kind is Kind.PART or (unit.kind is Kind.OPAQUE and out and out[-1].kind is Kind.OPAQUE)
        if joins and out:
            out[-1] = replace(out[-1], raw=out[-1].raw + unit.raw, last=unit.last)
        else:
            # What a note quotes of the bytes depends on how many of them were here.
            info = {key: value for key, value in unit.info.items() if key not in chunky}
            summary = "" if "summary" in chunky else unit.summary
            out.append(replace(unit, note=unit.note.partition(", got ")[0], info=info, summary=summary))
    return out


def same_however_cut(
    make: Callable[[], Decoder], turns: list[Turn], sizes: list[int], chunky: tuple[str, ...] = ()
) -> dict[str, list[Unit]]:
    """Asserts that whole, single bytes and pieces of `sizes` give the same units; answers with those of the whole."""
    first = feed(make(), turns)
    for cut in (single, cut_at(sizes)):
        other = feed(make(), turns, cut)
        for side in first:
            assert canonical(other[side], chunky) == canonical(first[side], chunky)
    return first


def requests(units: dict[str, list[Unit]]) -> list[Unit]:
    return [unit for unit in units["client"] if unit.kind is Kind.REQUEST]


def replies(units: dict[str, list[Unit]]) -> list[Unit]:
    return [unit for unit in units["server"] if unit.kind is Kind.REPLY]


_TINY = {"MAX_HELD": 40, "SKIP_FROM": 16, "VALUE_CAP": 20, "BODY_CAP": 30, "MAX_DECODED": 16}
_LIMITED = ("stream", "resp", "resp_talk", "resp_values", "postgres", "http_body", "amqp", "amqp_frames")


def tiny() -> ExitStack:
    """All limits of all decoders so small that everything is too big."""
    stack = ExitStack()
    for module in map(import_module, (f"jobcheck.wire.{name}" for name in _LIMITED)):
        for name, value in _TINY.items():
            if hasattr(module, name):
                stack.enter_context(mock.patch.object(module, name, value))
    return stack
