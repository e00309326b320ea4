"""Rows of a database as effects: what a query shows at the end of a trial and did not show before."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import uuid
from collections import Counter
from typing import Any

import psycopg
from psycopg.rows import dict_row

from ..aio import within
from ..errors import ServiceError, UsageError, WaitTimeout
from ..services.spec import Address
from .bodies import canonical
from .observer import Seen

PATIENCE = 10.0
"""Seconds for one look: a query that waits for a lock of a stopped worker must not hold up the run."""


class RowsObserver:
    """A PostgreSQL query whose rows are effects `rows <name>`, one each; a row that changed is a new row.

    Rows are compared as a multiset, so that the same row twice is seen twice. The connection is kept between looks,
    and made again when the server closed it.
    """

    def __init__(self, name: str, query: str, address: Address) -> None:
        self.name = name
        self.query = query
        self.address = address
        self._link: psycopg.AsyncConnection[dict[str, Any]] | None = None
        self._known: Counter[str] = Counter()

    async def prime(self) -> None:
        """Takes the rows that are there now as known. Raises what `snapshot` raises."""
        await self.snapshot()

    async def read(self) -> list[Seen]:
        """The rows that are new since the last look. Raises what `snapshot` raises."""
        return await self.snapshot()

    async def snapshot(self) -> list[Seen]:
        """Looks, gives what is new, and remembers what is there.

        Raises UsageError for a query that does not run, ServiceError when the database cannot be reached, WaitTimeout
        when it does not answer.
        """
        rows = await self._rows()
        before, self._known = self._known, Counter()
        fresh = []
        for row in rows:
            body = canonical(row)
            self._known[body] += 1
            if self._known[body] > before[body]:
                fresh.append(Seen(self.name, body, {"row": row}))
        return fresh

    async def close(self) -> None:
        """Closes the connection. May be called twice."""
        if self._link is not None:
            link, self._link = self._link, None
            await link.close()

    async def _rows(self) -> list[dict[str, Any]]:
        kept = self._link is not None
        try:
            return await self._ask()
        except psycopg.OperationalError as error:
            await self.close()
            if not kept:
                raise ServiceError(f"{self.name}: cannot read rows from {self._where}: {error}") from error
        try:
            return await self._ask()  # the server was restarted or the database made anew since the last look
        except psycopg.OperationalError as error:
            await self.close()
            raise ServiceError(f"{self.name}: cannot read rows from {self._where}: {error}") from error

    async def _ask(self) -> list[dict[str, Any]]:
        if self._link is None:
            connecting = psycopg.AsyncConnection.connect(self._conninfo(), autocommit=True, row_factory=dict_row)
            self._link = await within(connecting, PATIENCE, f"a connection to {self._where}")
        try:
            async with self._link.cursor() as cursor:
                await within(cursor.execute(self.query.encode()), PATIENCE, f"the rows of {self.name}")
                rows = await cursor.fetchall()
        except WaitTimeout:
            await self.close()
            raise
        except psycopg.ProgrammingError as error:
            raise UsageError(
                f"{self.name}: the query does not run: {str(error).strip()}; it is: {self.query}",
                hint="it is run as it stands, on the database that the rig's setup prepared",
            ) from error
        return [{str(column): plain(value) for column, value in row.items()} for row in rows]

    def _conninfo(self) -> str:
        return self.address.url.replace(f"{self.address.scheme}://", "postgresql://", 1)

    @property
    def _where(self) -> str:
        return f"{self.address.host}:{self.address.port}/{self.address.name}"


def plain(value: Any) -> Any:
    """A JSON value of what a database column holds; numbers keep their digits, times become ISO text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | memoryview):
        return "base64:" + base64.b64encode(bytes(value)).decode()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | uuid.UUID | dt.timedelta):
        return str(value)
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)
