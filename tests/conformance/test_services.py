"""One suite for every origin that a broker or database can come from: found on this machine, and from a wheel."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg
import pytest
import redis.exceptions

from jobcheck.aio import wait_for
from jobcheck.errors import ServiceError, UsageError
from jobcheck.seeds import token
from jobcheck.services import start as start_service
from jobcheck.services.base import Environ, Service, free_port
from jobcheck.services.clients import pg_client, pg_query, redis_client, rows
from jobcheck.services.postgres_templates import NAME
from jobcheck.services.spec import Address, Postgres, Provider, Redis, UpstreamSpec
from jobcheck.workers.guardian import Guardian
from jobcheck.workers.supervisor import Supervisor

ORIGINS = ["found", "wheel"]
SCHEMA = """
CREATE TABLE orders (id serial PRIMARY KEY, total int);
CREATE TABLE marks (id bigserial PRIMARY KEY, tiny smallserial, name text);
INSERT INTO orders (total) VALUES (5);
"""


class Rig:
    """What a run hands to its services."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = run = f"conf{token()}"
        self.guardian = Guardian.start(run)
        self.supervisor = Supervisor(run, folder / "logs", self.guardian)
        self.started: list[Service] = []

    async def start(self, spec: UpstreamSpec, name: str = "up", environ: Environ | None = None) -> Service:
        service = await start_service(
            spec,
            name=name,
            supervisor=self.supervisor,
            guardian=self.guardian,
            folder=self.folder,
            environ=environ or {},
            root=self.folder,
        )
        self.started.append(service)
        return service

    async def close(self) -> None:
        for service in self.started:
            await service.stop()
        await self.supervisor.close()
        self.guardian.close()


@pytest.fixture(params=ORIGINS)
def origin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("JOBCHECK_SERVICES", request.param)
    return str(request.param)


def with_rig(folder: Path, body: Callable[[Rig], Awaitable[None]]) -> str:
    """Runs `body` and gives the run's id."""

    async def main() -> str:
        rig = Rig(folder)
        try:
            await body(rig)
        finally:
            await rig.close()
        return rig.run

    return asyncio.run(main())


def left_in_tmp(run: str) -> list[Path]:
    import tempfile

    return [path for folder in (tempfile.gettempdir(), "/dev/shm") for path in Path(folder).glob(f"jobcheck-{run}-*")]


# -- redis --------------------------------------------------------------------------------------------------------


def test_a_private_redis_starts_says_where_it_came_from_and_leaves_nothing(tmp_path: Path, origin: str) -> None:
    async def body(rig: Rig) -> None:
        service = await rig.start(Redis())
        assert service.owned
        assert service.alive
        assert service.kind == "redis"
        assert service.origin.startswith(f"{origin}: ")
        assert service.version[0].isdigit()
        assert service.address.host == "127.0.0.1"

    assert left_in_tmp(with_rig(tmp_path, body)) == []


def test_redis_lanes_do_not_see_each_other_and_start_over_when_asked_again(tmp_path: Path, origin: str) -> None:
    async def body(rig: Rig) -> None:
        service = await rig.start(Redis())
        one, two = await service.namespace("1"), await service.namespace("2")
        assert one.name != two.name
        async with redis_client(one) as client:
            await client.set("key", "value")
        async with redis_client(two) as client:
            assert await client.dbsize() == 0
            await client.set("key", "other")
        assert await service.namespace("1") == one
        async with redis_client(one) as client:
            assert await client.dbsize() == 0
        async with redis_client(two) as client:
            assert await client.get("key") == "other"

    with_rig(tmp_path, body)


