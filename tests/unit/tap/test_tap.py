"""The tap passes bytes, holds what its gate wants, and ends cleanly. Real sockets, no waits for luck."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from jobcheck.clock import REAL
from jobcheck.history.records import Point
from jobcheck.tap.gate import Armed
from jobcheck.tap.listener import Slot
from jobcheck.tap.sight import IN, OUT, Sight, Trace
from jobcheck.wire.registry import decoder_for


class Upstream:
    """A server that answers each mark with ok, and remembers what it got and when a client ended. It ends a connection
    on which it was told to quit."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.ended = asyncio.Event()

    async def __aenter__(self) -> Upstream:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = self.server.sockets[0].getsockname()[:2]
        return self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            self.received.append(line)
            writer.write(b"ok\n")
            if line.startswith(b"mark quit"):
                break
        self.ended.set()
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        await self.server.wait_closed()


Body = Callable[[Slot, Upstream, asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


def tapped(body: Body, protocol: str = "marks") -> Slot:
    """Runs the body with a client that talks to the upstream through a tap."""

    async def main() -> Slot:
        async with Upstream() as upstream:
            slot = Slot("w1", Trace(REAL))
            port = await slot.tap("marks", upstream.address, lambda: decoder_for(protocol))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                await asyncio.wait_for(body(slot, upstream, reader, writer), 10)
            finally:
                writer.close()
                await asyncio.gather(writer.wait_closed(), return_exceptions=True)
                await slot.close()
            return slot

    return asyncio.run(main())


class Holds:
    """Holds every request."""

    def __init__(self) -> None:
        self.held: asyncio.Queue[Sight] = asyncio.Queue()

    def holds(self, sight: Sight) -> bool:
        if sight.way == OUT:
            self.held.put_nowait(sight)
        return sight.way == OUT


def test_what_goes_in_comes_out_and_is_seen_with_its_answer() -> None:
    async def body(slot: Slot, upstream: Upstream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"mark sent invoice:17\n")
        assert await reader.readline() == b"ok\n"
        assert upstream.received == [b"mark sent invoice:17\n"]
        sight = slot.trace.sights[0]
        assert sight.unit.shape == "mark sent"
        assert sight.reply is not None
        assert not slot.in_flight()

    tapped(body)


def test_a_held_request_reaches_the_upstream_only_after_its_release() -> None:
    async def body(slot: Slot, upstream: Upstream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gate = Holds()
        slot.gate = gate
        writer.write(b"mark a 1\nmark b 2\n")
        first = await gate.held.get()
        assert upstream.received == []
        first.link.release(OUT)
        second = await gate.held.get()
        assert second.unit.shape == "mark b"
        assert await reader.readline() == b"ok\n"
        assert upstream.received == [b"mark a 1\n"]
        slot.release()
        assert await reader.readline() == b"ok\n"
        assert upstream.received == [b"mark a 1\n", b"mark b 2\n"]

    tapped(body)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_armed_gate_strikes_on_the_right_side_of_the_point(when: str) -> None:
    async def body(slot: Slot, upstream: Upstream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        point = Point(id="p", upstream="marks", shape="mark b", nth=2)
        gate = Armed(point, when, window=True)
        slot.gate = gate
        for text in (b"mark b 1\n", b"mark a 1\n"):
            writer.write(text)
            await reader.readline()
        writer.write(b"mark b 2\n")
        await gate.fired.wait()
        await slot.drain()
        await slot.cut()
        expected = [b"mark b 1\n", b"mark a 1\n"] + ([b"mark b 2\n"] if when == "after" else [])
        assert upstream.received == expected
        assert await reader.read() == b"", "the worker never hears of it"
        assert gate.hit is not None
        assert gate.hit.fate == "struck"
        assert gate.hit.way == (IN if when == "after" else OUT)

    tapped(body)


def test_a_cut_returns_when_the_server_has_noticed() -> None:
    async def body(slot: Slot, upstream: Upstream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"mark a 1\n")
        await reader.readline()
        await slot.cut()
        assert upstream.ended.is_set()
        assert slot.links == []

    tapped(body)


def test_the_end_of_the_client_reaches_the_upstream_behind_what_was_sent() -> None:
    async def body(slot: Slot, upstream: Upstream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"mark a 1\n")
        writer.write_eof()
        assert await reader.read() == b"ok\n"
        await upstream.ended.wait()

    tapped(body)


def test_a_background_process_that_asks_twice_at_once_has_looked_once() -> None:
    """Only who asks again behind the answer has looked whether there is more to do."""
    ask = b"*2\r\n$4\r\nLLEN\r\n$5\r\nqueue\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(b":0\r\n" * data.count(b"LLEN"))
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    async def main() -> list[tuple[bool, bool]]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        slot = Slot("relay", Trace(REAL))
        slot.background = True
        port = await slot.tap("kv", server.sockets[0].getsockname()[:2], lambda: decoder_for("redis"))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        seen = []
        for asked in (2, 1):
            writer.write(ask * asked)
            await reader.readexactly(4 * asked)
            before, last = slot.looks["kv redis LLEN queue"]
            seen.append((before > 0, last > 0))
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        await slot.close()
        server.close()
        await server.wait_closed()
        return seen

    assert asyncio.run(main()) == [(False, True), (True, True)]


def test_a_connection_that_the_server_has_ended_is_dead_whether_the_client_lets_go_of_it_or_not() -> None:
    async def body(slot: Slot, upstream: Upstream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"mark a 1\n")
        assert await reader.readline() == b"ok\n"
        (link,) = slot.links
        assert not link.dead
        writer.write(b"mark quit now\n")
        assert await reader.read() == b"ok\n"
        assert link.dead
        assert not link.closed.is_set(), "the client has not closed its side"

    tapped(body)


def test_bytes_of_no_known_protocol_pass_unchanged() -> None:
    async def body(slot: Slot, upstream: Upstream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x00\xff\n")
        assert await reader.readline() == b"ok\n"
        assert upstream.received == [b"\x00\xff\n"]

    tapped(body, protocol="opaque")


def test_an_upstream_that_refuses_is_named() -> None:
    async def main() -> None:
        slot = Slot("w1", Trace(REAL))
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        gone = server.sockets[0].getsockname()[:2]
        server.close()
        port = await slot.tap("db", gone, lambda: decoder_for("opaque"))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answer = await asyncio.gather(reader.read(), return_exceptions=True)
        assert answer[0] == b"" or isinstance(answer[0], ConnectionError)
        assert f"db at 127.0.0.1:{gone[1]}" in slot.listeners["db"].refused
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        await slot.close()

    asyncio.run(main())
