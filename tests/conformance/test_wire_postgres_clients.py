"""Labels and changes of PostgreSQL traffic, as real clients make it against a real server."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator

import asyncpg
import psycopg
import psycopg2
import pytest
import sqlalchemy as sa
from wire_proxy import Proxy, World

from jobcheck.services.spec import Address, Postgres
from jobcheck.wire.unit import Change, Kind

NO, PENDING, YES, MAYBE = Change.NO, Change.PENDING, Change.YES, Change.MAYBE
SCHEMA = """
create table invoices (id bigserial primary key, total int unique);
create table job_effects (key text primary key);
create table payments_2026_11 (id int);
create function pay(x int) returns int language sql as 'insert into invoices (total) values (x) returning total';
create procedure settle(x int) language sql as 'insert into invoices (total) values (x)';
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("pg"))
    yield world
    world.close()


@pytest.fixture(scope="module")
def server(world: World) -> Address:
    address = world.service(Postgres()).address
    with psycopg.connect(address.url, autocommit=True) as connection:
        connection.execute(SCHEMA)
    return address


@pytest.fixture
def proxy(world: World, server: Address) -> Iterator[Proxy]:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("truncate invoices, job_effects restart identity")
    with world.proxy("postgres", server.port) as proxy:
        yield proxy


def dsn(server: Address, proxy: Proxy, scheme: str = "postgresql") -> str:
    login, _, _ = server.netloc.rpartition("@")
    return f"{scheme}://{login}@127.0.0.1:{proxy.port}/{server.name}"


def said(proxy: Proxy) -> list[tuple[str, Change]]:
    """Shapes without the protocol, and truths."""
    return [(shape.removeprefix("postgres "), truth) for shape, _, truth in proxy.said()]


def test_psycopg_sync_transactions_fold_into_their_commit(server, proxy):
    with psycopg.connect(dsn(server, proxy)) as connection:
        connection.execute("select total from invoices where id = %s", (1,))
        connection.execute("insert into job_effects values (%s)", ("charge:17",))
        connection.commit()
        connection.execute("insert into job_effects values (%s) on conflict do nothing", ("charge:17",))
        connection.commit()
        connection.execute("insert into invoices (total) values (1)")
        connection.rollback()
    assert said(proxy) == [
        ("BEGIN", NO), ("SELECT invoices", NO), ("INSERT job_effects", PENDING), ("COMMIT", YES),
        ("BEGIN", NO), ("INSERT job_effects", NO), ("COMMIT", NO),
        ("BEGIN", NO), ("INSERT invoices", PENDING), ("ROLLBACK", NO),
    ]  # fmt: skip
    commit = next(unit for unit in proxy.units() if unit.shape == "postgres COMMIT")
    assert commit.summary == "COMMIT (INSERT job_effects)"
    insert = next(unit for unit in proxy.units() if unit.shape == "postgres INSERT job_effects")
    assert insert.summary == "insert into job_effects values ('charge:17')"
    assert insert.info["params"] == [("charge:17",)]


def test_psycopg_prepares_and_the_names_stay_known(server, proxy):
    with psycopg.connect(dsn(server, proxy), autocommit=True, prepare_threshold=0) as connection:
        for total in (1, 2, 3):
            connection.execute("insert into invoices (total) values (%s)", (total,))
            connection.execute("select * from invoices where total = %s", (total,))
    truths = said(proxy)
    assert [entry for entry in truths if entry[0] == "INSERT invoices"] == [("INSERT invoices", YES)] * 3
    assert [entry for entry in truths if entry[0] == "SELECT invoices"] == [("SELECT invoices", NO)] * 3
    assert {shape for shape, _ in truths} <= {"INSERT invoices", "SELECT invoices", "PREPARE INSERT invoices",
                                              "PREPARE SELECT invoices"}  # fmt: skip


def test_psycopg_integer_parameters_are_numbers(server, proxy):
    with psycopg.connect(dsn(server, proxy), autocommit=True) as connection:
        connection.execute("insert into invoices (total) values (%b)", (70_000,))
        connection.execute("select %b::int8, %s, %b", (5, None, True))
    params = [unit.info["params"] for unit in proxy.units() if unit.kind is Kind.REQUEST]
    assert params == [[(70_000,)], [(5, None, True)]]


def test_psycopg_pipeline_batches_are_matched(server, proxy):
    with psycopg.connect(dsn(server, proxy), autocommit=True) as connection, connection.pipeline() as pipeline:
        for total in range(20):
            connection.execute("insert into invoices (total) values (%s)", (total,))
        pipeline.sync()
        with connection.transaction():
            connection.execute("update invoices set total = -1 where id = 1")
    assert proxy.changes()[0] == "postgres INSERT invoices"
    assert proxy.changes()[-1].endswith("COMMIT")


