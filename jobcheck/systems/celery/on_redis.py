"""Celery on Redis. Facts from `delivery-matrix.md` section 3 and from kombu's Redis transport (5.3 to 5.7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ...services.spec import Address
from ...wire.unit import Unit
from ..contract import AgentCall, Blame, Broker, Settings
from . import waiting
from .calls import RECOVER
from .redis_dialect import RedisDialect

ADVICE = (
    "no setting of Celery on Redis closes this gap: kombu takes a message out of its queue before it writes it to "
    "`unacked`; use RabbitMQ, or reconcile: enqueue again what has no effect after a while"
)

PERSIST = "the broker forgot jobs that it had acknowledged: turn on its append-only file (appendonly yes)"


class OnRedis:
    """Lists of messages, and `unacked` for those that are out."""

    name = "celery-redis"
    preload: tuple[str, ...] = ("kombu.transport.redis",)
    lease_owner = "the workers (a score that they write and compare)"

    def dialect(self) -> RedisDialect:
        return RedisDialect()

    def lease(self, told: dict[str, object]) -> float:
        return float(cast(float, told["visibility_timeout"]))

    def sweep(self, told: dict[str, object]) -> float:
        """A worker looks when it starts, and then every tenth time of once in 10 s, unless the app says otherwise."""
        return float(cast(float, told["sweep"]))

    def limits(self, told: dict[str, object]) -> dict[str, float]:
        return {"visibility_timeout": self.lease(told)}

    async def depth(self, broker: Broker, address: Address, settings: Settings) -> int:
        from ...services.clients import redis_client

        async with redis_client(address) as client:
            pipe = client.pipeline(transaction=False)
            for key in waiting.lists(settings):
                pipe.llen(key)
            pipe.hlen(waiting.prefix(settings) + "unacked")
            return sum(await pipe.execute())

    async def rewind(self, address: Address, held: Sequence[str], settings: Settings, call: AgentCall, app: str) -> str:
        if not held:
            return ""
        from ...services.clients import redis_client

        async with redis_client(address) as client:
            for tag in held:
                await client.zadd(waiting.prefix(settings) + "unacked_index", {tag: 1}, xx=True)
        await call(RECOVER, "restore", app=app, tags=list(held))
        return f"lease of {len(held)} delivery rewound (ZADD unacked_index 1), then kombu's own restore"

    async def duplicate(self, address: Address, delivery: Unit, call: AgentCall, app: str, *, next_up: bool) -> None:
        """The same JSON in the same list: what a repeated LPUSH of a producer and an expired lease leave behind."""
        queue, message = delivery.info["value"]
        from ...services.clients import redis_client

        async with redis_client(address) as client:
            # Workers take from the right end.
            await (client.rpush(queue, message) if next_up else client.lpush(queue, message))

    async def halt(self, address: Address, settings: Settings, call: AgentCall, app: str) -> None:
        """A BRPOP that waits is ended as its time-out would end it; the caller holds the next one."""
        await waiting.unblock(address)

    async def go_on(
        self, address: Address, settings: Settings, call: AgentCall, jobs: Sequence[str], kept: Sequence[str]
    ) -> None:
        await waiting.arrange(address, settings, jobs, kept)

    async def put_back(self, address: Address, settings: Settings, call: AgentCall, jobs: Sequence[str]) -> None:
        await waiting.put_back(address, settings, jobs)

    def blame_storage(self, durable: bool, settings: Settings) -> Blame:
        """A server that keeps what it has can still have given the job out in an answer that nobody got."""
        return Blame("transport", ADVICE) if durable else Blame("settings", PERSIST)

    def blame_publish(self, settings: Settings) -> Blame:
        """Redis answers an LPUSH, so the task was told."""
        return Blame("handler")

    def blame_loss(self, passed: Sequence[str], settings: Settings) -> Blame:
        """A job is out of the queue and nowhere else from the BRPOP reply until the reservation is written."""
        if "reserve" not in passed:
            return Blame("transport", ADVICE)
        if settings.guarantee == "at-most-once":
            return Blame("settings", settings.mend)
        return Blame("handler") if "ack" in passed else Blame("transport", ADVICE)
