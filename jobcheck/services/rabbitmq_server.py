"""RabbitMQ: a given server, or a private node with its own folders, cookie, ports and port mapper."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode

from pamqp import commands, exceptions, frame

from ..aio import bounded, wait_until
from ..errors import ServiceError, WaitTimeout, WorkerError
from ..seeds import token
from ..workers.spec import ProcessSpec, ReadyLine
from ..workers.supervisor import Worker
from . import base, find, rabbit_clock
from .base import Place, Service
from .rabbit_control import MANAGEMENT_PORT, Control, ManagementControl, NodeControl, QueueDepth, program
from .spec import Address, RabbitMQ

READY_WITHIN = 60.0
"""Seconds: a node boots in 3 to 5 on two cores."""
PORT_TRIES = 3
PORT_IN_USE = ("eaddrinuse", "dist_port_already_used")
"""What a node says whose port somebody else took after it was found free."""
HELLO_WITHIN = 5.0
HANDSHAKE = 10_000
"""Milliseconds: RabbitMQ's own patience with a client that connects. It stays real time on a faster clock, since a
handshake is work, and work is not faster."""
MANAGEMENT_VARIABLE = "management_port"
"""In the query of a given url; it is not handed on to the app."""


class RabbitService(Service):
    """A RabbitMQ server; its namespaces are virtual hosts."""

    kind = "rabbitmq"

    def __init__(
        self,
        place: Place,
        address: Address,
        origin: str,
        control: Control,
        worker: Worker | None = None,
        data: Path | None = None,
    ) -> None:
        super().__init__(place, worker, [data] if data else [])
        self.address = address
        self.origin = origin
        self._control = control
        self._lanes: dict[str, str] = {}
        self._turn = 0
        self._hampered = ""

    @property
    def exact(self) -> bool:
        """Whether `depth` counts this moment; a given server's management API lags behind."""
        return self._control.exact

    async def namespace(self, lane: str) -> Address:
        """A new virtual host for `lane`; the one that it had before is removed. Raises ServiceError."""
        self.check()
        await self.drop(lane)
        # Never the same name twice: connections to a removed virtual host may still be on their way out.
        self._turn += 1
        name = re.sub(r"[^A-Za-z0-9_-]", "_", f"jobcheck_{self.place.supervisor.run_id}_{self.place.name}_{lane}")
        self._lanes[lane] = vhost = f"{name}_{self._turn}"
        await self._control.add(vhost, self.address.user)
        return replace(self.address, path=vhost)

    async def drop(self, lane: str) -> None:
        if vhost := self._lanes.pop(lane, ""):
            await self._control.remove(vhost)

    async def depth(self, address: Address | str) -> list[QueueDepth]:
        """All queues of the virtual host of `address`, exclusive ones too. Raises ServiceError."""
        return await self._control.depths(unquote(address.path) if isinstance(address, Address) else address)

    async def keep(self) -> str:
        return "durable queues and persistent messages, as far as the app asks for them"

    async def hamper(self, how: str) -> None:
        """Read-only by its disk alarm: whoever publishes is blocked. Exhausted by a limit of connections."""
        self._mine()
        await self.relieve()
        self._hampered = how
        if how == "read_only":
            await self._node().alarm(True)
        else:
            for vhost in self._lanes.values():
                await self._node().limit(vhost, True)

    async def relieve(self) -> None:
        how, self._hampered = self._hampered, ""
        if how and not self.down:
            if how == "read_only":
                await self._node().alarm(False)
            else:
                for vhost in self._lanes.values():
                    await self._node().limit(vhost, False)

    def _node(self) -> NodeControl:
        assert isinstance(self._control, NodeControl)
        return self._control

    def _again(self) -> ProcessSpec:
        spec = self._mine().spec
        return replace(spec, env={**spec.env, **rabbit_clock.booting(self.place, self._folders[0])})

    def _erase(self) -> None:
        for folder in self._folders:
            shutil.rmtree(folder / "mnesia", ignore_errors=True)

    async def _gone(self) -> None:
        await self._control.close()

    async def _returned(self, erased: bool) -> None:
        await _listens(self._node(), self._mine())
        await rabbit_clock.quickened(self.place, self._folders[0], self._node())
        how, self._hampered = self._hampered, ""
        for vhost in self._lanes.values():
            if erased:  # the operator's definitions are loaded again; queues and messages are not
                await self._control.add(vhost, self.address.user)
            elif how == "exhaust":
                await self._node().limit(vhost, False)

    async def stop(self) -> None:
        if not self.owned:
            with contextlib.suppress(ServiceError):
                for lane in list(self._lanes):
                    await self.drop(lane)
        await self._control.close()
        await super().stop()


async def start(spec: RabbitMQ, place: Place) -> RabbitService:
    """Takes a given server or starts a node. Raises ServiceError, or UsageError for a url that is not allowed."""
    if spec.url:
        return await _given(spec.url, spec.allow_host, place)
    script = find.rabbitmq_bin()
    if script is None:
        raise ServiceError(
            f"{place.name}: expected RabbitMQ on this machine, and did not find it; there is no wheel of it",
            hint="apt-get install rabbitmq-server, or give a url: jobcheck.rabbitmq(url=...)",
        )
    return await start_node(script, place)


async def _given(url: str, allow_host: str, place: Place) -> RabbitService:
    address = base.plain(base.allowed(url, allow_host, place.name, 5672), place.name)
    query = dict(parse_qsl(address.query))
    port = int(query.pop(MANAGEMENT_VARIABLE, MANAGEMENT_PORT))
    user, password = address.user or "guest", address.password or ("" if address.user else "guest")
    address = replace(address, query=urlencode(query), user=user, password=password)
    try:
        version = await server_version(address)
    except (OSError, TimeoutError, ValueError) as error:
        raise base.no_answer(place.name, address, error) from None
    service = RabbitService(place, address, f"given: {base.shown(address)}", ManagementControl(address, port))
    service.version = version
    return service


