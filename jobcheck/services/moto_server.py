"""moto's server, which answers as AWS does: a process by path, from jobcheck's own cache."""

from __future__ import annotations

import asyncio
import os
import re
import sys

from ..aio import within
from ..errors import ServiceError, WaitTimeout, WorkerError
from ..workers.output import Line
from ..workers.spec import ProcessSpec, ReadyLine
from ..workers.supervisor import Worker
from . import base, wheels
from .base import Place, Service
from .spec import Address

READY_WITHIN = 60.0
"""Seconds: it imports boto's description of all of AWS, 1 s on a quiet machine."""
_RUNNING = re.compile(r"Running on http://[\d.]+:(\d+)")


class MotoService(Service):
    """One moto for all lanes of a run: what they put into it has the ids of their cases."""

    kind = "moto"
    version = wheels.MOTO.version

    def __init__(self, place: Place, worker: Worker, port: int) -> None:
        super().__init__(place, worker)
        self.origin = f"wheel: {wheels.MOTO.title}"
        self.address = Address("http", "127.0.0.1", port)

    async def namespace(self, lane: str) -> Address:
        return self.address

    async def drop(self, lane: str) -> None:
        pass


async def start(place: Place) -> MotoService:
    """Starts it on a free port. Raises ServiceError when it cannot be installed or does not start."""
    program = await wheels.provide(wheels.MOTO)
    home = place.data_folder()
    paths = {"PYTHONPATH": str(program.parent.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    spec = ProcessSpec(
        name=place.name,
        argv=[sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
        # It would ask the real AWS for nothing; without keys it could not anyway.
        env={**base.server_env(home), **paths, "NO_COLOR": "1", "PATH": os.environ.get("PATH", os.defpath)},
        cwd=home,
        ready=ReadyLine(_RUNNING.pattern),
        ready_within=READY_WITHIN,
    )
    worker = await place.supervisor.start(spec)
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def read(line: Line) -> None:
        if (found := _RUNNING.search(line.text)) and not port.done():
            port.set_result(int(found[1]))

    worker.output.subscribe(read)
    for line in list(worker.output.lines):
        read(line)
    try:
        await worker.ready()
        service = MotoService(place, worker, await within(port, READY_WITHIN, "moto's port"))
    except (WorkerError, WaitTimeout) as error:
        await place.supervisor.forget(worker)
        raise ServiceError(f"{place.name}: {wheels.MOTO.title} did not start: {error}") from None
    service._folders = [home]
    return service
