"""What the PostgreSQL at hand has of what the app needs, and what would have the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from ..errors import ServiceError, UsageError
from .clients import pg_client, rows
from .spec import Address

if TYPE_CHECKING:
    from .postgres_lanes import PostgresService

PACKAGES = {
    "postgis": "postgresql-{major}-postgis-3",
    "vector": "postgresql-{major}-pgvector",
    "pg_cron": "postgresql-{major}-cron",
    "timescaledb": "timescaledb-2-postgresql-{major}",
    "hll": "postgresql-{major}-hll",
    "pg_partman": "postgresql-{major}-partman",
    "rum": "postgresql-{major}-rum",
}
"""Debian's packages of extensions that do not come with PostgreSQL itself."""


async def create_extensions(service: PostgresService, address: Address) -> None:
    """Creates the extensions that the rig asks for. Raises ServiceError, one line for all that are not there."""
    wanted = [service.spec.extensions] if isinstance(service.spec.extensions, str) else list(service.spec.extensions)
    if not wanted:
        return
    async with pg_client(address) as connection:
        found = {str(row["name"]) for row in await rows(connection, "SELECT name FROM pg_available_extensions")}
        if missing := [name for name in wanted if name not in found]:
            raise _missing(service, missing)
        for name in wanted:
            try:
                words = sql.SQL("CREATE EXTENSION IF NOT EXISTS {} CASCADE").format(sql.Identifier(name))
                await connection.execute(words)
            except psycopg.Error as error:
                said = " ".join(str(error).split())
                raise ServiceError(f"{service.place.name}: cannot create the extension {name}: {said}") from None


def _missing(service: PostgresService, missing: list[str]) -> ServiceError:
    major = service.version.partition(".")[0]
    packages = [PACKAGES.get(name, "postgresql-contrib").format(major=major) for name in missing]
    if service.origin.startswith("wheel"):
        known = [PACKAGES[name].format(major="NN") for name in missing if name in PACKAGES]
        packages = ["postgresql", *(known or ["postgresql-contrib"])]
    return ServiceError(
        f"{service.place.name}: PostgreSQL {service.version} ({service.origin}) has no extension {', '.join(missing)}",
        hint=f"apt-get install {' '.join(dict.fromkeys(packages))}, or url= of a server that has it",
    )


def check_version(name: str, wanted: str, version: str, origin: str, others: list[str]) -> None:
    """Raises ServiceError, in one line, when the server is of another major version than the rig asks for."""
    if not wanted:
        return
    if not wanted.isdigit():
        raise UsageError(f"{name}: expected a major version such as '16', got {wanted!r}")
    if version.partition(".")[0] != wanted:
        here = f"; this machine also has {', '.join(others)}" if others else ""
        raise ServiceError(
            f"{name}: expected PostgreSQL {wanted}, and there is {version} ({origin}){here}",
            hint=f"apt-get install postgresql-{wanted} (from apt.postgresql.org where Debian has it not), "
            "or url= of a server that has it",
        )
