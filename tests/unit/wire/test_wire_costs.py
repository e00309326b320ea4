"""What hostile bytes cost: a length that is a lie costs nothing, memory is bounded, and the work is linear.

Work is counted, not timed: function calls, and bytes that are joined or copied by the buffers.
"""

from __future__ import annotations

import struct
import sys
import tracemalloc
from collections.abc import Callable

import pytest
import test_wire_amqp as amqp
import test_wire_postgres as pg
from wire_feeding import Cut, Turn, cut_at, single, whole

from jobcheck.wire.registry import decoder_for
from jobcheck.wire.stream import Side
from jobcheck.wire.unit import MAX_HELD, Decoder, Kind

TWO_GIGABYTES = 2_000_000_000
ALLOWED = 2 * 1024 * 1024
"""Bytes that a decoder may take for itself, whatever a header promises."""

PG_START: list[Turn] = [("client", pg.STARTUP), ("server", pg.AUTH_OK + pg.READY)]
AMQP_START: list[Turn] = [("client", amqp.HELLO), ("server", amqp.method(amqp.Connection.Start(), 0))]
POST = b"POST /charges HTTP/1.1\r\nhost: pay\r\n"
GET: Turn = ("client", b"GET / HTTP/1.1\r\nhost: pay\r\n\r\n")
MAIL: list[Turn] = [("server", b"220 hi\r\n"), ("client", b"DATA\r\n"), ("server", b"354 go\r\n")]

# Each ends within something that goes on for 2 GB, so that any bytes may follow.
LIES: dict[str, tuple[str, list[Turn]]] = {
    "redis argument": ("redis", [("client", b"*2\r\n$3\r\nGET\r\n$%d\r\n" % TWO_GIGABYTES)]),
    "redis reply": ("redis", [("client", b"PING\r\n"), ("server", b"$%d\r\n" % TWO_GIGABYTES)]),
    "redis array": ("redis", [("client", b"PING\r\n"), ("server", b"*%d\r\n$%d\r\n" % ((TWO_GIGABYTES,) * 2))]),
    "postgres query": ("postgres", [*PG_START, ("client", b"Q" + struct.pack(">I", 0x3FFFFFFF) + b"select '")]),
    "postgres row": ("postgres", [*PG_START, ("server", b"D" + struct.pack(">I", 0x3FFFFFFF))]),
    "postgres copy": ("postgres", [*PG_START, ("client", pg.query("copy a from stdin") + b"d\x3f\xff\xff\xff")]),
    "http body": ("http", [("client", POST + b"content-length: %d\r\n\r\n" % TWO_GIGABYTES)]),
    "http chunk": ("http", [("client", POST + b"transfer-encoding: chunked\r\n\r\n%x\r\n" % TWO_GIGABYTES)]),
    "http reply": ("http", [GET, ("server", b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % TWO_GIGABYTES)]),
    "http reply without a length": ("http", [GET, ("server", b"HTTP/1.1 200 OK\r\n\r\n")]),
    "smtp chunk": ("smtp", [("server", b"220 hi\r\n"), ("client", b"BDAT %d LAST\r\n" % TWO_GIGABYTES)]),
    "smtp data": ("smtp", [*MAIL, ("client", b"Subject: x\r\n\r\n")]),
    "amqp content": (
        "amqp",
        [
            *AMQP_START,
            ("client", amqp.method(amqp.PUBLISH) + amqp.method(amqp.header.ContentHeader(0, 2**62))),
            ("client", b"\x03\x00\x01" + struct.pack(">I", 0x7FFFFFFF)),
        ],
    ),
    "opaque": ("opaque", [("client", b"x")]),
}


def push_of(decoder: Decoder, side: str) -> Callable[[bytes], object]:
    return decoder.client if side == "client" else decoder.server


