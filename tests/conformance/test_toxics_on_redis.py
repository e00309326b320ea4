"""Toxics on a real Redis server and client, with the protocol decoded on the way: what a worker meets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry
from toxic_world import ENGINES

from jobcheck.clock import REAL
from jobcheck.faults.toxics import Bandwidth, Down, Latency, LimitData, ResetPeer, Slicer, Stream, Timeout
from jobcheck.network.engine import ToxicEngine
from jobcheck.network.toxiproxy import ToxiproxyEngine
from jobcheck.seeds import Seeds, token
from jobcheck.services import start as start_service
from jobcheck.services.spec import Redis
from jobcheck.tap.listener import Slot
from jobcheck.tap.sight import OUT, Trace
from jobcheck.tap.toxic_engine import EmbeddedToxics
from jobcheck.wire.registry import decoder_for
from jobcheck.workers.supervisor import Supervisor, Worker


class Client:
    """The synchronous client, in a thread: the asynchronous one leaves transports behind when its network breaks."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    async def work(self, job: Callable[[redis.Redis], Any]) -> Any:
        return await asyncio.to_thread(job, self._client)

    async def get(self, key: str) -> Any:
        return await self.work(lambda client: client.get(key))

    async def set(self, key: str, value: str) -> Any:
        return await self.work(lambda client: client.set(key, value))

    async def ping(self) -> Any:
        return await self.work(lambda client: client.ping())


Body = Callable[[ToxicEngine, Slot, Client], Awaitable[None]]


def worker_like(kind: str, folder: Path, body: Body) -> None:
    """A client of Redis through a tap; the real engine's proxy stands between tap and server."""

    async def main() -> None:
        supervisor = Supervisor(f"toxics-{token()}", folder)
        service = await start_service(
            Redis(), name="broker", supervisor=supervisor, guardian=None, folder=folder, environ={}
        )
        address = await service.namespace("lane")
        engine: ToxicEngine
        target = (address.host, address.port)
        slot = Slot("w1", Trace(REAL))
        if kind == "embedded":
            engine = embedded = EmbeddedToxics(Seeds(1))
        else:
            engine = ToxiproxyEngine[Worker](supervisor)
            await engine.start()
            target = await engine.proxy("broker", *target)
        port = await slot.tap("broker", target, lambda: decoder_for("redis"))
        if kind == "embedded":
            await embedded.attach(slot)
        connection = redis.Redis(
            port=port, db=int(address.path), decode_responses=True, socket_timeout=20, retry=Retry(NoBackoff(), 0)
        )
        client = Client(connection)
        try:
            await body(engine, slot, client)
            await engine.reset()
            assert await client.ping()
        finally:
            connection.close()
            await slot.close()
            await engine.close()
            await service.stop()
            await supervisor.close()

    asyncio.run(main())


def some_work(client: redis.Redis) -> list[object]:
    """A bit of what job systems do."""
    with client.pipeline(transaction=True) as pipe:
        pipe.lpush("celery", "x" * 20_000)
        pipe.incrby("jobs", 0)
        pipe.zadd("unacked_index", {"tag": 5})
        answers: list[object] = pipe.execute()
    return [*answers, client.brpop(["celery"], 5), client.zrem("unacked_index", "tag")]


@pytest.mark.parametrize("kind", ENGINES)
def test_a_bad_but_honest_network_changes_no_answer_and_no_message(tmp_path: Path, kind: str) -> None:
    async def body(engine: ToxicEngine, slot: Slot, client: Client) -> None:
        async def once() -> tuple[list[object], list[str]]:
            slot.trace.begin()
            answers = await client.work(some_work)
            return answers, [sight.unit.shape for sight in slot.trace.sights if sight.way == OUT]

        await client.ping()
        clean = await once()
        for stream in Stream:
            await engine.add("broker", Latency(3, jitter=3, stream=stream))
            await engine.add("broker", Slicer(50, 20, stream=stream))
            await engine.add("broker", Bandwidth(2000, stream=stream))
        bad = await once()
        assert bad == clean

    worker_like(kind, tmp_path, body)


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("toxic", [ResetPeer(), LimitData(10), Timeout(50), Down()], ids=lambda one: one.kind)
def test_a_broken_network_is_a_connection_error_and_is_over_when_it_is_healed(
    tmp_path: Path, kind: str, toxic: ResetPeer | LimitData | Timeout | Down
) -> None:
    async def body(engine: ToxicEngine, slot: Slot, client: Client) -> None:
        await client.set("a", "b" * 1000)
        name = await engine.add("broker", toxic)
        with pytest.raises((redis.exceptions.ConnectionError, ConnectionError)):
            await client.get("a")
        await engine.remove("broker", name)
        assert await client.get("a") == "b" * 1000
        assert not slot.in_flight()

    worker_like(kind, tmp_path, body)
