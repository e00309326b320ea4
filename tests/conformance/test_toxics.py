"""One suite for both toxic engines: what each toxic does to real connections. Times are lower bounds only."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from toxic_world import ENGINES, PROXY, World, play, sender_and_receiver

from jobcheck.aio import wait_for
from jobcheck.errors import UsageError
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
from jobcheck.seeds import Seeds

Body = Callable[[World], Awaitable[None]]
Play = Callable[[Body], None]

BOTH = pytest.mark.parametrize("stream", list(Stream))


@pytest.fixture(name="run", params=ENGINES)
def _run(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    kind: str = request.param
    return lambda body: play(kind, tmp_path, body)


def noise(size: int) -> bytes:
    """Bytes that show any loss, change or exchange."""
    return Seeds(size).stream("noise").randbytes(size)


@BOTH
def test_latency_delays_its_direction_by_at_least_the_set_time(run: Play, stream: Stream) -> None:
    async def body(world: World) -> None:
        old = await world.connect()
        await world.add(Latency(120, stream=stream))
        for pair in (old, await world.connect()):
            sender, receiver = sender_and_receiver(stream, *pair)
            sender.send(b"late")
            await receiver.got(b"late")
            assert receiver.since(sender) >= 0.12

    run(body)


def test_latencies_of_both_directions_add_up_and_jitter_stays_in_its_bounds(run: Play) -> None:
    async def body(world: World) -> None:
        await world.add(Latency(80, jitter=30, stream=Stream.UPSTREAM))
        await world.add(Latency(80, jitter=30))
        client, server = await world.connect()
        client.send(b"ping")
        await server.got(b"ping")
        server.send(b"pong")
        await client.got(b"pong")
        assert client.since(client) >= 0.1

    run(body)


@BOTH
def test_bytes_are_unchanged_by_every_toxic_that_loses_none(run: Play, stream: Stream) -> None:
    async def body(world: World) -> None:
        for toxic in (
            Latency(5, jitter=5, stream=stream),
            Slicer(700, 300, stream=stream),
            Bandwidth(3000, stream=stream),
            SlowClose(10, stream=stream),
        ):
            await world.add(toxic)
        sender, receiver = sender_and_receiver(stream, *await world.connect())
        payload = noise(300_000)
        pieces = itertools.chain([0, 1, 2, 1000, 70_000, 70_001], [300_000])
        for start, stop in itertools.pairwise(pieces):
            sender.send(payload[start:stop])
        await receiver.got(payload)

    run(body)


@BOTH
@pytest.mark.parametrize("kind", ["latency", "bandwidth", "slicer"])
def test_a_removed_toxic_hands_on_what_it_held_in_order(run: Play, stream: Stream, kind: str) -> None:
    async def body(world: World) -> None:
        toxics: dict[str, Toxic] = {
            "latency": Latency(60_000, stream=stream),
            "bandwidth": Bandwidth(1, stream=stream),
            "slicer": Slicer(1000, 0, 1_000_000, stream=stream),
        }
        sender, receiver = sender_and_receiver(stream, *await world.connect())
        name = await world.add(toxics[kind])
        payload = noise(200_000)
        for start in range(0, len(payload), 20_000):
            sender.send(payload[start : start + 20_000])
        await world.remove(name)
        await receiver.got(payload)
        sender.send(b"more")
        await receiver.got(payload + b"more")

    run(body)


@BOTH
def test_bandwidth_lets_bytes_through_no_faster_than_its_rate(run: Play, stream: Stream) -> None:
    async def body(world: World) -> None:
        sender, receiver = sender_and_receiver(stream, *await world.connect())
        await world.add(Bandwidth(200, stream=stream))
        payload = noise(60_000)
        sender.send(payload)
        await receiver.got(payload)
        assert receiver.since(sender) >= 60_000 / 200_000

    run(body)


def test_a_bandwidth_of_zero_holds_everything_until_it_is_removed(run: Play) -> None:
    async def body(world: World) -> None:
        client, server = await world.connect()
        name = await world.add(Bandwidth(0, stream=Stream.UPSTREAM))
        client.send(b"stuck")
        server.send(b"free")
        await client.got(b"free")
        assert server.data == b""
        await world.remove(name)
        await server.got(b"stuck")

    run(body)


@BOTH
def test_slow_close_delays_the_end_and_nothing_else(run: Play, stream: Stream) -> None:
    async def body(world: World) -> None:
        sender, receiver = sender_and_receiver(stream, *await world.connect())
        await world.add(SlowClose(150, stream=stream))
        sender.send(b"last words")
        await receiver.got(b"last words")
        sender.close()
        await receiver.saw_the_end()
        assert receiver.since(sender) >= 0.15
        assert receiver.error is None

    run(body)


def test_a_removed_slow_close_ends_what_waited_for_it(run: Play) -> None:
    async def body(world: World) -> None:
        client, server = await world.connect()
        name = await world.add(SlowClose(60_000))
        server.send(b"bye")
        server.close()
        await client.got(b"bye")
        await world.remove(name)
        await client.saw_the_end()

    run(body)


@BOTH
def test_a_timeout_of_zero_swallows_data_until_it_is_removed_and_then_closes(run: Play, stream: Stream) -> None:
    async def body(world: World) -> None:
        sender, receiver = sender_and_receiver(stream, *await world.connect())
        name = await world.add(Timeout(0, stream=stream))
        sender.send(b"swallowed")
        receiver.send(b"the other direction lives")
        await sender.got(b"the other direction lives")
        assert not sender.ended
        assert not receiver.ended
        await world.remove(name)
        await receiver.saw_the_end()
        await sender.saw_the_end()
        assert receiver.data == b""

    run(body)


@BOTH
def test_a_timeout_closes_both_sides_after_its_time(run: Play, stream: Stream) -> None:
    async def body(world: World) -> None:
        await world.add(Timeout(120, stream=stream))
        sender, receiver = sender_and_receiver(stream, *await world.connect())
        sender.send(b"swallowed")
        await receiver.saw_the_end()
        assert receiver.since(sender) >= 0.12
        await sender.saw_the_end()
        assert receiver.data == b""

    run(body)


@BOTH
@pytest.mark.parametrize("timeout", [0, 100])
def test_reset_peer_resets_a_new_connection_after_its_first_data(run: Play, stream: Stream, timeout: int) -> None:
    async def body(world: World) -> None:
        await world.add(ResetPeer(timeout, stream=stream))
        client, server = await world.connect()
        sender, receiver = sender_and_receiver(stream, client, server)
        receiver.send(b"the other direction lives")
        await sender.got(b"the other direction lives")
        assert not client.closed
        sender.send(b"trigger")
        await wait_for(lambda: client.closed and server.closed, "both ends", deadline=20)
        assert receiver.since(sender) >= timeout / 1000
        assert isinstance(client.error, ConnectionResetError)
        assert isinstance(server.error, ConnectionResetError)
        assert receiver.data == b""

    run(body)


@BOTH
def test_reset_peer_ends_a_connection_that_was_there_before(run: Play, stream: Stream) -> None:
    """Toxiproxy closes it, the tap resets it; nothing arrives in either."""

    async def body(world: World) -> None:
        sender, receiver = sender_and_receiver(stream, *await world.connect())
        await world.add(ResetPeer(stream=stream))
        sender.send(b"trigger")
        await receiver.saw_the_end()
        await sender.saw_the_end()
        assert receiver.data == b""

    run(body)


@BOTH
def test_the_slicer_cuts_data_into_pieces_that_come_apart(run: Play, stream: Stream) -> None:
    async def body(world: World) -> None:
        sender, receiver = sender_and_receiver(stream, *await world.connect())
        await world.add(Slicer(100, 20, 60_000, stream=stream))
        payload = noise(600)
        sender.send(payload)
        await receiver.got(payload)
        slices = 600 / 120
        assert receiver.since(sender) >= (slices - 1) * 0.06
        assert len(receiver.reads) > 1

    run(body)


@BOTH
@pytest.mark.parametrize("limit", [0, 7, 100_000])
def test_limit_data_closes_after_exactly_so_many_bytes(run: Play, stream: Stream, limit: int) -> None:
    async def body(world: World) -> None:
        sender, receiver = sender_and_receiver(stream, *await world.connect())
        sender.send(b"before")
        await receiver.got(b"before")
        await world.add(LimitData(limit, stream=stream))
        payload = noise(limit + 5)
        sender.send(payload[: limit // 2])
        await receiver.got(b"before" + payload[: limit // 2])
        sender.send(payload[limit // 2 :])
        await receiver.saw_the_end()
        await sender.saw_the_end()
        assert receiver.data == b"before" + payload[:limit]

    run(body)


def test_down_refuses_connections_cuts_those_that_exist_and_comes_back_at_the_same_address(run: Play) -> None:
    async def body(world: World) -> None:
        client, server = await world.connect()
        await world.engine.disable(PROXY)
        await world.engine.disable(PROXY)
        await client.saw_the_end()
        await server.saw_the_end()
        assert await world.refused()
        await world.engine.enable(PROXY)
        await world.engine.enable(PROXY)
        await world.alive()

    run(body)


def test_down_is_added_and_removed_like_any_other_toxic(run: Play) -> None:
    async def body(world: World) -> None:
        assert await world.add(Down()) == "down"
        assert await world.refused()
        with pytest.raises(UsageError, match="'down' already"):
            await world.add(Down())
        await world.engine.disable(PROXY)
        await world.engine.enable(PROXY)
        assert await world.refused(), "the toxic acts still"
        await world.remove("down")
        await world.alive()

    run(body)


def test_toxicity_is_drawn_per_connection_and_0_is_never_and_1_always(run: Play) -> None:
    async def body(world: World) -> None:
        hit = {}
        for toxicity in (0.0, 0.5, 1.0):
            name = await world.add(LimitData(1, toxicity=toxicity))
            hit[toxicity] = 0
            for _ in range(30):
                client, server = await world.connect()
                server.send(b"ab")
                await wait_for(lambda end=client: end.data == b"ab" or end.ended, "an answer", deadline=20)
                hit[toxicity] += client.data == b"a"
                client.close()
            await world.remove(name)
        assert hit[0.0] == 0
        assert 0 < hit[0.5] < 30
        assert hit[1.0] == 30

    run(body)


def test_a_reset_heals_everything_and_loses_nothing_that_was_held(run: Play) -> None:
    async def body(world: World) -> None:
        client, server = await world.connect()
        for stream in Stream:
            await world.add(Latency(60_000, stream=stream))
            await world.add(Bandwidth(0, stream=stream))
            await world.add(Slicer(10, 0, 1_000_000, stream=stream))
        up, down = noise(50_000), noise(60_000)
        client.send(up)
        server.send(down)
        await world.engine.reset()
        await server.got(up)
        await client.got(down)
        await world.add(Down())
        await world.engine.reset()
        await world.alive()
        await world.add(Latency(1, stream=Stream.UPSTREAM))  # its name is free again

    run(body)


def test_toxics_of_one_proxy_do_not_touch_another_one(run: Play) -> None:
    async def body(world: World) -> None:
        other = await world.engine.proxy("cache", *world.upstream)
        await world.add(LimitData(0))
        await world.add(Down())
        client, server = await world.connect(other)
        server.send(b"fine")
        await client.got(b"fine")

    run(body)


def test_what_is_not_there_and_what_is_there_already_is_a_usage_error(run: Play) -> None:
    async def body(world: World) -> None:
        with pytest.raises(UsageError, match=r"\(db\), got 'bd'"):
            await world.engine.add("bd", Latency(1))
        with pytest.raises(UsageError, match="'db' already"):
            await world.engine.proxy(PROXY, *world.upstream)
        assert await world.add(Latency(1)) == "latency_downstream"
        with pytest.raises(UsageError, match="'latency_downstream' already"):
            await world.add(Latency(2))
        assert await world.engine.add(PROXY, Latency(2), name="w1:odd name/1") == "w1:odd name/1"
        with pytest.raises(UsageError, match=r"latency_downstream, w1:odd name/1"):
            await world.remove("timeout_downstream")
        await world.remove("w1:odd name/1")
        assert world.engine.describe

    run(body)