def test_psycopg_pipeline_goes_on_after_an_error(server, proxy):
    with psycopg.connect(dsn(server, proxy), autocommit=True) as connection:
        with pytest.raises(psycopg.errors.UniqueViolation), connection.pipeline():
            connection.cursor().executemany("insert into invoices (total) values (%s)", [(1,), (1,)])
        connection.execute("select 1")
        assert connection.execute("select count(*) from invoices").fetchone() == (0,)
    assert proxy.changes() == []


def test_psycopg_copy_in_and_out(server, proxy):
    with psycopg.connect(dsn(server, proxy), autocommit=True) as connection:
        with connection.cursor().copy("copy invoices (total) from stdin") as copy:
            for total in range(5000):
                copy.write_row((total,))
        with connection.cursor().copy("copy invoices to stdout") as copy:
            assert sum(1 for _ in copy.rows()) == 5000
        with (
            pytest.raises(psycopg.errors.UniqueViolation),
            connection.cursor().copy("copy invoices (total) from stdin") as copy,
        ):
            copy.write_row((1,))
        with pytest.raises(psycopg.errors.UndefinedTable), connection.cursor().copy("copy nothing from stdin"):
            pass
        connection.execute("select 1")
    assert said(proxy) == [
        ("COPY invoices", NO), ("COPY invoices", YES),
        ("COPY invoices TO", NO),
        ("COPY invoices", NO), ("COPY invoices", NO),
        ("COPY nothing", NO),
        ("SELECT", NO),
    ]  # fmt: skip


def test_psycopg_what_only_the_server_knows(server, proxy):
    with psycopg.connect(dsn(server, proxy), autocommit=True) as connection:
        connection.execute("select pay(7)")
        connection.execute("with x as (update invoices set total = 8 where total = 7 returning *) select * from x")
        connection.execute("with x as (update invoices set total = 8 where total = 7 returning *) select * from x")
        connection.execute("update invoices set total = 9 where total = 7")
        connection.execute("call settle(10)")
        connection.execute("do $$ begin perform pay(11); end $$")
        connection.execute("select nextval('invoices_id_seq')")
        connection.execute("select pg_advisory_lock(1)")
        connection.execute("select pg_advisory_unlock(1)")
        connection.execute("insert into payments_2026_11 values (1)")
        connection.execute("delete from payments_2026_11 where id = 2")
        connection.execute("create table if not exists extra (a int)")
        connection.execute("drop table extra")
        connection.execute("select count(*) from invoices")
        connection.execute("set statement_timeout = 0")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("insert into invoices (total) values (10)")
        connection.execute("/*job='x',traceparent='00-1234'*/ delete from invoices")
    assert said(proxy) == [
        ("SELECT pay()", YES), ("WITH UPDATE invoices SELECT", YES), ("WITH UPDATE invoices SELECT", NO),
        ("UPDATE invoices", NO), ("CALL settle()", YES), ("DO", YES), ("SELECT nextval()", YES),
        ("SELECT pg_advisory_lock()", YES), ("SELECT pg_advisory_unlock()", YES), ("INSERT payments_*_*", YES),
        ("DELETE payments_*_*", NO), ("CREATE TABLE extra", YES), ("DROP TABLE extra", YES), ("SELECT invoices", NO),
        ("SET", NO), ("INSERT invoices", NO), ("DELETE invoices", YES),
    ]  # fmt: skip


def test_psycopg_savepoints_and_failed_transactions(server, proxy):
    with psycopg.connect(dsn(server, proxy)) as connection:
        with connection.transaction():
            with pytest.raises(psycopg.errors.UniqueViolation), connection.transaction():
                connection.cursor().executemany("insert into invoices (total) values (%s)", [(1,), (1,)])
            connection.execute("select 1")
        with connection.transaction(), connection.transaction():
            connection.execute("insert into invoices (total) values (2)")
    assert proxy.changes() == ["postgres COMMIT"]


def test_psycopg_async_and_notifications(server, proxy):
    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(dsn(server, proxy), autocommit=True) as connection:
            told: list[psycopg.Notify] = []
            connection.add_notify_handler(told.append)
            await connection.execute("listen jobs")
            await connection.execute("notify jobs, '17'")
            assert [note.payload for note in told] == ["17"]
            async with connection.transaction():
                await connection.execute("insert into invoices (total) values (1)")
            cursor = psycopg.AsyncServerCursor(connection, "big", withhold=True)
            await cursor.execute("select generate_series(1, 1000)")
            assert len(await cursor.fetchall()) == 1000
            await cursor.close()

    asyncio.run(main())
    assert ("LISTEN jobs", NO) in said(proxy)
    assert ("NOTIFY jobs", YES) in said(proxy)
    assert proxy.changes() == ["postgres NOTIFY jobs", "postgres COMMIT"]


