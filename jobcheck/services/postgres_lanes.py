"""The databases of a run: a template that the user's setup prepares once, and clones of it for the lanes."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from ..aio import in_thread, wait_until
from ..errors import ServiceError, UsageError, WaitTimeout
from ..workers.env import scrubbed
from ..workers.spec import ProcessSpec
from ..workers.supervisor import Worker
from . import base
from .base import Place, Service
from .clients import pg_client, pg_connect, rows
from .postgres_data import forget_shared_memory
from .postgres_extensions import create_extensions
from .postgres_hoard import Hoard
from .postgres_templates import NAME
from .spec import Address, Postgres

SETUP_WITHIN = 300.0
"""Seconds."""
SHOWN_LINES = 30
BACK_WITHIN = 60.0
"""Seconds until a server that was killed has recovered and takes a connection."""
FILE_COPY_SINCE = 150000
"""The server version since which a database can be cloned file by file: 7 ms instead of 15 to 20."""
NAME_LIMIT = 63
"""Bytes of a PostgreSQL name."""
MAINTENANCE = ("", "postgres", "template0", "template1")
"""Databases of a given server that are nobody's data."""

RESTART_SEQUENCES = """
DO $$
DECLARE
  one record;
  top bigint;
  value bigint;
BEGIN
  FOR one IN
    SELECT schemaname, sequencename, max_value, COALESCE(last_value, start_value) AS used,
           row_number() OVER (ORDER BY schemaname, sequencename) AS nth
    FROM pg_sequences WHERE increment_by > 0 AND NOT cycle
  LOOP
    top := {base};
    value := top + one.nth * 10007;
    -- a sequence of a small type gets what fits
    IF value > one.max_value / 2 THEN
      value := one.max_value / 4 + (value % GREATEST(one.max_value / 4, 1));
    END IF;
    IF value > one.used THEN
      PERFORM setval(format('%I.%I', one.schemaname, one.sequencename)::regclass, value, true);
    END IF;
  END LOOP;
END $$
"""
"""Sequences of a clone go on from a large number of their own, so that an id cannot be mistaken in a text for a part of
another number, for another table's id, or for one of another lane."""
SEQUENCE_STEP = 10_000_000
SEQUENCE_ROUNDS = 190
"""How many clones have ids of their own; more would not fit into a 32-bit integer."""


