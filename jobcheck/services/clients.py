"""Small clients with which the harness asks brokers and databases directly, not through a tap."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import psycopg
import redis.asyncio
from psycopg.rows import dict_row
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from .spec import Address

CONNECT_WITHIN = 5
"""Seconds until a server that does not answer counts as one that will not."""


@asynccontextmanager
async def redis_client(address: Address) -> AsyncIterator[redis.asyncio.Redis]:
    """A client of one database number, with texts for replies. Connects when first used."""
    client = redis_connect(address)
    try:
        yield client
    finally:
        await redis_close(client)


def redis_connect(address: Address, *, single: bool = False) -> redis.asyncio.Redis:
    """The same as `redis_client` for an owner who closes it; `single`: one connection, which stays open."""
    return redis.asyncio.Redis(
        host=address.host,
        port=address.port,
        db=int(address.path or 0),
        username=address.user or None,
        password=address.password or None,
        ssl=address.scheme == "rediss",
        decode_responses=True,
        socket_connect_timeout=CONNECT_WITHIN,
        single_connection_client=single,
        # redis-py repeats a command whose reply was lost, also one that counts: a harness must not.
        retry=Retry(NoBackoff(), 0),
    )


async def redis_close(client: redis.asyncio.Redis) -> None:
    """Closes what `redis_connect` gave."""
    # redis-py 4 knows only `close`, and 5 warns about it.
    await (client.aclose() if hasattr(client, "aclose") else client.close())


@asynccontextmanager
async def pg_client(address: Address) -> AsyncIterator[psycopg.AsyncConnection[dict[str, Any]]]:
    """One connection in autocommit, with rows as dicts. Raises psycopg.OperationalError when it cannot connect."""
    connection = await pg_connect(address)
    try:
        yield connection
    finally:
        await connection.close()


async def pg_connect(address: Address) -> psycopg.AsyncConnection[dict[str, Any]]:
    """The same as `pg_client` for an owner who closes it."""
    url = replace(address, scheme="postgresql").url
    return await psycopg.AsyncConnection.connect(
        url, autocommit=True, row_factory=dict_row, connect_timeout=CONNECT_WITHIN, application_name="jobcheck"
    )


async def pg_query(address: Address, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
    """Runs one statement on a connection of its own; its rows, none for a statement that gives none."""
    async with pg_client(address) as connection:
        return await rows(connection, sql, parameters)


async def rows(
    connection: psycopg.AsyncConnection[dict[str, Any]], sql: str, parameters: Sequence[object] = ()
) -> list[dict[str, Any]]:
    """The rows of one statement on an open connection."""
    # Without parameters the text goes as it is: a percent sign needs no doubling, and it may hold several statements.
    cursor = await connection.execute(sql.encode(), parameters or None)
    return await cursor.fetchall() if cursor.description else []