def test_a_given_redis_is_left_as_it_was_and_its_full_databases_are_passed_over(tmp_path: Path, origin: str) -> None:
    """The number that was empty is empty again, as long as the claim says that all in it is ours."""

    async def body(rig: Rig) -> None:
        server = (await rig.start(Redis(), "server")).address
        async with redis_client(server) as client:
            await client.set("precious", "1")
        given = await rig.start(Redis(url=server.url), "given")
        assert not given.owned
        assert given.origin == f"given: {server.url}"
        lane = await given.namespace("1")
        assert lane.name == "1", "0 is not empty"
        async with redis_client(lane) as client:
            await client.mset({f"left{number}": "by a job" for number in range(1200)})
            await client.set(b"\xff\x00 no text", "a pickle's key")
        other = await given.namespace("2")
        assert other.name == "2"
        async with redis_client(other) as client:
            await client.delete("jobcheck:claim")
            await client.set("theirs", "by whoever took the number away from us")
        await given.stop()
        async with redis_client(lane) as client:
            assert await client.dbsize() == 0
        async with redis_client(other) as client:
            assert await client.keys("*") == ["theirs"]
        async with redis_client(server) as client:
            assert await client.get("precious") == "1"

    with_rig(tmp_path, body)


def test_two_runs_on_one_given_redis_take_different_databases(tmp_path: Path, origin: str) -> None:
    async def body(rig: Rig) -> None:
        server = (await rig.start(Redis(), "server")).address
        other = Rig(tmp_path)
        try:
            mine = await (await rig.start(Redis(url=server.url), "given")).namespace("1")
            theirs = await (await other.start(Redis(url=server.url), "given")).namespace("1")
            assert mine.name != theirs.name
        finally:
            await other.close()

    with_rig(tmp_path, body)


def test_a_given_redis_without_an_empty_database_is_a_clear_error(tmp_path: Path) -> None:
    async def body(rig: Rig) -> None:
        server = (await rig.start(Redis(), "server")).address
        given = await rig.start(Redis(url=server.url), "given")
        async with redis_client(server) as client, client.pipeline(transaction=False) as pipe:
            for number in range(1024):
                pipe.execute_command("SELECT", number)
                pipe.set("taken", "1")
            await pipe.execute()
        with pytest.raises(ServiceError, match="expected an empty database number"):
            await given.namespace("1")

    with_rig(tmp_path, body)


def test_a_private_server_that_dies_is_noticed(tmp_path: Path, origin: str) -> None:
    async def body(rig: Rig) -> None:
        for service in (await rig.start(Redis(), "broker"), await rig.start(Postgres(), "db")):
            assert service.worker is not None
            # Not SIGKILL: PostgreSQL could not give its shared memory back.
            os.kill(service.worker.pid, signal.SIGTERM if service.kind == "redis" else signal.SIGQUIT)
            await wait_for(lambda one=service: not one.alive, "the death to be noticed", deadline=10)
            with pytest.raises(ServiceError, match=r"ended by itself with exit code .* during the run; its last lines"):
                service.check()
            with pytest.raises(ServiceError):
                await service.namespace("1")

    with_rig(tmp_path, body)


# -- postgres -----------------------------------------------------------------------------------------------------


def test_a_private_postgres_starts_says_where_it_came_from_and_leaves_nothing(tmp_path: Path, origin: str) -> None:
    async def body(rig: Rig) -> None:
        service = await rig.start(Postgres())
        assert service.owned
        assert service.kind == "postgres"
        assert service.origin.startswith(f"{origin}: ")
        assert (await pg_query(await service.namespace("1"), "SELECT 1 + 1 AS two")) == [{"two": 2}]
        version = (await pg_query(service.address, "SHOW server_version"))[0]["server_version"]
        assert version.split()[0] == service.version

    assert left_in_tmp(with_rig(tmp_path, body)) == []


def test_lanes_are_clones_of_what_a_sql_file_prepared(tmp_path: Path, origin: str) -> None:
    (tmp_path / "schema.sql").write_text(SCHEMA)

    async def body(rig: Rig) -> None:
        service = await rig.start(Postgres(setup="schema.sql"))
        one, two = await service.namespace("1"), await service.namespace("2")
        assert one.name != two.name
        assert await pg_query(one, "SELECT total FROM orders") == [{"total": 5}]
        await pg_query(one, "DELETE FROM orders")
        assert await pg_query(two, "SELECT count(*) AS n FROM orders") == [{"n": 1}]
        again = await service.namespace("1")
        assert await pg_query(again, "SELECT count(*) AS n FROM orders") == [{"n": 1}], "the lane started over"

    with_rig(tmp_path, body)