class PostgresService(Service):
    """A PostgreSQL server; its namespaces are databases."""

    kind = "postgres"
    polite = signal.SIGINT
    """"Fast": what is running is rolled back, and all is written."""

    def __init__(
        self,
        place: Place,
        spec: Postgres,
        address: Address,
        origin: str,
        admin: psycopg.AsyncConnection[dict[str, Any]],
        worker: Worker | None = None,
        folders: Sequence[Path] = (),
    ) -> None:
        super().__init__(place, worker, folders)
        self.spec = spec
        self.address = address
        self.origin = origin
        self._admin = admin
        self._lanes: dict[str, str] = {}
        self.restored = False
        """Whether the template was kept by an earlier run."""
        self.keeps: Callable[[], Awaitable[object]] | None = None
        """Keeps the template for later runs, once it is prepared."""
        self._template = ""
        self._clones = 0
        self._hoard: Hoard | None = None
        self._one_at_a_time = asyncio.Lock()

    async def namespace(self, lane: str) -> Address:
        """A clone of the template for `lane`, which is prepared first if this is the first one.

        Raises ServiceError when the setup fails or the template cannot be cloned.
        """
        async with self._one_at_a_time:
            self.check()
            template = await self._prepared()
            name = self._name(lane)
            await self._drop(self._lanes.pop(lane, name))
            await self._create(name, template)
            self._lanes[lane] = name
            address = replace(self.address, path=name)
            await self._restart_sequences(address)
            return address

    async def drop(self, lane: str) -> None:
        async with self._one_at_a_time:
            if name := self._lanes.pop(lane, ""):
                await self._drop(name)

    async def keep(self) -> str:
        if self.owned:
            # A private server answers a COMMIT before it writes it; a real one does not. For sessions to come.
            await self._admin.execute("ALTER ROLE ALL SET synchronous_commit = on")
        return "a killed server loses no commit that it answered"

    async def hamper(self, how: str) -> None:
        """Read-only for every role and session, also those that exist; exhausted by connections of ours."""
        self._mine()
        await self.relieve()
        if how == "read_only":
            await self._read_only("ALTER SYSTEM SET default_transaction_read_only = on")
        else:
            self._hoard = Hoard(self.address)
            await self._hoard.start()

    async def relieve(self) -> None:
        if self._hoard is not None:
            hoard, self._hoard = self._hoard, None
            await hoard.close()
        if self.owned and not self.down:
            await self._read_only("ALTER SYSTEM RESET default_transaction_read_only")

    async def _read_only(self, command: str) -> None:
        try:
            await self._admin.execute(command.encode())
            await self._admin.execute("SELECT pg_reload_conf()")
        except psycopg.Error as error:
            raise ServiceError(f"{self.place.name}: {command} failed: {' '.join(str(error).split())}") from None

    async def _gone(self) -> None:
        await self._admin.close()
        if self._hoard is not None:
            await self._hoard.close()
            self._hoard = None
        for folder in self._folders[:1]:
            await in_thread(forget_shared_memory, folder / "data")

    async def _returned(self, erased: bool) -> None:
        async def connected() -> psycopg.AsyncConnection[dict[str, Any]] | None:
            try:
                return await pg_connect(self.address)
            except psycopg.OperationalError:
                return None

        self._admin = await wait_until(connected, f"{self.place.name} to take a connection", deadline=BACK_WITHIN)
        await self._read_only("ALTER SYSTEM RESET default_transaction_read_only")

    async def stop(self) -> None:
        if self._hoard is not None:
            await self._hoard.close()
            self._hoard = None
        if not self.owned and not self._admin.closed:
            with contextlib.suppress(psycopg.Error):
                for lane in list(self._lanes):
                    await self.drop(lane)
                if self._template and (self.spec.setup or self.spec.extensions):
                    await self._drop(self._template)
        await self._admin.close()
        await super().stop()

    def _name(self, part: str) -> str:
        full = f"jobcheck_{self.place.supervisor.run_id}_{self.place.name}_{part}".lower()
        text = re.sub(r"[^a-z0-9_]", "_", full)
        return text if len(text) <= NAME_LIMIT else f"{text[: NAME_LIMIT - 9]}_{zlib.crc32(full.encode()):08x}"

    # -- the template -------------------------------------------------------------------------------------------

    async def _prepared(self) -> str:
        """The database that lanes are cloned from."""
        if not self._template:
            if self.spec.setup or self.spec.extensions:
                name = NAME if self.owned else self._name("template")
                if not self.restored:
                    await self._make(name)
                self._template = name
            elif self.owned or self.address.path in MAINTENANCE:
                self._template = "template1"
            else:
                # Without a setup, the database that the user named is what the lanes should look like.
                self._template = self.address.path
        return self._template

    async def _make(self, name: str) -> None:
        await self._drop(name)
        await self._create(name, "template1")
        try:
            await create_extensions(self, replace(self.address, path=name))
            if self.spec.setup:
                await self._set_up(replace(self.address, path=name))
        except (ServiceError, UsageError):
            await self._drop(name)
            raise
        if self.keeps is not None:
            await self.keeps()

    async def _set_up(self, address: Address) -> None:
        file = setup_file(self.spec, self.place)
        if file is not None:
            await self._run_file(file, address)
        else:
            await self._run_command(self.spec.setup.strip(), address)

    async def _run_file(self, file: Path, address: Address) -> None:
        try:
            text = file.read_text()
        except OSError as error:
            raise ServiceError(f"{self.place.name}: expected the setup file {file}: {error.strerror}") from None
        try:
            async with pg_client(address) as connection:
                await rows(connection, text)
        except psycopg.Error as error:
            raise ServiceError(
                f"{self.place.name}: the setup file {file} failed: {str(error).strip()}",
                hint=f"for psql's own commands (\\i, \\copy, COPY FROM stdin) use setup='psql -f {file.name}'",
            ) from None

    async def _run_command(self, command: str, address: Address) -> None:
        address = self.place.door(address)
        variables = {
            **self.place.variables(address),
            "PGHOST": address.host,
            "PGPORT": str(address.port),
            "PGUSER": address.user,
            "PGPASSWORD": address.password,
            "PGDATABASE": address.path,
            "DATABASE_URL": address.url,
        }
        home = self.place.folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        worker = await self.place.supervisor.start(
            ProcessSpec(
                name=f"{self.place.name}-setup",
                argv=["/bin/sh", "-c", command],
                env=scrubbed({key: value for key, value in variables.items() if value}, home=home),
                cwd=self.place.root,
            )
        )
        try:
            code = await worker.wait(SETUP_WITHIN)
            said = "\n    ".join(worker.output.tail(SHOWN_LINES)) or "(nothing)"
        except WaitTimeout:
            code, said = None, "\n    ".join(worker.output.tail(SHOWN_LINES)) or "(nothing)"
        finally:
            await self.place.supervisor.forget(worker)
        if code != 0:
            how = f"did not end within {SETUP_WITHIN:g} s" if code is None else f"failed with exit code {code}"
            raise ServiceError(
                f"{self.place.name}: the setup {command!r} {how} (in {self.place.root}); it wrote:\n    {said}",
                hint="it gets DATABASE_URL, PGHOST, PGPORT, PGUSER, PGDATABASE and the rig's variables, nothing else",
            )

    # -- databases ----------------------------------------------------------------------------------------------

    async def _create(self, name: str, template: str) -> None:
        if template == self._template:
            await self._disconnect_others(template)
        words = "CREATE DATABASE {} TEMPLATE {}"
        if self._admin.info.server_version >= FILE_COPY_SINCE:
            words += " STRATEGY FILE_COPY"
        try:
            await self._admin.execute(sql.SQL(words).format(sql.Identifier(name), sql.Identifier(template)))
        except psycopg.Error as error:
            raise ServiceError(f"{self.place.name}: cannot create a database: {' '.join(str(error).split())}") from None

    async def _disconnect_others(self, template: str) -> None:
        """A database can only be cloned while nobody is connected to it; the server would wait 5 s and then refuse."""
        others = await rows(
            self._admin,
            "SELECT pid, application_name, usename FROM pg_stat_activity"
            " WHERE datname = %s AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
            [template],
        )
        if others and not (self.owned or self.spec.setup or self.spec.extensions):
            who = ", ".join(f"{one['usename']} {one['application_name']} (pid {one['pid']})" for one in others)
            raise ServiceError(
                f"{self.place.name}: cannot clone the database {template!r} of {base.shown(self.address)} "
                f"while others are connected to it: {who}",
                hint="disconnect them, or give a setup= so that jobcheck makes a database of its own",
            )
        for one in others:  # what the setup left connected to our own template
            await self._admin.execute("SELECT pg_terminate_backend(%s)", [one["pid"]])

    async def _drop(self, name: str) -> None:
        await self._admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    async def _restart_sequences(self, address: Address) -> None:
        start = SEQUENCE_STEP * (self._clones % SEQUENCE_ROUNDS + 1)
        self._clones += 1
        async with pg_client(address) as connection:
            await rows(connection, RESTART_SEQUENCES.replace("{base}", str(start)))


def setup_file(spec: Postgres, place: Place) -> Path | None:
    """The SQL file that is the setup; None where it is a command."""
    setup = spec.setup.strip()
    file = place.root / setup
    return file if file.suffix == ".sql" and " " not in setup else None


def check_setup(spec: Postgres, place: Place) -> None:
    """Raises UsageError for a setup file that is not there: before any server is started for it."""
    file = setup_file(spec, place)
    if file is not None and not file.is_file():
        raise UsageError(
            f"{place.name}: expected the setup file {file}, and there is none",
            hint=f"its path counts from {place.root}, the folder of the rig's app",
        )