@pytest.mark.parametrize("what", LIES)
def test_a_promise_of_two_gigabytes_costs_nothing_until_they_come_and_little_when_they_do(what):
    protocol, turns = LIES[what]
    side = turns[-1][0]
    decoder = decoder_for(protocol)
    piece = bytes(64 * 1024)
    given = 0
    tracemalloc.start()
    try:
        for who, data in turns:
            push_of(decoder, who)(data)
        assert tracemalloc.get_traced_memory()[1] < ALLOWED / 4
        tracemalloc.reset_peak()
        for _ in range(3 * MAX_HELD // len(piece)):
            given += sum(len(unit.raw) for unit in push_of(decoder, side)(piece))
        # What is held is joined once, when it is given out.
        assert tracemalloc.get_traced_memory()[1] < 2 * MAX_HELD + ALLOWED
    finally:
        tracemalloc.stop()
    assert given > MAX_HELD, "it waits for what may never come"


# Each grows with `n`; written to be stepped through, or held open, as often as can be.
GROWING: dict[str, Callable[[int], tuple[str, list[Turn]]]] = {
    "redis arguments": lambda n: ("redis", [("client", b"*%d\r\n" % n + b"$1\r\na\r\n" * n)]),
    "redis argument in pieces": lambda n: ("redis", [("client", b"*1\r\n$%d\r\n" % (8 * n) + bytes(8 * n))]),
    "redis commands that are never answered": lambda n: ("redis", [("client", b"PING\r\n" * n)]),
    "redis queued": lambda n: ("redis", [("client", b"MULTI\r\n" + b"GET a\r\n" * n), ("server", b"+QUEUED\r\n" * n)]),
    "redis elements": lambda n: ("redis", [("client", b"PING\r\n"), ("server", b"*%d\r\n" % n + b"$1\r\na\r\n" * n)]),
    "postgres batch": lambda n: ("postgres", [*PG_START, ("client", pg.parse("select 1", "s") * n)]),
    "postgres names": lambda n: (
        "postgres",
        [*PG_START, ("client", b"".join(pg.parse("select 1", f"s{at}") + pg.SYNC for at in range(n // 4)))],
    ),
    "postgres rows": lambda n: ("postgres", [*PG_START, ("server", pg.row(b"x") * n)]),
    "postgres copy": lambda n: ("postgres", [*PG_START, ("client", pg.query("copy a from stdin") + pg.msg("d") * n)]),
    "http headers": lambda n: ("http", [("client", POST + b"a: b\r\n" * n + b"\r\n")]),
    "http path": lambda n: ("http", [("client", b"GET /" + b"a1-%41/" * n + b" HTTP/1.1\r\n\r\n")]),
    "http chunks": lambda n: (
        "http",
        [("client", POST + b"transfer-encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * n + b"0\r\n\r\n")],
    ),
    "http reply": lambda n: ("http", [GET, ("server", b"HTTP/1.1 200 OK\r\n\r\n" + bytes(8 * n))]),
    "smtp dots": lambda n: ("smtp", [*MAIL, ("client", b"\r\n...\r\n." * n + b"\r\n.\r\n")]),
    "smtp subject": lambda n: ("smtp", [*MAIL, ("client", b"Subject: " + b"=?x?q?\r\n " * n + b"\r\n.\r\n")]),
    "smtp commands": lambda n: ("smtp", [("client", b"RCPT TO:<a@b>\r\n" * n), ("server", b"550 no\r\n" * n)]),
    "amqp bodies": lambda n: (
        "amqp",
        [
            *AMQP_START,
            ("client", amqp.method(amqp.PUBLISH) + amqp.method(amqp.header.ContentHeader(0, n))),
            ("client", amqp.method(amqp.body.ContentBody(b"a")) * n),
        ],
    ),
    "amqp confirms": lambda n: (
        "amqp",
        [
            *AMQP_START,
            ("client", amqp.method(amqp.Confirm.Select()) + amqp.content(amqp.PUBLISH) * (n // 4)),
            ("server", b"".join(amqp.method(amqp.Basic.Ack(at)) for at in range(n // 4, 0, -1))),
        ],
    ),
    "marks": lambda n: ("marks", [("client", b"mark a b\n" * n)]),
}


def work_of(protocol: str, turns: list[Turn], cut: Cut) -> int:
    """Function calls, and bytes that the buffers hand on."""
    decoder = decoder_for(protocol)
    count = 0

    def look(frame: object, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    def counted(name: str) -> Callable[..., bytes | None]:
        real = getattr(Side, name)

        def call(self: Side, *arguments: object) -> bytes | None:
            nonlocal count
            joined = real(self, *arguments)
            count += len(joined or b"")
            return joined

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("offer", "take", "flush"):
            patch.setattr(Side, name, counted(name))
        before = sys.getprofile()
        sys.setprofile(look)
        try:
            for side, data in turns:
                push = push_of(decoder, side)
                for piece in cut(data):
                    push(piece)
        finally:
            sys.setprofile(before)
    return count


@pytest.mark.parametrize("cut", [whole, single, cut_at([100])], ids=["whole", "bytes", "pieces"])
@pytest.mark.parametrize("what", GROWING)
def test_the_work_is_linear_however_the_bytes_are_cut(what, cut):
    small, big = (work_of(*GROWING[what](n), cut) for n in (120, 480))
    assert big < 5 * small, "four times the bytes"


def test_work_that_is_not_linear_would_be_seen():
    def again(data: bytes) -> list[bytes]:
        return [data[:at] for at in range(0, len(data), 16)]

    small, big = (work_of(*GROWING["redis commands that are never answered"](n), again) for n in (30, 120))
    assert big > 8 * small


def test_what_follows_a_lie_is_told_once():
    decoder = decoder_for("redis")
    units = [*decoder.client(b"*1\r\n$%d\r\n" % 10**13), *decoder.client(b"x")]
    assert [unit.kind for unit in units] == [Kind.OPAQUE, Kind.OPAQUE]
    assert "expected a length" in units[0].note
    assert units[1].note == ""
