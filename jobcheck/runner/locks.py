"""Who waits for whom in a PostgreSQL database, by the server's own word."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import psycopg

from ..services.clients import pg_connect, rows
from ..services.spec import Address
from ..tap.link import Link
from ..tap.sight import Sight
from ..wire.postgres import PostgresDecoder
from .lane import Lane

EVERY = 0.02
"""Seconds between two looks at the locks."""
PATIENCE = 20.0
"""Seconds after which a second worker that neither ends nor waits for a lock is not waited for any longer: it may try
again and again for something that the first one has, which no server tells."""

SQL = "select w.pid, pg_blocking_pids(w.pid) as blockers from unnest(%s::int[]) as w(pid)"
"""Asks the lock table itself: `pg_stat_activity` may still call a backend waiting that was just given its lock."""


def backend(sight: Sight) -> int:
    """The server process that has this request; 0 where it is no PostgreSQL connection."""
    decoder = sight.link.decoder
    return decoder.backend_pid if isinstance(decoder, PostgresDecoder) else 0


def backends(links: Iterable[Link]) -> frozenset[int]:
    """The server processes of these connections."""
    decoders = [link.decoder for link in links]
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


async def ends_or_waits(
    lane: Lane,
    ended: Callable[[], bool],
    asked: Callable[[], Iterable[Sight]],
    first: Callable[[], Iterable[Link]],
    *,
    lease: float = 0.0,
) -> bool:
    """Waits until a second worker has ended: True. False when it cannot before the first one goes on.

    `lease`: the broker may keep the job to itself for so many seconds first.

    `asked` are its requests that wait for an answer, `first` the connections of the one that stands still. Whether it
    waits for a lock of the other's is asked of the database, and not told by time.
    """
    locks = Locks(lane.addresses)
    until = lane.stage.clock.now() + PATIENCE + lease
    try:
        while not ended():
            if lane.stage.clock.now() >= until:
                return False
            held = backends(first())
            for sight in list(asked()) if held else ():
                if (pid := backend(sight)) and await locks.blocked(sight.upstream, pid, held):
                    return False
            await asyncio.sleep(EVERY)
    finally:
        await locks.close()
    return True
