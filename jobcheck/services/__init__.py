"""Brokers and databases: given by URL, found on this machine, or from a wheel."""

from __future__ import annotations

from pathlib import Path

from ..errors import UsageError
from ..workers.guardian import Guardian
from ..workers.pace import Pace
from ..workers.supervisor import Supervisor
from .base import Environ, Place
from .base import Service as Service
from .spec import Postgres, RabbitMQ, Redis, UpstreamSpec


async def start(
    spec: UpstreamSpec,
    *,
    name: str,
    supervisor: Supervisor,
    guardian: Guardian | None,
    folder: Path,
    environ: Environ,
    root: Path | None = None,
    seal: str = "",
    pace: Pace | None = None,
) -> Service:
    """Takes the server that `spec` gives by URL, or starts a private one: found on this machine, else from a wheel.

    `name` is the upstream's name in the rig, `folder` gets the log, `environ` are the rig's variables for setup
    commands (or a function of the address that they are to name), `root` is the folder that those run in, `seal` is
    what they depend on besides their files, `pace` the faster clock that a private server is to live by.
    Raises ServiceError when there is none or it does not start, UsageError when its host is not allowed.
    """
    place = Place(name, supervisor, guardian, folder, environ, root or Path.cwd(), seal, pace=pace)
    if isinstance(spec, Redis):
        from . import redis_server

        return await redis_server.start(spec, place)
    if isinstance(spec, Postgres):
        from . import postgres_server

        return await postgres_server.start(spec, place)
    if isinstance(spec, RabbitMQ):
        from . import rabbitmq_server

        return await rabbitmq_server.start(spec, place)
    raise UsageError(f"{name}: expected a broker or database, got {type(spec).__name__}")
