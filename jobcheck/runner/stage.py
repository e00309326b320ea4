"""The stage: what one run shares - its folder, guardian, supervisor and private services."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from .. import seeds
from ..clock import REAL, Clock, FasterClock, span
from ..effects.aws import Aws
from ..effects.backend import Backend
from ..effects.forward import Forward
from ..effects.stripe import Stripe
from ..errors import ServiceError, UsageError
from ..events import Bus, ServiceStarted
from ..services import Service, find, moto_server
from ..services import start as start_service
from ..services.base import Place, allowed, is_loopback
from ..services.redis_server import RedisService
from ..services.spec import Address, Postgres, Provider, RabbitMQ, Redis, Smtp, secured, wants_tls
from ..store.redact import USUAL, Redaction, Redactor
from ..tap.authority import ALPN, Authority
from ..tap.listener import Slot
from ..tap.refuse import RefusingProxy
from ..tap.sight import Trace
from ..wire.registry import decoder_for
from ..workers import clock_pages, platform
from ..workers.env import scrubbed
from ..workers.guardian import Guardian
from ..workers.pace import Pace, pace
from ..workers.supervisor import Supervisor
from . import presets
from .rig import Rig
from .surroundings import PRELOAD, surroundings

SCHEMES = {"redis": "redis", "postgres": "postgresql", "rabbitmq": "amqp", "provider": "http", "smtp": "smtp"}
LONGEST_TEMPORARY = 60
"""Bytes: a Unix socket's path has at most 104, and ours add up to 40."""
STOP_GRACE = 10.0
"""Seconds from SIGTERM until SIGKILL, as Docker gives them. (Celery 5.7 on Redis does not come to its end now and then
when it is told in the middle of a job: 2 of 30 times on a busy machine, without jobcheck.)"""
DEADLINE = 30.0
"""Seconds of real time, whatever the job's clock, until a job that has not ended is called hung, and a worker that is
not ready is given up."""
DISCARD_PORT = 9
"""Where nobody listens: the address of an upstream that is not there yet."""


