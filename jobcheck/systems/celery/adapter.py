"""The Celery adapter. What differs between brokers is in `on_redis` and `on_rabbitmq`."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import CaseError, UsageError
from ...services.spec import Address
from ...wire.unit import Unit
from ..contract import ORPHANED, THROWN, AgentCall, Blame, Broker, Dialect, DueTimes, Launch, Reader, Settings, Waiting
from .calls import INSIDE, RECOVER
from .on_rabbitmq import OnRabbitMQ
from .on_redis import OnRedis
from .redis_dialect import ResultsDialect
from .transport import Transport

SAFE = ("task_acks_late=yes", "task_reject_on_worker_lost=yes", "worker_prefetch_multiplier=1")
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
ENDED = re.compile(
    r"Task \S+\[(?P<job>[0-9a-zA-Z-]+)\] (?P<how>succeeded|raised|[rR]etry|rejected|reject|ignored|INTERNAL ERROR)"
)
"""A worker's word on the end of a job, at log level INFO. `received` is none."""
THROWN_AWAY = re.compile(r"\{'lang': '\w+', 'task': '(?P<task>[^']+)', 'id': '(?P<job>[0-9a-zA-Z-]+)'")
"""The headers of a message whose task the worker does not know: Celery prints them when it discards the message."""
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
    *("celery.app.amqp", "celery.app.control", "celery.app.events", "celery.app.log", "celery.app.routes"),
    *("celery.backends.base", "celery.events.dispatcher", "celery.events.receiver"),
    *("celery.worker.autoscale", "celery.worker.consumer.delayed_delivery"),
    *("kombu.matcher", "kombu.mixins", "kombu.pidbox"),
    *("billiard.heap", "billiard.popen_fork", "billiard.sharedctypes", "billiard.synchronize"),
)
"""What a worker imports until it is ready, from the library alone; those that a version has not are left out."""
TRANSPORTS: dict[str, type[OnRedis] | type[OnRabbitMQ]] = {"redis": OnRedis, "rabbitmq": OnRabbitMQ}
"""By kind of the rig's broker."""
USUAL_DELAY = 180
"""Seconds: Celery's `default_retry_delay` where a task has none of its own."""
ORPHAN_MEND = "set task_reject_on_worker_lost=True: without it, Celery acknowledges the job of a child that was killed"
WIPED = (
    "jobs that wait are gone with the queue's storage, whatever the settings; keep in the database what is to be done, "
    "and enqueue again what has no effect after a while"
)
COUNTED = "chord count"
CHORD_ADVICE = (
    "the last part of a chord claims the body for some seconds when it counts itself (Celery 5.7), and a part that is "
    "given out again meanwhile finds the claim of the dead worker, does nothing and is done: the body never comes. No "
    "setting closes this gap; count the parts in the database and enqueue the body from there, or reconcile: enqueue "
    "the body again where it has no effect after a while"
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
    queues: str | Sequence[str] = ""
    """The queues that its workers take from, `"urgent,bulk"` or a list; empty: all that the app declares."""
    args: tuple[str, ...] = ()
    broker: str = "broker"
    python: str = ""
    transport: Transport = field(default_factory=OnRedis, repr=False)
    """Set by the rig, which knows the broker."""
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """Arguments of further workers by role; set by the rig."""

    def __post_init__(self) -> None:
        if self.pool not in ("prefork", "solo"):
            raise UsageError(
                f"expected pool prefork or solo, got {self.pool!r}", hint='jobcheck.celery(..., pool="solo")'
            )

    @property
    def name(self) -> str:
        return self.transport.name

    def on(self, kind: str) -> Celery:
        """The same on the broker that the rig has. Raises UsageError when Celery is not known on it."""
        if kind not in TRANSPORTS:
            raise UsageError(f"expected a broker of kind {' or '.join(TRANSPORTS)} for Celery, got {kind}")
        return replace(self, transport=TRANSPORTS[kind]())

    def beside(self, roles: Mapping[str, Sequence[str]]) -> Celery:
        """The same with these workers beside. Raises UsageError for one that names no queue."""
        for name, args in roles.items():
            if not queues_of(args):
                raise UsageError(
                    f"workers[{name!r}]: expected the queues that they serve (-Q), got {' '.join(args)!r}",
                    hint=f'workers={{"{name}": "-Q {name} -c 2"}}',
                )
        return replace(self, roles={name: tuple(args) for name, args in roles.items()})

    @property
    def named_queues(self) -> tuple[str, ...]:
        """The queues that the user named."""
        names = self.queues.split(",") if isinstance(self.queues, str) else self.queues
        return tuple(name.strip() for name in names if name.strip())

    @property
    def interpreter(self) -> str:
        return self.python or sys.executable

    def launch(self, name: str, *, safe: bool, role: str = "", alone: bool = True) -> Launch:
        argv = [self.interpreter, "-m", "celery", "-A", self.app, "worker", "-l", "INFO", "-n", f"{name}@jobcheck"]
        argv += ["-P", self.pool, "-c", "1", *QUIET]
        argv += ["-I", "jobcheck_canary"]
        elsewhere = [queue for args in self.roles.values() for queue in queues_of(args)]
        if role:
            argv += [*self.roles[role], *(["-c", "1"] if alone else [])]  # the last word on an option counts
        elif self.named_queues:
            argv += ["-Q", ",".join(self.named_queues)]
        elif elsewhere:
            argv += ["-X", ",".join(dict.fromkeys(elsewhere))]
        if not role:
            argv += self.args
        if safe:
            argv += ["--", *SAFE]
        preload = (self.app.split(":")[0], *PRELOAD, *self.transport.preload)
        jobs = (RECOVER, "import_jobs", self.app)
        return Launch(tuple(argv), r"ready\.", at_once=_at_once(argv), module="celery", preload=preload, jobs=jobs)

    def scheduler(self, folder: str, args: Sequence[str]) -> Launch:
        argv = [self.interpreter, "-m", "celery", "-A", self.app, "beat", "-l", "INFO", "--pidfile="]
        return Launch((*argv, "-s", f"{folder}/celerybeat-schedule", *args), r"beat: Starting")

    @property
    def path(self) -> tuple[str, ...]:
        return (INSIDE,)

    async def enqueue_canary(self, call: AgentCall, key: str) -> None:
        queue = self.named_queues[0] if self.named_queues else ""
        await call(RECOVER, "enqueue_canary", app=self.app, key=key, queue=queue)

    @property
    def due_times(self) -> DueTimes:
        return DueTimes("the worker's memory (Celery keeps eta and countdown there)", self.transport.lease_owner)

    def dialect(self) -> Dialect:
        return self.transport.dialect()

    def results(self, kind: str) -> Reader | None:
        return ResultsDialect() if kind == "redis" else None

    async def describe(self, call: AgentCall, *, safe: bool, task: str = "") -> Settings:
        try:
            told: dict[str, Any] = await call(RECOVER, "describe", app=self.app)
        except CaseError as error:
            raise CaseError(
                error.message.replace("describe raised", f"the app {self.app} cannot be loaded:", 1),
                hint="it is imported in the folder of the rig's app, with the rig's env and nothing else of your shell",
            ) from None
        late = told["task_acks_late"]
        if task in told["tasks"]:
            late = told["tasks"][task]["acks_late"]
        late = late or safe
        if late:
            says = "late ack: promises at least once"
        else:
            says = f"early ack: promises at most once; a lost job here is what these settings promise; {EARLY_MEND}"
        beside = [queue for args in self.roles.values() for queue in queues_of(args)]
        delay, total, retries = _retries(task, told["tasks"].get(task, {}))
        return Settings(
            guarantee="at-least-once" if late else "at-most-once",
            says=says,
            mend="" if late else EARLY_MEND,
            version=told["version"],
            queues=tuple(dict.fromkeys((*(self.named_queues or told["queues"]), *beside))),
            eager=told["task_always_eager"],
            lease=self.transport.lease(told),
            sweep=self.transport.sweep(told),
            retry_delay=delay,
            retry_total=total,
            retry_says=retries,
            limits=_limits(told, told["tasks"].get(task, {}), self.transport.limits(told) if late else {}),
            values=told,
        )

    async def depth(self, broker: Broker, address: Address, settings: Settings) -> int:
        return await self.transport.depth(broker, address, settings)

    async def rewind(self, address: Address, held: Sequence[str], settings: Settings, call: AgentCall) -> str:
        return await self.transport.rewind(address, held, settings, call, self.app)

    async def duplicate(self, address: Address, delivery: Unit, call: AgentCall, *, next_up: bool) -> None:
        await self.transport.duplicate(address, delivery, call, self.app, next_up=next_up)

    async def reorder(self, call: AgentCall, settings: Settings, jobs: Sequence[str]) -> None:
        await call(RECOVER, "reorder", app=self.app, queues=list(settings.queues), jobs=list(jobs))

    async def halt(self, address: Address, call: AgentCall, settings: Settings) -> None:
        await self.transport.halt(address, settings, call, self.app)

    async def go_on(
        self, address: Address, call: AgentCall, settings: Settings, jobs: Sequence[str], kept: Sequence[str]
    ) -> None:
        await self.transport.go_on(address, settings, call, jobs, kept)

    async def put_back(self, address: Address, call: AgentCall, settings: Settings, jobs: Sequence[str]) -> None:
        await self.transport.put_back(address, settings, call, jobs)

    async def take_all(self, call: AgentCall, settings: Settings) -> list[Waiting]:
        told: list[dict[str, str]] = await call(RECOVER, "take_all", app=self.app, queues=list(settings.queues))
        return [Waiting(one["id"], one["task"], one["arguments"]) for one in told]

    async def filed(self, address: Address, jobs: Sequence[str]) -> str:
        """Celery files nothing without a result backend: what failed is told by the worker's log alone."""
        return ""

    def ended(self, line: str) -> tuple[str, str] | None:
        if thrown := THROWN_AWAY.match(line):
            return thrown["job"], f"{THROWN}unregistered task {thrown['task']}"
        found = ENDED.search(line)
        if not found:
            return None
        how = found["how"].lower()
        if how not in ("succeeded", "retry"):
            how = f"failed: {how} " + line[found.end() :].strip(" :")[:200]
        return found["job"], "retrying" if how == "retry" else how

    def blame_storage(self, how: str, durable: bool, settings: Settings) -> Blame:
        return Blame("transport", WIPED) if how == "wipe" else self.transport.blame_storage(durable, settings)

    def blame_publish(self, settings: Settings) -> Blame:
        return self.transport.blame_publish(settings)

    def blame_loss(self, passed: Sequence[str], coming: str, settings: Settings) -> Blame:
        if ORPHANED in passed:  # with task_reject_on_worker_lost it would have been put back
            return Blame("settings", settings.mend or ORPHAN_MEND)
        if COUNTED in passed and settings.guarantee != "at-most-once":
            return Blame("transport", CHORD_ADVICE)
        return self.transport.blame_loss(passed, settings)


def queues_of(args: Sequence[str]) -> tuple[str, ...]:
    """The queues that a worker's arguments name: `-Q a,b`, `-Qa`, `--queues=a`."""
    found = ""
    for at, word in enumerate(args):
        if word in ("-Q", "--queues"):
            found = args[at + 1] if at + 1 < len(args) else ""
        elif word.startswith("--queues="):
            found = word.partition("=")[2]
        elif word.startswith("-Q"):
            found = word[2:]
    return tuple(name.strip() for name in found.split(",") if name.strip())


def _at_once(argv: Sequence[str]) -> int:
    """The last word on `-c`: the adapter's own says 1."""
    found = 1
    for at, word in enumerate(argv):
        given = argv[at + 1] if word in ("-c", "--concurrency") and at + 1 < len(argv) else ""
        given = given or (word.partition("=")[2] if word.startswith("--concurrency=") else "")
        given = given or (word[2:] if word.startswith("-c") and word[2:].isdigit() else "")
        found = int(given) if given.isdigit() else found
    return max(found, 1)


def _limits(told: Mapping[str, Any], task: Mapping[str, Any], broker: Mapping[str, float]) -> dict[str, float]:
    """A task's own limit goes before the app's. A broker gives a job that is acknowledged late out again."""
    found = {
        "task_soft_time_limit": task.get("soft_time_limit") or told.get("task_soft_time_limit") or 0,
        "task_time_limit": task.get("time_limit") or told.get("task_time_limit") or 0,
    }
    return {name: float(seconds) for name, seconds in {**found, **broker}.items() if seconds}


def _retries(task: str, told: Mapping[str, Any]) -> tuple[float, float, str]:
    """Seconds until the first retry, those of all retries, and a sentence, where the task is made to retry; whether a
    task that retries by `self.retry()` alone does so is not known, unless it has a delay of its own."""
    backoff, delay = told.get("retry_backoff", 0), told.get("default_retry_delay", USUAL_DELAY)
    most = told.get("max_retries") or 0
    if told.get("autoretry") and backoff:
        total = sum(min(backoff * 2**at, told.get("retry_backoff_max", 600)) for at in range(most))
        return float(backoff), float(total), f"{task} retries after {backoff:g} s and more (retry_backoff)"
    if told.get("autoretry") or delay != USUAL_DELAY:
        return float(delay), float(delay * most), f"{task} retries after {delay:g} s (default_retry_delay)"
    return 0.0, 0.0, ""
