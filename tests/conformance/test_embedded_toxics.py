"""The embedded engine on the taps of workers: by upstream and slot, with gates and cuts, without leaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from toxic_world import DEADLINE, End, play

from jobcheck.aio import wait_for
from jobcheck.clock import REAL
from jobcheck.errors import ServiceError
from jobcheck.faults.toxics import (
    Bandwidth,
    Down,
    Latency,
    LimitData,
    ResetPeer,
    Slicer,
    SlowClose,
    Stream,
    Timeout,
    Toxic,
)
from jobcheck.history.records import Point
from jobcheck.seeds import Seeds
from jobcheck.tap.gate import Armed
from jobcheck.tap.listener import Slot
from jobcheck.tap.sight import OUT, Trace
from jobcheck.tap.toxic_engine import EmbeddedToxics
from jobcheck.wire.opaque import OpaqueDecoder
from jobcheck.wire.stream import OPAQUE_SHAPE


class Taps:
    """Slots with a tap of one upstream, and the engine that acts on them."""

    def __init__(self, seed: int = 7) -> None:
        self.engine = EmbeddedToxics(Seeds(seed))
        self.slots: dict[str, Slot] = {}
        self.accepted: asyncio.Queue[End] = asyncio.Queue()
        self.ends: list[End] = []

    async def __aenter__(self) -> Taps:
        self.server = await asyncio.get_running_loop().create_server(self._accept, "127.0.0.1", 0)
        return self

    def _accept(self) -> End:
        self.ends.append(End(self.accepted.put_nowait))
        return self.ends[-1]

    async def slot(self, name: str) -> Slot:
        slot = self.slots[name] = Slot(name, Trace(REAL))
        await slot.tap("db", self.server.sockets[0].getsockname()[:2], OpaqueDecoder)
        await self.engine.attach(slot)
        return slot

    async def connect(self, slot: str) -> tuple[End, End]:
        port = self.slots[slot].listeners["db"].port
        _, client = await asyncio.get_running_loop().create_connection(End, "127.0.0.1", port)
        self.ends.append(client)
        return client, await asyncio.wait_for(self.accepted.get(), DEADLINE)

    async def __aexit__(self, *_: object) -> None:
        for end in self.ends:
            end.close()
        await self.engine.close()
        for slot in self.slots.values():
            await slot.close()
        self.server.close()


def tapped(body: Callable[[Taps], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Taps() as taps:
            await body(taps)

    asyncio.run(main())


async def first_byte(taps: Taps, slot: str) -> bytes:
    """What a client of this slot gets of two bytes."""
    client, server = await taps.connect(slot)
    server.send(b"ab")
    await wait_for(lambda: client.data == b"ab" or client.ended, "an answer", deadline=DEADLINE)
    return client.data


def test_a_toxic_acts_on_an_upstream_in_all_slots_or_on_that_of_one() -> None:
    async def body(taps: Taps) -> None:
        await taps.slot("w1")
        await taps.slot("w2")
        await taps.engine.add("w1:db", LimitData(1))
        assert [await first_byte(taps, slot) for slot in ("w1", "w2")] == [b"a", b"ab"]
        await taps.engine.add("db", LimitData(1))
        assert [await first_byte(taps, slot) for slot in ("w1", "w2")] == [b"a", b"a"]
        await taps.engine.reset()
        assert [await first_byte(taps, slot) for slot in ("w1", "w2")] == [b"ab", b"ab"]

    tapped(body)


def test_a_slot_that_comes_later_gets_what_is_active_and_one_that_leaves_is_healed() -> None:
    async def body(taps: Taps) -> None:
        await taps.slot("w1")
        await taps.engine.add("db", LimitData(1))
        slot = await taps.slot("w2")
        assert await first_byte(taps, "w2") == b"a"
        await taps.engine.add("db", Down())
        later = await taps.slot("w3")
        for name in ("w1", "w2", "w3"):
            with pytest.raises(ConnectionRefusedError):
                await taps.connect(name)
        await taps.engine.detach(slot)
        assert await first_byte(taps, "w2") == b"ab"
        assert later.listeners["db"].down

    tapped(body)


def test_down_for_two_reasons_ends_with_the_second_one() -> None:
    async def body(taps: Taps) -> None:
        await taps.slot("w1")
        await taps.engine.add("db", Down())
        await taps.engine.add("w1:db", Down(), name="again")
        await taps.engine.remove("db", "down")
        with pytest.raises(ConnectionRefusedError):
            await taps.connect("w1")
        await taps.engine.remove("w1:db", "again")
        assert await first_byte(taps, "w1") == b"ab"

    tapped(body)


def test_a_port_that_was_taken_while_down_is_named_and_can_be_had_later() -> None:
    async def body(taps: Taps) -> None:
        slot = await taps.slot("w1")
        await taps.engine.disable("db")
        port = slot.listeners["db"].port
        thief = await asyncio.get_running_loop().create_server(End, "127.0.0.1", port)
        with pytest.raises(ServiceError, match=f"port {port} to be free again"):
            await taps.engine.reset()
        thief.close()
        await taps.engine.reset()
        assert await first_byte(taps, "w1") == b"ab"

    tapped(body)


def test_the_same_seed_hits_the_same_connections() -> None:
    async def hits(seed: int) -> list[bytes]:
        async with Taps(seed) as taps:
            await taps.slot("w1")
            await taps.engine.add("db", LimitData(1, toxicity=0.5))
            return [await first_byte(taps, "w1") for _ in range(24)]

    first, second, other = asyncio.run(hits(1)), asyncio.run(hits(1)), asyncio.run(hits(2))
    assert first == second != other


def test_what_a_gate_holds_goes_through_the_toxics_once_it_is_released() -> None:
    async def body(taps: Taps) -> None:
        slot = await taps.slot("w1")
        await taps.engine.add("db", Latency(60_000, stream=Stream.UPSTREAM))
        client, server = await taps.connect("w1")
        slot.gate = gate = Armed(Point(id="p", upstream="db", shape=OPAQUE_SHAPE, nth=1), "before", window=True)
        client.send(b"held")
        await gate.fired.wait()
        slot.release()
        assert not any(link.holding(OUT) for link in slot.links)
        await taps.engine.remove("db", "latency_upstream")
        await server.got(b"held")

    tapped(body)


@pytest.mark.parametrize("toxic", [Latency(60_000, stream=Stream.UPSTREAM), Bandwidth(0, stream=Stream.UPSTREAM)])
def test_a_cut_hands_on_what_a_dead_worker_had_sent_and_then_ends(toxic: Toxic) -> None:
    """A cut must leave a certain state behind: nothing of the dead worker may arrive later."""

    async def body(taps: Taps) -> None:
        slot = await taps.slot("w1")
        await taps.engine.add("db", toxic)
        client, server = await taps.connect("w1")
        client.send(b"last words")
        await wait_for(lambda: slot.listeners["db"].bytes == 10, "the bytes in the tap", deadline=DEADLINE)
        server_closes = asyncio.get_running_loop().create_future()
        server.eof_received = lambda: server_closes.set_result(None)  # type: ignore[assignment,method-assign]
        await slot.cut(deadline=DEADLINE)
        await asyncio.wait_for(server_closes, DEADLINE)
        assert server.data == b"last words"
        assert slot.links == []

    tapped(body)


def test_a_server_that_ended_while_its_answer_was_under_way_is_still_heard() -> None:
    async def body(taps: Taps) -> None:
        slot = await taps.slot("w1")
        await taps.engine.add("db", Latency(60_000))
        client, server = await taps.connect("w1")
        server.send(b"answer")
        server.close()

        def noticed() -> bool:
            client.send(b"?")  # to a server that is gone: the tap's second write fails
            return all(link.closed.is_set() for link in slot.links)

        await wait_for(noticed, "the reset of the server", deadline=DEADLINE)
        assert slot.links
        await taps.engine.remove("db", "latency_downstream")
        await client.got(b"answer")
        await client.saw_the_end()

    tapped(body)


def test_a_sender_waits_when_a_toxic_is_full() -> None:
    async def body(taps: Taps) -> None:
        slot = await taps.slot("w1")
        await taps.engine.add("db", Bandwidth(0, stream=Stream.UPSTREAM))
        client, server = await taps.connect("w1")
        payload = bytes(20_000_000)
        client.send(payload)
        for _ in range(20):
            server.send(b"tick")
            await client.got(client.data + b"tick")
        assert slot.listeners["db"].bytes < 2_000_000
        await taps.engine.reset()
        await server.got(payload)

    tapped(body)


@pytest.mark.parametrize("stream", list(Stream))
@pytest.mark.parametrize(
    "make", [Latency, Bandwidth, SlowClose, Timeout, ResetPeer, LimitData, Slicer], ids=lambda one: one.kind
)
@pytest.mark.parametrize("ends", ["client", "server"])
def test_no_connection_stays_in_the_tap_when_both_ends_are_gone(
    make: Callable[..., Toxic], stream: Stream, ends: str
) -> None:
    async def body(taps: Taps) -> None:
        slot = await taps.slot("w1")
        await taps.engine.add("db", make(20, stream=stream))
        client, server = await taps.connect("w1")
        client.send(b"question")
        server.send(b"answer")
        await wait_for(
            lambda: slot.listeners["db"].bytes >= 14 or client.ended, "both in the tap, or its end", deadline=DEADLINE
        )
        first, second = (client, server) if ends == "client" else (server, client)
        first.close()
        await second.saw_the_end()
        second.close()
        await wait_for(lambda: not slot.links, "an empty tap", deadline=DEADLINE)

    tapped(body)


def test_a_proxy_of_its_own_keeps_no_history(tmp_path: Path) -> None:
    async def body(world: object) -> None:
        engine = world.engine  # type: ignore[attr-defined]
        client, server = await world.connect()  # type: ignore[attr-defined]
        client.send(bytes(1_000_000))
        await server.got(bytes(1_000_000))
        assert [slot.trace.sights for slot in engine._own.values()] == [[]]
        assert engine.describe == "embedded in the tap, seed 7"

    play("embedded", tmp_path, body)
