"""Private servers that fail on purpose: down and back on the same port, read-only, out of connections."""

from __future__ import annotations

from pathlib import Path

import amqp
import psycopg
import pytest
import redis.exceptions
from test_services import Rig, left_in_tmp, with_rig

from jobcheck.errors import UsageError
from jobcheck.services.clients import pg_client, pg_query, redis_client, rows
from jobcheck.services.rabbitmq_server import RabbitService
from jobcheck.services.spec import Address, Postgres, RabbitMQ, Redis

ORIGINS = ["found", "wheel"]


@pytest.fixture(params=ORIGINS)
def origin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("JOBCHECK_SERVICES", request.param)
    return str(request.param)


def segments() -> set[int]:
    """Numbers of the System V shared memory of this machine."""
    return {int(line.split()[1]) for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}


def segment_of(rig: Rig) -> int:
    """The segment of the rig's own server."""
    (lock,) = (file for folder in left_in_tmp(rig.run) for file in folder.glob("data/postmaster.pid"))
    return int(lock.read_text().splitlines()[6].split()[1])


@pytest.mark.parametrize(("keeps", "politely", "killed"), [("aof", "a", "b"), ("snapshot", "a", "a"), ("", None, None)])
def test_a_redis_comes_back_with_what_it_keeps(
    tmp_path: Path, keeps: str, politely: str | None, killed: str | None
) -> None:
    """A kill takes from one with snapshots what came since the last one, from one with an append-only file nothing."""

    async def body(rig: Rig) -> None:
        service = await rig.start(Redis(keeps=keeps))
        lane = await service.namespace("1")
        assert await service.keep()
        async with redis_client(lane) as client:
            await client.set("key", "a")
        await service.take_down(kill=False)
        assert service.alive, "it is down on purpose"
        async with redis_client(lane) as client:
            with pytest.raises(redis.exceptions.ConnectionError):
                await client.ping()
        await service.bring_back()
        async with redis_client(lane) as client:
            assert await client.get("key") == politely
            await client.set("key", "b")
        await service.take_down(kill=True)
        await service.bring_back()
        async with redis_client(lane) as client:
            assert await client.get("key") == killed
        service.check()

    assert left_in_tmp(with_rig(tmp_path, body)) == []


def test_a_wiped_redis_comes_back_empty(tmp_path: Path) -> None:
    async def body(rig: Rig) -> None:
        service = await rig.start(Redis())
        await service.keep()
        lane = await service.namespace("1")
        async with redis_client(lane) as client:
            await client.set("key", "a")
        await service.take_down(kill=True)
        await service.bring_back(erased=True)
        async with redis_client(lane) as client:
            assert await client.dbsize() == 0
            await client.set("key", "b")
        await service.take_down(kill=True)
        await service.bring_back()
        async with redis_client(lane) as client:
            assert await client.get("key") == "b", "it keeps its data again"

    assert left_in_tmp(with_rig(tmp_path, body)) == []


def test_a_redis_refuses_writes_or_connections_until_it_is_relieved(tmp_path: Path, origin: str) -> None:
    async def body(rig: Rig) -> None:
        service = await rig.start(Redis())
        lane = await service.namespace("1")
        async with redis_client(lane) as client:
            await client.set("key", "a")
            await service.hamper("read_only")
            assert await client.get("key") == "a"
            with pytest.raises(redis.exceptions.ReadOnlyError):
                await client.set("key", "b")
            await service.hamper("exhaust")
            await client.set("key", "b")
            async with redis_client(lane) as late:
                with pytest.raises(redis.exceptions.ConnectionError, match="max number of clients"):
                    await late.ping()
        await service.relieve()
        await service.relieve()
        async with redis_client(lane) as client:
            assert await client.get("key") == "b"
        await service.hamper("exhaust")
        await service.take_down(kill=True)
        await service.bring_back()
        async with redis_client(lane) as client:
            assert await client.ping(), "a new process is not hampered"
        await service.hamper("read_only")

    assert left_in_tmp(with_rig(tmp_path, body)) == []


