"""A Toxiproxy server: found on this machine and started on a free port, or given by its address."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from ..errors import ServiceError, UsageError, WorkerError
from ..seeds import token
from ..workers.spec import ProcessSpec, ReadyPort
from .toxiproxy_api import ToxiproxyApi

PROGRAM = "toxiproxy-server"
VERSION = "2.12.0"
"""What the conformance suite is run with."""
GET_IT = (
    f"go install -ldflags '-X github.com/Shopify/toxiproxy/v2.Version={VERSION}' "
    f"github.com/Shopify/toxiproxy/v2/cmd/server@v{VERSION}, and put $(go env GOPATH)/bin/server on PATH as {PROGRAM}; "
    "or give the url of a server that runs; or take the embedded engine, which has the same toxics"
)
READY_WITHIN = 20.0
"""Seconds."""
PORT_TRIES = 5
SHOWN_LINES = 8
"""Lines of the server's output that an error shows."""


class Output(Protocol):
    """What a process wrote."""

    def tail(self, count: int, /) -> list[str]: ...


class Process(Protocol):
    """What is needed of `workers.supervisor.Worker`."""

    @property
    def alive(self) -> bool: ...
    @property
    def output(self) -> Output: ...
    async def ready(self) -> None: ...
    def how_it_ended(self) -> str: ...


P = TypeVar("P", bound=Process)


class Starter(Protocol[P]):
    """What is needed of `workers.supervisor.Supervisor`. (The network drivers do not import those of processes.)"""

    async def start(self, spec: ProcessSpec) -> P: ...
    async def forget(self, worker: P) -> None: ...


def find_server() -> Path | None:
    """The server program on PATH."""
    found = shutil.which(PROGRAM)
    return Path(found).absolute() if found else None


def given(url: str) -> ToxiproxyApi:
    """The API of a server that runs already. Raises UsageError for a url that cannot be used.

    It must be on this machine: the addresses that it listens on are handed to workers here.
    """
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(f"toxiproxy: expected a url like http://127.0.0.1:8474, got {url!r}")
    try:
        local = ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:
        local = parts.hostname == "localhost"
    if not local:
        raise UsageError(
            f"toxiproxy: expected a server on this machine, got {url!r}",
            hint="its proxies must be reachable on 127.0.0.1; leave the url out to start a private server",
        )
    return ToxiproxyApi(parts.hostname, parts.port or 8474)


async def launch(starter: Starter[P] | None, program: Path | None) -> tuple[P, ToxiproxyApi]:
    """Starts `program`, or the one on PATH, on a free port of 127.0.0.1. Raises ServiceError with how to get it."""
    program = program or find_server()
    if program is None:
        raise ServiceError(f"expected the program {PROGRAM} on PATH, and there is none", hint=GET_IT)
    if starter is None:
        raise ServiceError("expected a supervisor to start the Toxiproxy server with, or the url of one that runs")
    for _ in range(PORT_TRIES):
        if (started := await _try(starter, program, _free_port())) is not None:
            return started
    raise ServiceError(f"{program}: found no free port in {PORT_TRIES} tries")


async def _try(starter: Starter[P], program: Path, port: int) -> tuple[P, ToxiproxyApi] | None:
    """None when somebody else took the port.

    The server goes on living when it cannot listen, and whoever has the port may be another Toxiproxy. So ours is
    given a proxy with a name that nobody knows, and must show it.
    """
    secret = f"jobcheck-{token(16)}"
    api = ToxiproxyApi("127.0.0.1", port)
    with tempfile.NamedTemporaryFile("w", prefix="jobcheck-toxiproxy-", suffix=".json") as config:
        json.dump([{"name": secret, "listen": "127.0.0.1:0", "upstream": "127.0.0.1:1", "enabled": False}], config)
        config.flush()
        spec = ProcessSpec(
            name=f"{PROGRAM}-{port}",
            argv=[str(program), "-host", "127.0.0.1", "-port", str(port), "-config", config.name],
            env={"LOG_LEVEL": "info"},
            cwd=Path(tempfile.gettempdir()),
            ready=ReadyPort("127.0.0.1", port),
            ready_within=READY_WITHIN,
        )
        try:
            process = await starter.start(spec)
        except WorkerError as error:
            raise ServiceError(error.message, hint=GET_IT) from None
        ours = False
        try:
            await process.ready()
            ours = secret in await asyncio.to_thread(api.proxies)
        except (WorkerError, ServiceError) as error:
            # What answers there may be no Toxiproxy at all: as long as ours lives and does not listen, another port.
            if not process.alive or not _could_not_listen(process):
                raise ServiceError(f"{program}: {error.message}") from None
        finally:
            if not ours:
                await starter.forget(process)
    if not ours:
        return None
    await asyncio.to_thread(api.delete, secret)
    return process, api


def last_lines(process: Process) -> str:
    """The end of the server's output, for an error."""
    lines = process.output.tail(SHOWN_LINES)
    return "its last lines:\n    " + "\n    ".join(lines) if lines else "it wrote nothing"


def _could_not_listen(process: Process) -> bool:
    return any("address already in use" in line for line in process.output.tail(SHOWN_LINES))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
