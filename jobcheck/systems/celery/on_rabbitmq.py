"""Celery on RabbitMQ. A dead worker's deliveries are back in their queue as soon as its connection is gone."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from ...services.spec import Address
from ...wire.unit import Unit
from ..contract import AgentCall, Blame, Broker, Settings
from .amqp_dialect import AmqpDialect
from .calls import RECOVER

CONFIRM = (
    "RabbitMQ had not stored jobs that Celery took for enqueued: let it confirm each one, "
    "broker_transport_options={'confirm_publish': True}"
)


CONSUMER_TIMEOUT = 1800.0
"""Seconds: RabbitMQ's own default. It closes the channel of a consumer that keeps a delivery for longer."""

FORGOT = "RabbitMQ had confirmed this job, and has it no more: look at its queues (durable?) and policies"


class OnRabbitMQ:
    """Queues whose messages stay until they are acknowledged."""

    name = "celery-rabbitmq"
    preload: tuple[str, ...] = ("kombu.transport.pyamqp", "amqp")
    lease_owner = "the broker (consumer_timeout, and times to live of messages)"

    def dialect(self) -> AmqpDialect:
        return AmqpDialect()

    def lease(self, told: dict[str, object]) -> float:
        return 0.0

    def sweep(self, told: dict[str, object]) -> float:
        return 0.0

    def limits(self, told: dict[str, object]) -> dict[str, float]:
        return {"consumer_timeout": CONSUMER_TIMEOUT}

    async def depth(self, broker: Broker, address: Address, settings: Settings) -> int:
        """Ready and unacknowledged, in all queues that are not a worker's own."""
        return sum(queue.ready + queue.unacked for queue in await broker.depth(address) if not queue.exclusive)

    async def rewind(self, address: Address, held: Sequence[str], settings: Settings, call: AgentCall, app: str) -> str:
        return "RabbitMQ gives the delivery out again: the connection is gone" if held else ""

    async def duplicate(self, address: Address, delivery: Unit, call: AgentCall, app: str, *, next_up: bool) -> None:
        """The same body and properties published to the same queue again. There is no way to put it first."""
        info = delivery.info
        await call(
            RECOVER,
            "publish_again",
            app=app,
            queue=str(info["routing_key"]),
            body=base64.b64encode(bytes(info["body"])).decode(),
            properties=plain(info["properties"]),
        )

    async def halt(self, address: Address, settings: Settings, call: AgentCall, app: str) -> None:
        """A consumer before all others: RabbitMQ gives every job to it, and not to the workers."""
        await call(RECOVER, "stand_before", app=app, queues=list(settings.queues))

    async def go_on(
        self, address: Address, settings: Settings, call: AgentCall, jobs: Sequence[str], kept: Sequence[str]
    ) -> None:
        """What it has is published again in this order, and acknowledged. What is kept stays unacknowledged."""
        await call(RECOVER, "stand_aside", jobs=list(jobs), kept=list(kept))

    async def put_back(self, address: Address, settings: Settings, call: AgentCall, jobs: Sequence[str]) -> None:
        """Rejected: RabbitMQ puts it at the head of its queue."""
        await call(RECOVER, "give_back", jobs=list(jobs))

    def blame_storage(self, durable: bool, settings: Settings) -> Blame:
        return Blame("transport", FORGOT) if settings.values.get("confirm_publish") else Blame("settings", CONFIRM)

    def blame_publish(self, settings: Settings) -> Blame:
        """Nobody answers a publish unless confirms are asked for: the task takes the job for enqueued."""
        return Blame("handler") if settings.values.get("confirm_publish") else Blame("settings", CONFIRM)

    def blame_loss(self, passed: Sequence[str], settings: Settings) -> Blame:
        if "ack" not in passed:
            return Blame("transport", "RabbitMQ should have given this job out again: look at its queues and policies")
        if settings.guarantee == "at-most-once":
            return Blame("settings", settings.mend)
        return Blame("handler")


def plain(value: object) -> object:
    """A JSON value of AMQP properties."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