def test_a_killed_postgres_recovers_its_commits_and_leaves_no_shared_memory(tmp_path: Path, origin: str) -> None:
    used: set[int] = set()

    async def body(rig: Rig) -> None:
        service = await rig.start(Postgres())
        lane = await service.namespace("1")
        await service.keep()
        await pg_query(lane, "CREATE TABLE t (n int)")
        for kill in (True, False):
            async with pg_client(lane) as client:
                await rows(client, "INSERT INTO t VALUES (1)")
                await service.take_down(kill=kill)
                with pytest.raises(psycopg.OperationalError):
                    await rows(client, "SELECT 1")
            with pytest.raises(psycopg.OperationalError):
                await pg_query(lane, "SELECT 1")
            await service.bring_back()
        assert await pg_query(lane, "SELECT count(*) AS n FROM t") == [{"n": 2}]
        assert (await service.namespace("2")).path, "it makes databases again"
        used.add(segment_of(rig))
        assert used & segments(), "the numbers are those of the machine"
        await service.take_down(kill=True)

    assert left_in_tmp(with_rig(tmp_path, body)) == []
    assert used
    assert not used & segments()


def test_a_postgres_refuses_writes_or_connections_until_it_is_relieved(tmp_path: Path) -> None:
    async def body(rig: Rig) -> None:
        service = await rig.start(Postgres())
        lane = await service.namespace("1")
        async with pg_client(lane) as client:
            await rows(client, "CREATE TABLE t (n int)")
            await service.hamper("read_only")
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                await pg_query(lane, "INSERT INTO t VALUES (1)")
            await service.hamper("exhaust")
            await rows(client, "INSERT INTO t VALUES (1)")
            with pytest.raises(psycopg.OperationalError, match="too many clients"):
                await pg_query(lane, "SELECT 1")
        await service.relieve()
        await service.relieve()
        assert await pg_query(lane, "SELECT n FROM t") == [{"n": 1}]
        await service.hamper("read_only")
        await service.take_down(kill=True)
        await service.bring_back()
        await pg_query(lane, "INSERT INTO t VALUES (2)")
        await service.hamper("exhaust")

    assert left_in_tmp(with_rig(tmp_path, body)) == []


def connect(address: Address) -> amqp.Connection:
    connection = amqp.Connection(
        f"{address.host}:{address.port}", userid=address.user, password=address.password, virtual_host=address.path
    )
    connection.connect()
    return connection


def publish(address: Address) -> None:
    """One persistent message in a durable queue, confirmed by the broker."""
    connection = connect(address)
    channel = connection.channel()
    channel.confirm_select()
    channel.queue_declare("jobs", durable=True, auto_delete=False)
    channel.basic_publish_confirm(amqp.Message("x", delivery_mode=2), routing_key="jobs")
    connection.close()


def test_a_rabbitmq_refuses_connections_or_messages_and_comes_back_without_its_queues(tmp_path: Path) -> None:
    """The virtual host is there: the operator's definitions are loaded again."""

    async def body(rig: Rig) -> None:
        service = await rig.start(RabbitMQ())
        assert isinstance(service, RabbitService)
        lane = await service.namespace("1")
        publish(lane)
        await service.hamper("exhaust")
        with pytest.raises(amqp.exceptions.NotAllowed, match="limit"):
            connect(lane)
        await service.hamper("read_only")
        connection = connect(lane)
        blocked: list[str] = []
        connection.on_blocked = blocked.append
        connection.channel().basic_publish(amqp.Message("y"), routing_key="nowhere")
        connection.drain_events(timeout=20)
        assert len(blocked) == 1
        connection.collect()
        await service.relieve()
        await service.relieve()
        assert [(queue.name, queue.ready) for queue in await service.depth(lane)] == [("jobs", 1)]
        await service.take_down(kill=False)
        with pytest.raises(OSError, match="refused"):
            connect(lane)
        await service.bring_back(erased=True)
        assert await service.depth(lane) == []
        publish(lane)

    assert left_in_tmp(with_rig(tmp_path, body)) == []


def test_servers_that_were_given_are_never_touched(tmp_path: Path) -> None:
    async def body(rig: Rig) -> None:
        server = await rig.start(Redis(), "server")
        given = await rig.start(Redis(url=server.address.url), "given")
        for attempt in (given.take_down(kill=True), given.take_down(kill=False), given.hamper("read_only")):
            with pytest.raises(UsageError, match="given by its url"):
                await attempt
        async with redis_client(server.address) as client:
            assert await client.ping()

    with_rig(tmp_path, body)


def test_what_can_not_be_wiped_says_so(tmp_path: Path) -> None:
    async def body(rig: Rig) -> None:
        service = await rig.start(Postgres())
        await service.take_down(kill=True)
        with pytest.raises(UsageError, match="cannot be wiped"):
            await service.bring_back(erased=True)
        await service.bring_back()

    assert left_in_tmp(with_rig(tmp_path, body)) == []
