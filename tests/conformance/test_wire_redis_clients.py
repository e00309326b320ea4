"""Labels and changes of Redis traffic, as redis-py makes it against a real server."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator

import pytest
import redis
import redis.asyncio
from wire_proxy import Proxy, World

from jobcheck.services.spec import Address, Redis
from jobcheck.wire.unit import Change, Kind

NO, PENDING, YES, MAYBE = Change.NO, Change.PENDING, Change.YES, Change.MAYBE


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("redis"))
    yield world
    world.close()


@pytest.fixture(scope="module")
def server(world: World) -> Address:
    return world.service(Redis()).address


@pytest.fixture
def proxy(world: World, server: Address) -> Iterator[Proxy]:
    with redis.Redis(port=server.port) as client:
        client.flushall()
        client.script_flush()
    with world.proxy("redis", server.port) as proxy:
        yield proxy


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def client(proxy: Proxy, request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    with redis.Redis(port=proxy.port, protocol=request.param) as client:
        yield client


def said(proxy: Proxy) -> list[tuple[str, Change]]:
    return [(shape.removeprefix("redis "), truth) for shape, _, truth in proxy.said()]


def test_plain_commands(client, proxy):
    job = uuid.uuid4()
    client.set(f"celery-task-meta-{job}", "x", ex=100)
    client.get(f"celery-task-meta-{job}")
    client.set("lock", "a", nx=True, px=5000)
    client.set("lock", "b", nx=True)
    client.delete("nothing")
    client.delete("lock")
    client.hset("h", mapping={"a": 1})
    client.hgetall("h")
    client.zadd("z", {"m": 1.5})
    client.incr("counter")
    client.expire("nothing", 5)
    client.xadd("s", {"a": 1})
    client.xgroup_create("s", "g", id="0")
    client.xreadgroup("g", "me", {"s": ">"})
    client.xreadgroup("g", "me", {"s": ">"})
    client.xack("s", "g", "1-1")
    assert said(proxy) == [
        ("SET celery-task-meta-*", YES), ("GET celery-task-meta-*", NO), ("SET lock", YES), ("SET lock", NO),
        ("DEL nothing", NO), ("DEL lock", YES), ("HSET h", YES), ("HGETALL h", NO), ("ZADD z", YES),
        ("INCRBY counter", YES), ("EXPIRE nothing", NO), ("XADD s", YES), ("XGROUP CREATE s", YES),
        ("XREADGROUP s", YES), ("XREADGROUP s", NO), ("XACK s", NO),
    ]  # fmt: skip
    ttls = [unit.info["ttl"] for unit in proxy.units() if "ttl" in unit.info]
    assert ttls[:2] == [((f"celery-task-meta-{job}".encode(), 100.0),), ((b"lock", 5.0),)]


def test_blocking_pops_are_changes_when_they_get_something(client, proxy):
    client.lpush("q", "a", "b")
    client.brpop(["other", "q"], timeout=1)
    client.blmove("q", "working", timeout=1)
    client.brpop("q", timeout=0.01)
    client.lpop("q")
    assert said(proxy) == [
        ("LPUSH q", YES), ("BRPOP other,q", YES), ("BLMOVE q", YES), ("BRPOP q", NO), ("LPOP q", NO),
    ]  # fmt: skip


def test_pipelines_transactions_and_watches(client, proxy):
    with client.pipeline(transaction=False) as pipe:
        for number in range(300):
            pipe.set(f"k:{number}", number)
            pipe.get(f"k:{number}")
        assert pipe.execute()[-1] == b"299"
    with client.pipeline() as pipe:
        pipe.zadd("unacked_index", {"a": 1})
        pipe.hset("unacked", "a", "b")
        pipe.execute()
    with client.pipeline() as pipe:
        pipe.watch("k:1")
        pipe.multi()
        pipe.get("k:1")
        pipe.execute()
    with client.pipeline() as pipe:
        pipe.watch("k:1")
        client.set("k:1", "changed")
        pipe.multi()
        pipe.set("k:2", "x")
        with pytest.raises(redis.WatchError):
            pipe.execute()
    with client.pipeline() as pipe:
        pipe.set("k:2", "x")
        pipe.execute_command("NOSUCH")
        with pytest.raises(redis.ResponseError):
            pipe.execute()
    changed = [entry for entry in said(proxy) if entry[0] not in ("SET k:*", "GET k:*", "UNWATCH")]
    assert changed == [
        ("MULTI", NO), ("ZADD unacked_index", PENDING), ("HSET unacked", PENDING),
        ("EXEC(ZADD unacked_index, HSET unacked)", YES),
        ("WATCH k:*", NO), ("MULTI", NO), ("EXEC(GET k:*)", NO),
        ("WATCH k:*", NO), ("MULTI", NO), ("EXEC(SET k:*)", NO),
        ("MULTI", NO), ("NOSUCH", NO), ("EXEC(SET k:*, NOSUCH)", NO),
    ]  # fmt: skip
    queued = [unit for unit in proxy.units() if unit.info.get("queued")]
    assert {unit.change for unit in queued if unit.shape.startswith("redis SET")} == {PENDING}


def test_scripts_have_one_shape_however_they_are_called(client, proxy):
    script = client.register_script("return redis.call('SET', KEYS[1], ARGV[1])")
    script(keys=["a:1"], args=["enqueue"])
    script(keys=["a:2"], args=["enqueue"])
    client.eval("return redis.call('SET', KEYS[1], ARGV[1])", 1, "a:3", "enqueue")
    with pytest.raises(redis.ResponseError):
        client.eval("redis.call('SET', KEYS[1], 1) return redis.call('NOSUCH')", 1, "b")
    with client.lock("invoice:17", timeout=5):
        pass
    shapes = said(proxy)
    by_sha = script.sha[:6]
    assert [entry for entry in shapes if f"EVAL {by_sha}" in entry[0]][-3:] == [(f"EVAL {by_sha} a:* enqueue", YES)] * 3
    assert ("SCRIPT LOAD", NO) in shapes
    assert [truth for shape, truth in shapes if shape.endswith(" b")] == [MAYBE]
    assert ("SET invoice:*", YES) in shapes
    assert shapes[-1][0].endswith("invoice:*")
    assert shapes[-1][1] is YES


def test_pubsub_messages_are_pushed(client, proxy, world):
    with client.pubsub() as pubsub:
        pubsub.subscribe("news", "jobs")
        pubsub.psubscribe("re:*")
        for _ in range(3):
            assert pubsub.get_message(timeout=5)["type"].endswith("subscribe")
        client.publish("news", "hello")
        assert pubsub.get_message(timeout=5)["data"] == b"hello"
        pubsub.ping()
        pubsub.unsubscribe("news")
        pubsub.get_message(timeout=5)
        pubsub.get_message(timeout=5)
    assert client.publish("nobody", "x") == 0
    pushed = [unit for unit in proxy.units("server") if unit.kind is Kind.PUSH]
    assert "redis message news" in [unit.shape for unit in pushed]
    assert ("PUBLISH news", YES) in said(proxy)
    assert ("PUBLISH nobody", NO) in said(proxy)
    assert ("SUBSCRIBE jobs,news", NO) in said(proxy) or ("SUBSCRIBE news,jobs", NO) in said(proxy)


def test_the_async_client(proxy):
    async def main() -> None:
        async with redis.asyncio.Redis(port=proxy.port, protocol=3) as client:
            await asyncio.gather(*(client.rpush("q", number) for number in range(50)))
            assert await client.llen("q") == 50
            async with client.pipeline() as pipe:
                await pipe.lpop("q").lpop("q").execute()

    asyncio.run(main())
    assert proxy.changes().count("redis RPUSH q") == 50
    assert proxy.changes().count("redis EXEC(LPOP q)") == 1


def test_large_values_pass_whole(client, proxy):
    value = bytes(range(256)) * 40_000
    client.set("big", value)
    assert client.get("big") == value
    client.rpush("list", *(b"x" * 1000 for _ in range(8000)))
    assert len(client.lrange("list", 0, -1)) == 8000
    assert said(proxy) == [("SET big", YES), ("GET big", NO), ("RPUSH list", YES), ("LRANGE list", NO)]


def test_connection_chatter_is_control(server, proxy):
    with redis.Redis(port=proxy.port, db=3, client_name="me", protocol=3) as client:
        client.ping()
        client.client_list()
    assert said(proxy) == []
    assert {unit.kind for unit in proxy.units()} == {Kind.CONTROL}
