"""Takes all connections of a PostgreSQL server, and each one that becomes free, until they are given back.

The server itself then refuses whoever comes (`53300 too many clients`); who has a connection keeps it, as in
production. The superuser's reserved slots are taken too: everyone is the superuser of a private server.
"""

from __future__ import annotations

import asyncio
import struct

from ..aio import Tasks, wait_for
from .spec import Address

PROTOCOL = 196608
AT_ONCE = 16
"""Connections that are opened side by side: the server forks a process for each."""
LOOK_EVERY = 0.02
"""Seconds until the next try to take a slot that became free."""
FULL_WITHIN = 30.0
READY, ERROR = b"Z", b"E"


class Hoard:
    """Holds connections from `start` to `close`."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._held: list[asyncio.StreamWriter] = []
        self._tasks = Tasks()
        self.full = False
        """The server has refused a connection since the start."""

    async def start(self) -> None:
        """Returns when the server refuses connections. Raises WaitTimeout."""
        self._tasks.start("postgres connections", self._fill())
        await wait_for(
            lambda: self.full,
            "the server to be out of connections",
            deadline=FULL_WITHIN,
            last_seen=lambda: f"{len(self._held)} connections are held",
        )

    async def close(self) -> None:
        """Gives all of them back. More calls do nothing."""
        await self._tasks.close()
        held, self._held = self._held, []
        for writer in held:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in held), return_exceptions=True)

    async def _fill(self) -> None:
        while True:
            taken = await asyncio.gather(*(self._take() for _ in range(1 if self.full else AT_ONCE)))
            if not all(taken):
                self.full = True
                await asyncio.sleep(LOOK_EVERY)

    async def _take(self) -> bool:
        """One connection more; False when the server refuses it."""
        try:
            reader, writer = await asyncio.open_connection(self._address.host, self._address.port)
        except OSError:
            return False
        self._held.append(writer)
        body = struct.pack("!i", PROTOCOL) + f"user\0{self._address.user}\0database\0{self._address.path}\0\0".encode()
        writer.write(struct.pack("!i", len(body) + 4) + body)
        try:
            while True:
                kind, size = struct.unpack("!ci", await reader.readexactly(5))
                await reader.readexactly(size - 4)
                if kind == READY:
                    return True
                if kind == ERROR:
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass  # it was refused, or the server went away
        self._held.remove(writer)
        writer.close()
        return False