def test_psycopg_many_rows_in_one_call(server, proxy):
    with psycopg.connect(dsn(server, proxy)) as connection:
        connection.cursor().executemany("insert into invoices (total) values (%s)", [(n,) for n in range(500)])
        connection.commit()
    assert said(proxy) == [("BEGIN", NO), ("INSERT invoices", PENDING), ("COMMIT", YES)]


def test_psycopg2_simple_queries(server, proxy):
    connection = psycopg2.connect(dsn(server, proxy))
    cursor = connection.cursor()
    cursor.execute("insert into job_effects values (%s)", ("it's",))
    connection.commit()
    cursor.execute("begin; insert into invoices (total) values (1); commit")
    cursor.execute("select 1")
    connection.rollback()
    connection.autocommit = True
    cursor.copy_expert("copy invoices (total) from stdin", io.StringIO("5\n6\n"))
    cursor.execute("insert into invoices (total) values (5) on conflict do nothing")
    connection.close()
    assert proxy.changes() == ["postgres COMMIT", "postgres BEGIN+INSERT invoices+COMMIT", "postgres COPY invoices"]
    assert ("INSERT job_effects", PENDING) in [(shape, truth) for shape, truth in said(proxy)] or (
        "BEGIN+INSERT job_effects", PENDING) in said(proxy)  # fmt: skip


def test_asyncpg_prepares_transactions_and_copies(server, proxy):
    async def main() -> None:
        connection = await asyncpg.connect(dsn(server, proxy))
        assert await connection.execute("insert into invoices (total) values ($1)", 17) == "INSERT 0 1"
        assert await connection.fetchval("select total from invoices where total = $1", 17) == 17
        async with connection.transaction():
            await connection.executemany("insert into invoices (total) values ($1)", [(n,) for n in range(100, 300)])
            async for _ in connection.cursor("select * from invoices", prefetch=50):
                pass
        await connection.copy_records_to_table("invoices", records=[(n,) for n in range(1000, 3000)], columns=["total"])
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute("insert into invoices (total) values ($1)", 17)
        await connection.execute("insert into invoices (total) values (5000); select 1")
        heard: asyncio.Queue[str] = asyncio.Queue()
        await connection.add_listener("jobs", lambda *args: heard.put_nowait(args[-1]))
        await connection.execute("notify jobs, '18'")
        assert await heard.get() == "18"
        await connection.close()

    asyncio.run(main())
    assert proxy.changes() == [
        "postgres INSERT invoices",
        "postgres COMMIT",
        "postgres COPY invoices",
        "postgres INSERT invoices+SELECT",
        "postgres NOTIFY jobs",
    ]
    first = next(unit for unit in proxy.units() if unit.shape == "postgres INSERT invoices")
    assert first.info["params"] == [(17,)]


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_sqlalchemy_sessions(server, proxy, driver):
    engine = sa.create_engine(dsn(server, proxy, f"postgresql+{driver}"))
    table = sa.Table(
        "invoices", sa.MetaData(), sa.Column("id", sa.BigInteger, primary_key=True), sa.Column("total", sa.Integer)
    )
    with engine.begin() as connection:
        made = connection.execute(sa.insert(table).values(total=1)).inserted_primary_key[0]
        connection.execute(sa.update(table).where(table.c.id == made).values(total=2))
    with engine.connect() as connection:
        connection.execute(sa.select(table).with_for_update())
        connection.execute(sa.insert(table), [{"total": n} for n in range(10, 40)])
        connection.rollback()
    engine.dispose()
    assert proxy.changes() == ["postgres COMMIT"]
    shapes = [shape for shape, _ in said(proxy)]
    assert any(shape.endswith("SELECT invoices FOR UPDATE") for shape in shapes)


def test_a_killed_backend_ends_the_reply(server, proxy, world):
    with psycopg.connect(dsn(server, proxy), autocommit=True) as connection:
        pid = connection.info.backend_pid
        assert proxy.connections[0].decoder.backend_pid == pid
        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute("select pg_terminate_backend(%s)", (pid,))
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
    proxy.cut_off = True
    fatal = [unit for unit in proxy.units("server") if unit.failed]
    assert fatal[0].info["error"][0] == "57P01"


def test_encryption_is_refused_and_the_client_goes_on_in_plain(server, proxy):
    with psycopg.connect(dsn(server, proxy), sslmode="prefer") as connection:
        connection.execute("select 1")
    assert [unit for unit in proxy.units() if unit.answer == b"N"]