class Stage:
    """Everything of a run that must not outlive it. Use as an async context manager."""

    def __init__(
        self,
        *,
        seed: int,
        bus: Bus,
        logs: Path,
        clock: Clock = REAL,
        deadline: float = DEADLINE,
        redaction: Redaction = USUAL,
        speed: float = 1.0,
        real_clocks: bool = False,
    ) -> None:
        self.run_id = seeds.token(12)
        self.seeds = seeds.Seeds(seed)
        self.bus = bus
        self.clock = clock
        self.asked = speed
        """How many times as fast the app is to live."""
        self.kept = ""
        """Why it lives in real time nevertheless."""
        self.told: tuple[str, ...] = ()
        """What a report says of the clock, once it was agreed upon (`clocks.agree`)."""
        self.pace: Pace | None = None
        """The faster clock of the app's processes, where they have one."""
        self.job_clock: Clock = FasterClock(clock, speed) if speed != 1.0 else clock
        """The clock that they live by."""
        self.real_clocks = real_clocks
        """Leases run out by themselves; nothing is rewound."""
        if speed != 1.0:
            try:
                self.pace = pace(speed, clock, find.faketime())
            except ServiceError as error:
                self.in_real_time(f"{error.message}; {error.hint}")
        self.deadline = deadline
        self.began = clock.now()
        self.numbers = itertools.count()
        """Of the lanes."""
        self.logs = logs
        self.host = platform.loopback(int(self.run_id, 16))
        """Where the taps of this run listen."""
        self.ports = platform.own_ports(int(self.run_id, 16))
        """For the app's own processes: no tap of this run is given one of these before they listen."""
        self.redactor = Redactor(seeds.token(32).encode(), redaction)
        self.folder = _temporary() / f"jobcheck-{self.run_id}"
        self.guardian = Guardian.start(self.run_id)
        self.guardian.watch_folder(self.folder)  # before it is there: we may be killed at any moment
        self.folder.mkdir()
        self.folder.chmod(0o755)  # a private Postgres runs as another user where the harness is root
        self.supervisor = Supervisor(self.run_id, logs, self.guardian)
        self.proxy = RefusingProxy(self.host)
        self._authority: Authority | None = None
        self._doors: list[Slot] = []
        self._services: dict[tuple[str, object], Service] = {}
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Stage:
        try:
            await self.proxy.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Where a server died by itself, that is the error, whatever it led to."""
        dead = await self._dead() if isinstance(error, Exception) and not isinstance(error, UsageError) else None
        await self.close()
        if dead is not None:
            raise dead from error

    async def _dead(self) -> ServiceError | None:
        await asyncio.sleep(0.05)  # a broken connection is seen before the end of the process that broke it
        for service in self._services.values():
            try:
                service.check()
            except ServiceError as error:
                return error
        return None

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """The scrubbed environment of a process of this run: never the developer's."""
        home, temporary = self.folder / "home", self.folder / "tmp"
        for folder in (home, temporary):
            folder.mkdir(exist_ok=True)
        # A killed worker cannot remove its temporary files (each of Celery's has a folder): they go with ours.
        own = {"HOME": str(home), "TMPDIR": str(temporary), "JOBCHECK_RUN": self.run_id}
        return scrubbed({**own, **self.proxy.environment(), **extra})

    @property
    def authority(self) -> Authority:
        """Signs the certificates of the taps; made when a rig first asks for TLS. Raises UsageError without trustme."""
        if self._authority is None:
            self._authority = Authority(self.folder)
        return self._authority

    def in_real_time(self, why: str) -> None:
        """Everything lives in real time. To be called before anything of the app is started."""
        self.kept, self.pace, self.job_clock = why, None, self.clock

    @property
    def speed(self) -> float:
        """How many times as fast the app lives."""
        return self.pace.speed if self.pace is not None else 1.0

    @property
    def clock_words(self) -> str:
        """`100 times as fast (libfaketime)`, or `real time; asked for 100: ...`; empty where nobody asked."""
        if self.kept:
            return f"real time; asked for {self.asked:g}: {self.kept}"
        return f"{self.speed:g} times as fast (libfaketime)" if self.pace is not None else ""

    def patience(self, seconds: float) -> str:
        """`30 s`, and what that is in the job's own time, where that is another one."""
        own = f" ({span(seconds * self.pace.speed)} of the job's own time)" if self.pace is not None else ""
        return f"{seconds:g} s{own}"

    @property
    def hurried(self) -> str:
        """What to try where something of the app did not come in time; empty where it lives in real time."""
        if self.pace is None:
            return ""
        speed = self.pace.speed
        return f"a smaller --speed: a time-out of 10 s is {10 / speed:g} s of real time at speed {speed:g}"

    async def check_pace(self, python: str) -> list[str]:
        """Asks an interpreter of the app whether it follows the faster clock; what of it does not, for the report.

        Raises ServiceError when it does not.
        """
        if self.pace is None:
            return []
        env = self.environment({"PYTHONPATH": str(PRELOAD)})
        return await self.pace.check(python, self.supervisor, env, self.folder)

    async def services(self, rig: Rig, lane: int = 0) -> dict[str, Service]:
        """The rig's brokers and databases, each started once per run, whichever lane asks first.

        A Redis whose database numbers the app chooses by itself cannot be shared: each lane has its own.
        """
        async with self._starting:
            return await self._started(rig, lane)

    async def _started(self, rig: Rig, lane: int) -> dict[str, Service]:
        found: dict[str, Service] = {}
        for name, spec in rig.upstreams.items():
            if isinstance(spec, Provider | Smtp):
                continue
            assert isinstance(spec, Redis | Postgres | RabbitMQ)
            alone = isinstance(spec, Redis) and rig.picks_its_number(name)
            if alone and spec.url:
                raise UsageError(
                    f"the app chooses the database numbers of {name} by itself, so jobcheck cannot keep to an empty "
                    f"one on {spec.url}",
                    hint=f"give it the number too ({{{name}.name}} or {{{name}.url}}), or leave the url out for a "
                    "private server",
                )
            key = (name, (_key(spec, rig), lane) if alone else _key(spec, rig))
            if key not in self._services:
                folder = self.folder / f"{name}{len(self._services)}"
                folder.mkdir()
                service = await start_service(
                    spec,
                    name=name,
                    supervisor=self.supervisor,
                    guardian=self.guardian,
                    folder=folder,
                    environ=partial(self._setup_environment, rig, name),
                    root=rig.folder,
                    seal=_seal(rig) if isinstance(spec, Postgres) else "",
                    pace=self.pace,
                )
                if alone and isinstance(service, RedisService):
                    service.alone = True
                self._services[key] = service
                if isinstance(spec, Postgres) and spec.tls:
                    await self._open_door(name, service)
                self.bus.emit(ServiceStarted(name, service.kind, service.version, service.origin))
            found[name] = self._services[key]
        return found

    async def _open_door(self, name: str, service: Service) -> None:
        """A tap for setup commands: migrations run with the app's settings, which insist on TLS as well."""
        slot = Slot(f"setup-{name}", Trace(self.clock), self.host)
        self._doors.append(slot)
        tls = self.authority.context(slot.host, "127.0.0.1", "localhost", protocol=ALPN["postgres"])
        target = (service.address.host, service.address.port)
        port = await slot.tap(name, target, partial(decoder_for, "postgres", tls=True), tls=tls)
        service.place = replace(
            service.place, door=lambda address: secured(replace(address, host=slot.host, port=port))
        )

    async def backend(self, name: str, spec: Provider) -> Backend | None:
        """Who answers for a provider of a lane. Raises UsageError for a mock elsewhere, ServiceError without moto."""
        if spec.upstream:
            address = allowed(spec.upstream, spec.allow_host, name, 443 if spec.upstream.startswith("https") else 80)
            return Forward(address, keep_host=is_loopback(address.host))
        if spec.stand_in == presets.STRIPE:
            return Stripe(name)
        if spec.stand_in == presets.AWS:
            return Aws(Forward(await self._moto(), keep_host=True))
        return None

    async def _moto(self) -> Address:
        async with self._starting:
            key = ("moto", "")
            if key not in self._services:
                place = Place("moto", self.supervisor, self.guardian, self.folder, {})
                service = self._services[key] = await moto_server.start(place)
                self.bus.emit(ServiceStarted("moto", service.kind, service.version, service.origin))
            return self._services[key].address

    def _setup_environment(self, rig: Rig, name: str, address: Address) -> dict[str, str]:
        """For setup commands such as migrations: the rig's variables, with nobody at the other upstreams yet."""
        nobody = {
            other: Address(SCHEMES[spec.kind], "127.0.0.1", DISCARD_PORT) for other, spec in rig.upstreams.items()
        }
        nobody |= {process: Address("http", "127.0.0.1", DISCARD_PORT) for process in rig.others}
        addresses = {**nobody, name: address}
        secure = any(map(wants_tls, rig.upstreams.values()))
        ca = str(self.authority.file) if secure else ""
        mine = self.authority.environment() if secure else {}
        mine |= surroundings(rig, addresses, folder=self.folder, name=f"setup-{name}", ca=ca)
        return self.environment({"PATH": programs_of(rig), **mine})

    async def close(self) -> None:
        """Ends every process of the run, whatever state it is in, and removes its folder."""
        try:
            # The app first: what it would still write is not written to a server that is left as it was found.
            await self.supervisor.close(but=[one.worker for one in self._services.values() if one.worker is not None])
            for service in self._services.values():
                await service.stop()
        finally:
            await self.proxy.close()
            for slot in self._doors:
                await slot.close()
            await self.supervisor.close()
            self.guardian.close()
            if self.pace is not None:
                clock_pages.sweep()
            shutil.rmtree(self.folder, ignore_errors=True)


