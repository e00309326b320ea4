"""Who waits for whom in a PostgreSQL database, by the server's own word."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import psycopg

from ..services.clients import pg_connect, rows
from ..services.spec import Address
from ..tap.listener import Slot
from ..tap.sight import Sight
from ..wire.postgres import PostgresDecoder

SQL = "select w.pid, pg_blocking_pids(w.pid) as blockers from unnest(%s::int[]) as w(pid)"
"""Asks the lock table itself: `pg_stat_activity` may still call a backend waiting that was just given its lock."""


def backend(sight: Sight) -> int:
    """The server process that has this request; 0 where it is no PostgreSQL connection."""
    decoder = sight.link.decoder
    return decoder.backend_pid if isinstance(decoder, PostgresDecoder) else 0


def backends(slot: Slot) -> frozenset[int]:
    """The server processes of all connections of a worker."""
    decoders = [link.decoder for link in slot.links]
    return frozenset(one.backend_pid for one in decoders if isinstance(one, PostgresDecoder) and one.backend_pid)


class Locks:
    """One connection to each database of the lane, made when it is first asked."""

    def __init__(self, addresses: Mapping[str, Address]) -> None:
        self._addresses = addresses
        self._connections: dict[str, psycopg.AsyncConnection[dict[str, Any]]] = {}

    async def blocked(self, upstream: str, pid: int, others: Collection[int]) -> bool:
        """Whether this server process waits for a lock that one of the others holds."""
        if upstream not in self._connections:
            self._connections[upstream] = await pg_connect(self._addresses[upstream])
        found = await rows(self._connections[upstream], SQL, ([pid],))
        return any(set(row["blockers"]) & set(others) for row in found)

    async def close(self) -> None:
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()