@dataclass(frozen=True, slots=True)
class _Ports:
    amqp: int
    distribution: int
    mapper: int
    control: int


async def start_node(script: Path, place: Place, *, plugins: str = "", config: str = "") -> RabbitService:
    """Starts a private node. `plugins` and `config` (Erlang terms, comma separated) are for tests."""
    origin = f"found: {script}"
    for left in reversed(range(PORT_TRIES)):
        data = place.data_folder(in_memory=True)
        ports = _Ports(*(base.free_port() for _ in range(4)))
        secret = token(32)
        speed = place.pace.speed if place.pace is not None else 1.0
        _write_files(data, ports, secret, plugins, config, speed)
        worker = await place.supervisor.start(_process(script, ports, data, place))
        control = NodeControl(ports.control, secret)
        try:
            await worker.ready()
            await _listens(control, worker)
            break
        except WorkerError as error:
            await control.close()
            await place.supervisor.forget(worker)
            if not left or not any(word in worker.output.text for word in PORT_IN_USE):
                raise ServiceError(f"{place.name}: {origin} did not start: {error.message}", hint=error.hint) from None
    address = Address("amqp", "127.0.0.1", ports.amqp, "guest", "guest", path=quote("/", safe=""))
    service = RabbitService(place, address, origin, control, worker, data)
    try:
        await rabbit_clock.quickened(place, data, control)
        service.version = await server_version(address)
    except (OSError, TimeoutError, ValueError, WaitTimeout) as error:
        await service.stop()
        raise ServiceError(f"{place.name}: {origin} started and does not answer: {error}") from None
    return service


async def _listens(control: NodeControl, worker: Worker) -> None:
    """Waits for the node's control lines, which come at the very end of its start. Raises WorkerError: a node that
    finds their port taken ends by it."""

    async def there() -> bool:
        return not worker.alive or await control.answers()

    await wait_until(there, f"{worker.name}'s control lines", deadline=READY_WITHIN)
    if not worker.alive:
        raise WorkerError(f"{worker.name} {worker.how_it_ended()}: " + " | ".join(worker.output.tail(3)))


def _write_files(data: Path, ports: _Ports, secret: str, plugins: str, config: str, speed: float) -> None:
    # Erlang terms instead of rabbitmq.conf: translating that takes the node half a second.
    own = [f'{{tcp_listeners, [{{"127.0.0.1", {ports.amqp}}}]}}', "{disk_free_limit, 1000000}"]
    own += [f"{{handshake_timeout, {round(HANDSHAKE * speed)}}}"] if speed != 1 else []
    settings = [f"{{rabbit, [{', '.join(own)}]}}"]
    settings += [config] if config else []
    (data / "advanced.config").write_text(f"[{', '.join(settings)}].\n")
    (data / "enabled_plugins").write_text(f"[{plugins}].\n")
    (data / "control.erl").write_text(program(ports.control, secret))
    (data / "env.conf").write_text("")
    cookie = data / ".erlang.cookie"
    cookie.write_text(token(40))
    cookie.chmod(0o400)


def _process(script: Path, ports: _Ports, data: Path, place: Place) -> ProcessSpec:
    env = {
        **base.server_env(data),
        **rabbit_clock.booting(place, data),
        "RABBITMQ_NODENAME": "jobcheck@localhost",
        "RABBITMQ_DIST_PORT": str(ports.distribution),
        # A port mapper of its own, which ends with the tree: one that other nodes share would outlive the run.
        "ERL_EPMD_PORT": str(ports.mapper),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        # Makes the script become the node instead of waiting for it; `-noinput` then keeps the shell away.
        "RABBITMQ_ALLOW_INPUT": "1",
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONF_ENV_FILE": str(data / "env.conf"),
        "RABBITMQ_CONFIG_FILE": str(data / "none"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(data / "advanced.config"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(data / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(data / "mnesia"),
        "RABBITMQ_LOG_BASE": str(data / "log"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(data / "generated"),
        "RABBITMQ_PID_FILE": str(data / "pid"),
    }
    argv = [str(script), *(rabbit_clock.ONE_SCHEDULER if place.pace is not None else ()), "-noinput"]
    argv += ["-kernel", "inet_dist_use_interface", "{127,0,0,1}"]
    argv += ["-eval", f'ok = file:eval("{data / "control.erl"}").']
    return ProcessSpec(
        name=place.name,
        argv=argv,
        env=env,
        cwd=data,
        ready=ReadyLine("Server startup complete|completed with \\d+ plugins"),
        ready_within=READY_WITHIN,
        # A graceful end takes seconds, and there is nothing to save.
        stop_signal=signal.SIGKILL,
    )


async def server_version(address: Address) -> str:
    """What an AMQP server says it is. Raises OSError, TimeoutError, or ValueError when it does not speak AMQP."""
    reader, writer = await bounded(asyncio.open_connection(address.host, address.port), HELLO_WITHIN)
    data = b""
    try:
        writer.write(b"AMQP\x00\x00\x09\x01")
        while True:
            more = await bounded(reader.read(65536), HELLO_WITHIN)
            data += more
            try:
                _, _, hello = frame.unmarshal(data)
            except exceptions.UnmarshalingException:
                if more:
                    continue
                raise ValueError(f"expected an AMQP server, which said {data[:40]!r}") from None
            if not isinstance(hello, commands.Connection.Start):
                raise ValueError(f"expected an AMQP greeting, got {hello!r}")
            said = (hello.server_properties or {}).get("version", "unknown")
            return said.decode() if isinstance(said, bytes) else str(said)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