def programs_of(rig: Rig) -> str:
    """The PATH of the rig's commands: `python manage.py migrate` means the app's Python, whether its environment is
    activated in this shell or not."""
    own = str(Path(rig.system.interpreter).parent)
    return os.pathsep.join(filter(None, [own, os.environ.get("PATH", os.defpath)]))


def _temporary() -> Path:
    """The system's temporary folder, unless its path is too long for the Unix sockets that lie in it."""
    usual = Path(tempfile.gettempdir())
    return usual if len(os.fsencode(usual)) <= LONGEST_TEMPORARY else Path("/tmp")


def _key(spec: object, rig: Rig) -> object:
    """Two rigs share a server when they describe it in the same words; a database also when its setup is the same."""
    return (repr(spec), str(rig.folder) if isinstance(spec, Postgres) else "")


def _seal(rig: Rig) -> str:
    """What a setup depends on besides its files: the rig's variables, and the packages of the app's environment."""
    environment = Path(rig.system.interpreter).absolute().parent.parent
    packages = sorted(path.name for path in environment.glob("lib/python*/site-packages/*.dist-info"))
    env = sorted((name, text) for name, text in rig.env.items() if not name.startswith("JOBCHECK_"))
    return repr((env, rig.overlays, rig.system.interpreter, packages))
