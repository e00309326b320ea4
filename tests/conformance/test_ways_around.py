"""Real servers that send their clients to other addresses - Sentinel, Cluster, pooler - and one sentence each."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
import redis
from redis.sentinel import MasterNotFoundError, Sentinel
from wire_proxy import World

from jobcheck.aio import wait_for
from jobcheck.clock import REAL
from jobcheck.errors import UsageError
from jobcheck.services.base import free_port
from jobcheck.services.spec import Address, Postgres, Redis
from jobcheck.tap.listener import Slot
from jobcheck.tap.sight import Trace
from jobcheck.wire.registry import decoder_for


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("around"))
    yield world
    world.close()


@pytest.fixture(scope="module")
def plain(world: World) -> Address:
    return world.service(Redis()).address


@pytest.fixture(scope="module")
def real(world: World) -> Address:
    return world.service(Postgres()).address


@contextmanager
def tap(world: World, port: int) -> Iterator[Slot]:
    slot = Slot("w1", Trace(REAL))
    world.run(slot.tap("broker", ("127.0.0.1", port), partial(decoder_for, "redis")))
    try:
        yield slot
    finally:
        world.run(slot.close())


@contextmanager
def server(world: World, folder: Path, *options: str) -> Iterator[int]:
    """A redis-server of the user's own."""
    program = shutil.which("redis-server")
    assert program, "apt-get install redis-server"
    folder.mkdir()
    (folder / "own.conf").write_text("")
    port = free_port()
    command = [program, str(folder / "own.conf"), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, *options], stdout=log, stderr=log)
        try:
            world.settle(lambda: answers(port), f"the server to answer: {(folder / 'log').read_text()}")
            yield port
        finally:
            process.kill()
            process.wait()


def answers(port: int) -> bool:
    with redis.Redis(port=port) as client:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False


def test_a_sentinel_client_at_the_tap_is_told(world: World, plain: Address) -> None:
    with tap(world, plain.port) as slot:
        sentinel = Sentinel([("127.0.0.1", slot.listeners["broker"].port)], socket_timeout=5)
        with pytest.raises((MasterNotFoundError, redis.ResponseError)):
            sentinel.discover_master("mymaster")
        for client in sentinel.sentinels:
            client.close()
    assert len(slot.trace.notes) == 1
    assert slot.trace.notes[0].startswith(
        "broker: the app asks for a Sentinel, which hands out the servers' own addresses"
    )
    assert "give it a plain redis:// address in the tests" in slot.trace.notes[0]


def test_a_cluster_client_and_a_moved_answer_are_told(world: World, tmp_path: Path) -> None:
    with ExitStack() as stack:
        buses = [free_port(), free_port()]
        ports = [
            stack.enter_context(server(world, tmp_path / f"node{bus}", *CLUSTER, "--cluster-port", str(bus)))
            for bus in buses
        ]
        nodes = [stack.enter_context(redis.Redis(port=port)) for port in ports]
        nodes[0].execute_command("CLUSTER ADDSLOTSRANGE", 0, 8191)
        nodes[1].execute_command("CLUSTER ADDSLOTSRANGE", 8192, 16383)
        nodes[0].execute_command("CLUSTER MEET", "127.0.0.1", ports[1], buses[1])

        def whole() -> bool:
            return all(node.execute_command("CLUSTER INFO")["cluster_state"] == "ok" for node in nodes)

        world.settle(whole, "the cluster to be whole")
        with tap(world, ports[0]) as slot, redis.Redis(port=slot.listeners["broker"].port) as client:
            client.execute_command("CLUSTER SLOTS")
            with pytest.raises(redis.ResponseError, match=f"127.0.0.1:{ports[1]}"):
                client.execute_command("SET", "foo", "1")  # slot 12182
        asked, moved = slot.trace.notes
        assert "the app has a Cluster client, which goes to the nodes' own addresses" in asked
        assert f"a Cluster node sent the app to 127.0.0.1:{ports[1]}, around the tap" in moved
        with pytest.raises(
            UsageError, match=r"redis: redis://127.0.0.1:\d+/? is a node of a Cluster, which sends clients"
        ):
            world.service(Redis(url=f"redis://127.0.0.1:{ports[0]}"))


def test_a_given_sentinel_is_a_usage_error(world: World, tmp_path: Path) -> None:
    with (
        server(world, tmp_path / "sentinel", "--sentinel") as port,
        pytest.raises(UsageError, match="is a Sentinel, which sends clients to other addresses"),
    ):
        world.service(Redis(url=f"redis://127.0.0.1:{port}"))


CLUSTER = ("--cluster-enabled", "yes", "--save", "")


class Pooler:
    """Tells clients process ids of its own, as PgBouncer does."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._busy = 0

    async def open(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        self._server.close()
        await wait_for(lambda: not self._busy, "the clients to leave", deadline=10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._busy += 1
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                at = data.find(b"K\x00\x00\x00\x0c")
                sink.write(data if at < 0 else data[: at + 5] + b"\x00\x00\x00\x07" + data[at + 9 :])
            sink.close()

        await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer), return_exceptions=True)
        await asyncio.gather(writer.wait_closed(), up_writer.wait_closed(), return_exceptions=True)
        self._busy -= 1


def test_a_given_pooler_is_a_usage_error(world: World, real: Address) -> None:
    pooler = Pooler(real.port)
    port = world.run(pooler.open())
    try:
        with pytest.raises(UsageError, match=r"is a connection pooler: the process id that it tells \(7\) is not"):
            world.service(Postgres(url=f"postgresql://{real.user}@127.0.0.1:{port}/{real.path}"))
    finally:
        world.run(pooler.close())
