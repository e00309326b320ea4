"""The public names of jobcheck, for rigs and tests. `import jobcheck` loads them lazily."""

from __future__ import annotations

from typing import Any, Protocol

from .checks.contracts import Contract, at_least_once, at_most_once, exactly_once
from .errors import JobcheckError, UsageError
from .marks import mark
from .runner.overlay import django, overlay
from .runner.presets import aws, stripe
from .runner.rig import Files, Rig, Rows, load_rig
from .runner.roles import Process, Workers, scheduler
from .services.spec import Postgres, Provider, RabbitMQ, Redis, Smtp, Webhook
from .systems.registry import celery

__all__ = [
    "Case",
    "Contract",
    "JobcheckError",
    "RabbitMQ",
    "Redis",
    "Rig",
    "UsageError",
    "at_least_once",
    "at_most_once",
    "aws",
    "celery",
    "django",
    "exactly_once",
    "files",
    "load_rig",
    "mark",
    "overlay",
    "postgres",
    "process",
    "provider",
    "rabbitmq",
    "redis",
    "rows",
    "scheduler",
    "smtp",
    "stripe",
    "webhook",
    "worker",
]

redis = Redis
postgres = Postgres
rabbitmq = RabbitMQ
provider = Provider
smtp = Smtp
rows = Rows
process = Process
worker = Workers
webhook = Webhook
files = Files


class Case(Protocol):
    """What an enqueue function gets: one instance of the work under test."""

    id: str
    number: int
    """Unique within a run, and larger than small numbers that occur by chance."""

    @property
    def values(self) -> dict[str, Any]:
        """The workload's own values, as a scenario file names them."""
        ...

    def owns(self, **ids: Any) -> None:
        """Effects in which one of these ids occurs belong to this case."""
        ...

    @property
    def fake(self) -> Any:
        """A Faker with a seed of this case's own (needs the package faker in the app's environment)."""
        ...