def test_ids_of_lanes_and_tables_are_large_and_differ(tmp_path: Path, origin: str) -> None:
    (tmp_path / "schema.sql").write_text(SCHEMA)

    async def body(rig: Rig) -> None:
        service = await rig.start(Postgres(setup="schema.sql"))
        seen: list[int] = []
        for lane in ("1", "2", "1"):
            address = await service.namespace(lane)
            async with pg_client(address) as client:
                seen += [row["id"] for row in await rows(client, "INSERT INTO orders (total) VALUES (1) RETURNING id")]
                (mark,) = await rows(client, "INSERT INTO marks (name) VALUES ('x') RETURNING id, tiny")
                seen.append(mark["id"])
                assert 1000 < mark["tiny"] < 2**14
        assert len(set(seen)) == len(seen) == 6
        assert min(seen) > 10_000_000
        assert max(seen) < 2**31 - 1

    with_rig(tmp_path, body)


def test_a_setup_command_gets_the_address_and_the_rigs_variables(tmp_path: Path) -> None:
    script = tmp_path / "migrate.py"
    script.write_text(
        "import os, psycopg\n"
        "assert os.environ['SHOP_DB'] == os.environ['DATABASE_URL'], os.environ['SHOP_DB']\n"
        "assert 'SECRET_OF_THE_SHELL' not in os.environ\n"
        "psycopg.connect('', autocommit=True).execute('CREATE TABLE made (id int)')\n"
    )

    async def body(rig: Rig) -> None:
        import sys

        service = await rig.start(
            Postgres(setup=f"{sys.executable} migrate.py"), environ=lambda address: {"SHOP_DB": address.url}
        )
        assert await pg_query(await service.namespace("1"), "SELECT count(*) AS n FROM made") == [{"n": 0}]

    with_rig(tmp_path, body)


def test_a_setup_that_fails_shows_its_output(tmp_path: Path) -> None:
    (tmp_path / "bad.sql").write_text("CREATE TABLE x (")

    async def body(rig: Rig) -> None:
        service = await rig.start(Postgres(setup="echo migrating; echo no such column >&2; exit 4"), "db")
        with pytest.raises(ServiceError) as caught:
            await service.namespace("1")
        assert "failed with exit code 4" in caught.value.message
        assert "migrating\n    no such column" in caught.value.message
        with pytest.raises(ServiceError, match="syntax error"):
            await (await rig.start(Postgres(setup="bad.sql"), "db2")).namespace("1")
        with pytest.raises(UsageError, match=r"db3: expected the setup file .*none\.sql, and there is none"):
            await rig.start(Postgres(setup="none.sql"), "db3")

    with_rig(tmp_path, body)


def test_a_setup_that_leaves_a_session_open_does_not_stop_the_cloning(tmp_path: Path) -> None:
    async def body(rig: Rig) -> None:
        service = await rig.start(Postgres(setup="true"))
        await service.namespace("1")
        template = Address("postgresql", "127.0.0.1", service.address.port, "postgres", path=NAME)
        async with pg_client(template) as client:
            await service.namespace("2")
            with pytest.raises(psycopg.OperationalError):
                await rows(client, "SELECT 1")

    with_rig(tmp_path, body)


