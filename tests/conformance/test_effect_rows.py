"""Rows of a real PostgreSQL as effects: what is new is seen once, also when the database is made anew meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jobcheck.aio import within
from jobcheck.effects import rows as rows_module
from jobcheck.effects.rows import RowsObserver
from jobcheck.errors import ServiceError, UsageError, WaitTimeout
from jobcheck.services import start as start_service
from jobcheck.services.base import Service, free_port
from jobcheck.services.clients import pg_client
from jobcheck.services.spec import Address, Postgres
from jobcheck.workers.supervisor import Supervisor

SETUP = "CREATE TABLE ledger (invoice bigint, amount numeric(10, 2), at timestamptz DEFAULT now());"
QUERY = "SELECT invoice, amount FROM ledger WHERE amount::text NOT LIKE '9%'"


@asynccontextmanager
async def database(folder: Path) -> AsyncIterator[Service]:
    setup = folder / "setup.sql"
    setup.write_text(SETUP)
    supervisor = Supervisor("rows1", folder)
    service = await start_service(
        Postgres(setup=str(setup)), name="db", supervisor=supervisor, guardian=None, folder=folder, environ={}
    )
    try:
        yield service
    finally:
        await service.stop()
        await supervisor.close()


async def run(address: Address, statement: str) -> None:
    async with pg_client(address) as client:
        await client.execute(statement.encode())


async def bodies(observer: RowsObserver) -> list[str]:
    return [seen.body for seen in await observer.read()]


def test_new_rows_are_effects_and_survive_a_new_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One server for all of it, since that is what takes the time."""

    async def main() -> None:
        async with database(tmp_path) as service:
            address = await service.namespace("0")
            observer = RowsObserver("rows ledger", QUERY, address)
            await run(address, "INSERT INTO ledger VALUES (16, 1)")
            await observer.prime()
            await counts_as_multiset(observer, address)
            await outlives_the_database(observer, service)
            await refuses_wrong_queries(address)
            await does_not_wait_for_locks(observer, address, monkeypatch)
            await observer.close()
            await observer.close()

    asyncio.run(main())


async def counts_as_multiset(observer: RowsObserver, address: Address) -> None:
    await run(address, "INSERT INTO ledger VALUES (17, 12.5), (17, 12.5), (18, 99)")
    (first, second) = await observer.read()
    assert first == second
    assert (first.name, first.body) == ("rows ledger", '{"amount":"12.50","invoice":17}')
    assert first.fields == {"row": {"invoice": 17, "amount": "12.50"}}
    assert await bodies(observer) == []
    await run(address, "INSERT INTO ledger VALUES (17, 12.5)")
    assert await bodies(observer) == [first.body]
    await run(address, "UPDATE ledger SET amount = 2 WHERE invoice = 16")
    assert await bodies(observer) == ['{"amount":"2.00","invoice":16}']


async def outlives_the_database(observer: RowsObserver, service: Service) -> None:
    """A lane starts over with a new clone of the template: the kept connection is dropped by the server."""
    address = await service.namespace("0")
    assert await bodies(observer) == []
    await run(address, "INSERT INTO ledger VALUES (19, 1)")
    assert await bodies(observer) == ['{"amount":"1.00","invoice":19}']


async def refuses_wrong_queries(address: Address) -> None:
    wrong = RowsObserver("rows ledger", "SELECT nothing FROM nowhere", address)
    with pytest.raises(UsageError, match="the query does not run"):
        await wrong.prime()
    await wrong.close()
    empty = RowsObserver("rows ledger", "UPDATE ledger SET amount = 0 WHERE false", address)
    with pytest.raises(UsageError, match="the query does not run"):
        await empty.prime()
    await empty.close()


async def does_not_wait_for_locks(observer: RowsObserver, address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "PATIENCE", 0.05)
    async with pg_client(address) as client:
        await client.execute(b"BEGIN")
        await client.execute(b"LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(WaitTimeout, match="rows of rows ledger"):
            await within(observer.read(), 20, "the end of a query that waits for a lock")
        await client.execute(b"ROLLBACK")
    monkeypatch.setattr(rows_module, "PATIENCE", 10.0)
    assert await bodies(observer) == [], "what was known before the failed look is still known"


def test_a_database_that_is_not_there_is_told_with_its_address() -> None:
    async def main() -> Any:
        observer = RowsObserver("rows ledger", "SELECT 1", Address("postgresql", "127.0.0.1", free_port(), path="shop"))
        with pytest.raises(ServiceError, match=r"cannot read rows from 127\.0\.0\.1:\d+/shop"):
            await observer.prime()

    asyncio.run(main())
