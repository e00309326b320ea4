"""The Celery adapter on Redis. Facts from `delivery-matrix.md` section 3 and from kombu's Redis transport."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...services.spec import Address
from ...wire.unit import Unit
from ..contract import AgentCall, Blame, Dialect, Launch, Settings
from .redis_dialect import RedisDialect

RECOVER = str(Path(__file__).parent / "recover.py")
SAFE = ("task_acks_late=yes", "task_reject_on_worker_lost=yes", "worker_prefetch_multiplier=1")
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
ENDED = re.compile(
    r"Task \S+\[(?P<job>[0-9a-zA-Z-]+)\] (?P<how>succeeded|raised|retry|Retry|received|rejected|ignored)"
)
PRELOAD = (
    "celery.__main__",
    "celery.bin.celery",
    "celery.bin.worker",
    "celery.apps.worker",
    "celery.worker.consumer",
    "celery.worker.components",
    "celery.worker.strategy",
    "celery.concurrency.prefork",
    "celery.concurrency.solo",
    "celery.fixups.django",
    "kombu.transport.redis",
)
TRANSPORT_ADVICE = (
    "no setting of Celery on Redis closes this gap: kombu takes a message out of its queue before it writes it to "
    "`unacked`; use RabbitMQ, or reconcile: enqueue again what has no effect after a while"
)
EARLY_MEND = "set task_acks_late=True, task_reject_on_worker_lost=True and worker_prefetch_multiplier=1"


@dataclass(frozen=True, slots=True)
class Celery:
    """A Celery app: `jobcheck.celery("shop.jobs:app")`.

    `pool` is `prefork` or `solo`; `args` are added to the worker's command line. One job runs at a time, so that every
    message belongs to a known job.
    """

    app: str
    pool: str = "prefork"
    queues: str = ""
    args: tuple[str, ...] = ()
    broker: str = "broker"
    python: str = ""
    name: str = field(default="celery-redis", init=False)

    def __post_init__(self) -> None:
        if self.pool not in ("prefork", "solo"):
            raise UsageError(
                f"expected pool prefork or solo, got {self.pool!r}", hint='jobcheck.celery(..., pool="solo")'
            )

    @property
    def interpreter(self) -> str:
        return self.python or sys.executable

    def launch(self, name: str, *, safe: bool) -> Launch:
        argv = [self.interpreter, "-m", "celery", "-A", self.app, "worker", "-l", "INFO", "-n", f"{name}@jobcheck"]
        argv += ["-P", self.pool, "-c", "1", *QUIET]
        argv += ["-I", "jobcheck_canary"]
        if self.queues:
            argv += ["-Q", self.queues]
        argv += self.args
        if safe:
            argv += ["--", *SAFE]
        return Launch(tuple(argv), r"ready\.", module="celery", preload=(self.app.split(":")[0], *PRELOAD))

    @property
    def path(self) -> tuple[str, ...]:
        return (str(Path(__file__).parent / "inside"),)

    async def enqueue_canary(self, call: AgentCall, key: str) -> None:
        await call(RECOVER, "enqueue_canary", app=self.app, key=key)

    def dialect(self) -> Dialect:
        return RedisDialect()

    async def describe(self, call: AgentCall, *, safe: bool, task: str = "") -> Settings:
        told: dict[str, Any] = await call(RECOVER, "describe", app=self.app)
        late = told["task_acks_late"]
        if task in told["tasks"]:
            late = told["tasks"][task]["acks_late"]
        late = late or safe
        if late:
            says = "late ack: promises at least once"
        else:
            says = f"early ack: promises at most once; a lost job here is what these settings promise; {EARLY_MEND}"
        return Settings(
            guarantee="at-least-once" if late else "at-most-once",
            says=says,
            mend="" if late else EARLY_MEND,
            version=told["version"],
            queues=tuple(self.queues.split(",")) if self.queues else tuple(told["queues"]),
            eager=told["task_always_eager"],
            lease=float(told["visibility_timeout"]),
            values=told,
        )

    async def depth(self, address: Address, settings: Settings) -> int:
        from ...services.clients import redis_client

        prefix = settings.values.get("global_keyprefix", "")
        async with redis_client(address) as client:
            pipe = client.pipeline(transaction=False)
            for queue in settings.queues:
                for step in settings.values.get("priority_steps", [0]):
                    pipe.llen(prefix + (queue if not step else f"{queue}{settings.values['sep']}{step}"))
            pipe.hlen(prefix + "unacked")
            return sum(await pipe.execute())

    async def rewind(self, address: Address, held: Sequence[str], call: AgentCall) -> str:
        if not held:
            return ""
        from ...services.clients import redis_client

        async with redis_client(address) as client:
            for tag in held:
                await client.zadd("unacked_index", {tag: 1}, xx=True)
        await call(RECOVER, "restore", app=self.app, tags=list(held))
        return f"lease of {len(held)} delivery rewound (ZADD unacked_index 1), then kombu's own restore"

    async def duplicate(self, address: Address, delivery: Unit, *, next_up: bool) -> None:
        """The same JSON in the same list: what a repeated LPUSH of a producer and an expired lease leave behind."""
        from ...services.clients import redis_client

        queue, message = delivery.info["value"]
        async with redis_client(address) as client:
            # Workers take from the right end.
            await (client.rpush(queue, message) if next_up else client.lpush(queue, message))

    async def filed(self, address: Address, jobs: Sequence[str]) -> str:
        """Celery files nothing without a result backend: what failed is told by the worker's log alone."""
        return ""

    def ended(self, line: str) -> tuple[str, str] | None:
        found = ENDED.search(line)
        if not found:
            return None
        how = found["how"].lower()
        if how in ("raised", "rejected", "ignored"):
            how = f"failed: {how} " + line[found.end() :].strip(" :")[:200]
        return found["job"], "retrying" if how == "retry" else how

    def blame_loss(self, passed: Sequence[str], coming: str, settings: Settings) -> Blame:
        """On Redis a job is out of the queue and nowhere else from the BRPOP reply until the reservation is written."""
        if "reserve" not in passed:
            return Blame("transport", TRANSPORT_ADVICE)
        if settings.guarantee == "at-most-once":
            return Blame("settings", settings.mend)
        return Blame("handler") if "ack" in passed else Blame("transport", TRANSPORT_ADVICE)