def test_a_given_postgres_is_left_as_it_was(tmp_path: Path, origin: str) -> None:
    async def names(address: Address) -> set[str]:
        return {row["datname"] for row in await pg_query(address, "SELECT datname FROM pg_database")}

    async def body(rig: Rig) -> None:
        server = await rig.start(Postgres(), "server")
        await pg_query(server.address, "CREATE DATABASE shop_test")
        shop = Address("postgresql", "127.0.0.1", server.address.port, "postgres", path="shop_test")
        await pg_query(shop, "CREATE TABLE stock (id serial)")
        before = await names(server.address)
        given = await rig.start(Postgres(url=shop.url), "db")
        assert not given.owned
        lane = await given.namespace("1")
        assert await pg_query(lane, "SELECT count(*) AS n FROM stock") == [{"n": 0}], "the named one is the template"
        with_setup = await rig.start(Postgres(url=shop.url, setup="true"), "other")
        await with_setup.namespace("1")
        assert len(await names(server.address)) == len(before) + 3
        async with pg_client(lane):  # a worker that is still connected
            await given.stop()
        await with_setup.stop()
        assert await names(server.address) == before

    with_rig(tmp_path, body)


def test_a_given_template_that_others_use_is_a_clear_error(tmp_path: Path) -> None:
    async def body(rig: Rig) -> None:
        server = await rig.start(Postgres(), "server")
        await pg_query(server.address, "CREATE DATABASE shop_test")
        shop = Address("postgresql", "127.0.0.1", server.address.port, "postgres", path="shop_test")
        given = await rig.start(Postgres(url=shop.url), "db")
        async with pg_client(shop) as other:
            with pytest.raises(ServiceError, match="cannot clone the database 'shop_test'"):
                await given.namespace("1")
            assert await rows(other, "SELECT 1 AS one") == [{"one": 1}], "the other session was left alone"

    with_rig(tmp_path, body)


# -- given by url -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        lambda port: Redis(url=f"redis://:hidden@127.0.0.1:{port}/0"),
        lambda port: Postgres(url=f"postgresql://u:hidden@127.0.0.1:{port}/x"),
    ],
)
def test_a_url_that_nobody_answers_is_one_clear_line(tmp_path: Path, spec: Callable[[int], UpstreamSpec]) -> None:
    async def body(rig: Rig) -> None:
        port = free_port()
        with pytest.raises(ServiceError) as caught:
            await rig.start(spec(port), "broker")
        assert f"broker: expected a server at {spec(port).kind[:5]}" in caught.value.message
        assert "does not answer" in caught.value.message
        assert "\n" not in caught.value.message
        assert "hidden" not in str(caught.value)

    with_rig(tmp_path, body)


def test_a_host_that_is_not_this_machine_must_be_allowed_by_name(tmp_path: Path) -> None:
    async def body(rig: Rig) -> None:
        for spec in (Redis(url="redis://queue.example.com/0"), Postgres(url="postgres://10.0.0.5/shop")):
            with pytest.raises(UsageError, match="not on this machine") as caught:
                await rig.start(spec)
            assert "allow_host=" in caught.value.hint
        with pytest.raises(UsageError):
            await rig.start(Redis(url="redis://queue.example.com/0", allow_host="other.example.com"))

    with_rig(tmp_path, body)


def test_wrong_specs_are_refused_with_what_was_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(rig: Rig) -> None:
        with pytest.raises(UsageError, match="expected a URL like"):
            await rig.start(Redis(url="127.0.0.1:6379"))
        with pytest.raises(UsageError, match="expected a broker or database"):
            await rig.start(Provider())
        monkeypatch.setenv("JOBCHECK_SERVICES", "docker")
        with pytest.raises(UsageError, match="'found' or 'wheel'"):
            await rig.start(Redis())

    with_rig(tmp_path, body)


def test_a_run_may_have_several_servers_at_once(tmp_path: Path, origin: str) -> None:
    async def body(rig: Rig) -> None:
        broker, cache = await rig.start(Redis(), "broker"), await rig.start(Redis(), "cache")
        one, two = await rig.start(Postgres(), "db"), await rig.start(Postgres(), "db2")
        assert len({service.address.port for service in (broker, cache, one, two)}) == 4
        await broker.stop()
        with pytest.raises((redis.exceptions.ConnectionError, OSError)):
            async with redis_client(broker.address) as client:
                await client.ping()
        async with redis_client(cache.address) as client:
            assert await client.ping()

    with_rig(tmp_path, body)
