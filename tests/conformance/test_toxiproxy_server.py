"""The real Toxiproxy server: found, given, missing, dying, and shared with others."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from toxic_world import DEADLINE, PROXY, End, World, play

from jobcheck.aio import wait_for
from jobcheck.errors import ServiceError, UsageError
from jobcheck.faults.toxics import Latency, LimitData
from jobcheck.network import toxiproxy_server
from jobcheck.network.toxiproxy import ToxiproxyEngine
from jobcheck.seeds import token
from jobcheck.workers import platform
from jobcheck.workers.guardian import Guardian
from jobcheck.workers.supervisor import Supervisor, Worker


def real(folder: Path, body: Callable[[World, ToxiproxyEngine[Worker]], Awaitable[None]]) -> None:
    """Runs the body with a private server, and the engine that drives it."""

    async def inner(world: World) -> None:
        assert isinstance(world.engine, ToxiproxyEngine)
        await body(world, world.engine)

    play("toxiproxy", folder, inner)


def url_of(engine: ToxiproxyEngine[Worker]) -> str:
    assert engine._api is not None
    return engine._api.base


free_port = toxiproxy_server._free_port


def supervised(folder: Path, body: Callable[[Supervisor], Awaitable[None]]) -> None:
    async def main() -> None:
        supervisor = Supervisor(f"toxiproxy-{token()}", folder)
        try:
            await body(supervisor)
        finally:
            await supervisor.close()

    asyncio.run(main())


def test_the_engine_says_which_server_it_drives(tmp_path: Path) -> None:
    async def body(world: World, engine: ToxiproxyEngine[Worker]) -> None:
        assert engine.describe.startswith("toxiproxy-server ")
        assert str(toxiproxy_server.find_server()) in engine.describe

    real(tmp_path, body)


def test_of_a_given_server_only_our_own_proxies_are_touched(tmp_path: Path) -> None:
    async def body(world: World, owner: ToxiproxyEngine[Worker]) -> None:
        await owner.add(PROXY, LimitData(1))
        guest = ToxiproxyEngine[Worker](url=url_of(owner))
        await guest.start()
        assert f"given: {url_of(owner)}" in guest.describe
        address = await guest.proxy(PROXY, *world.upstream)
        await guest.add(PROXY, LimitData(1))
        await guest.disable(PROXY)
        await guest.reset()
        client, server = await world.connect(address)
        server.send(b"ab")
        await client.got(b"ab")
        await guest.close()
        client, server = await world.connect()
        server.send(b"ab")
        await client.got(b"a")
        await client.saw_the_end()
        with pytest.raises(ConnectionRefusedError):
            await world.connect(address)

    real(tmp_path, body)


def test_a_server_of_somebody_else_on_our_port_is_not_taken_for_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(world: World, first: ToxiproxyEngine[Worker]) -> None:
        visits: list[End] = []

        def visited() -> End:
            visits.append(End())
            return visits[-1]

        silent = await asyncio.get_running_loop().create_server(visited, "127.0.0.1", 0)
        ports = [int(url_of(first).rpartition(":")[2]), silent.sockets[0].getsockname()[1], free_port()]
        wanted = list(ports)
        monkeypatch.setattr(toxiproxy_server, "_free_port", lambda: wanted.pop(0))
        monkeypatch.setattr("jobcheck.network.toxiproxy_api.WITHIN", 0.2)
        supervisor = Supervisor(f"second-{token()}", tmp_path)
        second = ToxiproxyEngine[Worker](supervisor)
        await second.start()
        assert url_of(second).endswith(f":{ports[-1]}")
        assert [worker.alive for worker in supervisor.workers] == [True]
        await second.close()
        assert supervisor.workers == []
        silent.close()
        for visit in visits:
            visit.close()

    real(tmp_path, body)


def test_no_server_on_path_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(supervisor: Supervisor) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(ServiceError, match="toxiproxy-server on PATH") as caught:
            await ToxiproxyEngine[Worker](supervisor).start()
        assert "go install" in caught.value.hint
        assert "cmd/server@v2.12.0" in caught.value.hint

    supervised(tmp_path, body)


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/toxiproxy-server"])
def test_a_program_that_is_no_server_is_named(tmp_path: Path, program: str) -> None:
    async def body(supervisor: Supervisor) -> None:
        with pytest.raises(ServiceError, match=program):
            await ToxiproxyEngine[Worker](supervisor, program=Path(program)).start()

    supervised(tmp_path, body)


def test_without_the_clients_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(supervisor: Supervisor) -> None:
        monkeypatch.setitem(sys.modules, "toxiproxy.api", None)
        with pytest.raises(ServiceError, match="toxiproxy-python") as caught:
            await ToxiproxyEngine[Worker](supervisor).start()
        assert caught.value.hint == "pip install 'jobcheck[toxiproxy]'"

    supervised(tmp_path, body)


@pytest.mark.parametrize("url", ["http://toxiproxy.example.com:8474", "http://10.0.0.7", "127.0.0.1:8474", "https://x"])
def test_a_url_that_cannot_be_used_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="toxiproxy: expected"):
        asyncio.run(ToxiproxyEngine[Worker](url=url).start())


def test_a_given_server_that_is_not_there_is_named() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ServiceError, match=f"{url} to answer"):
        asyncio.run(ToxiproxyEngine[Worker](url=url).start())


def test_an_engine_that_was_not_started_says_so() -> None:
    with pytest.raises(ServiceError, match="to be started before"):
        asyncio.run(ToxiproxyEngine[Worker]().proxy("db", "127.0.0.1", 1))


def test_a_server_that_dies_during_the_run_is_named_with_how_it_ended(tmp_path: Path) -> None:
    async def body(supervisor: Supervisor) -> None:
        engine = ToxiproxyEngine[Worker](supervisor)
        await engine.start()
        await engine.proxy("db", "127.0.0.1", 1)
        os.kill(supervisor.workers[0].pid, signal.SIGKILL)
        await wait_for(lambda: not supervisor.workers[0].alive, "its end", deadline=DEADLINE)
        with pytest.raises(ServiceError, match=r"was ended by SIGKILL, which jobcheck did not send, during the run"):
            await engine.add("db", Latency(1))
        await engine.close()

    supervised(tmp_path, body)


def test_the_guardian_ends_the_server_of_a_run_that_did_not(tmp_path: Path) -> None:
    async def main() -> None:
        run = f"left-{token()}"
        guardian = Guardian.start(run)
        supervisor = Supervisor(run, tmp_path, guardian)
        await ToxiproxyEngine[Worker](supervisor).start()
        pid = supervisor.workers[0].pid
        await asyncio.to_thread(guardian.close)
        await wait_for(lambda: not supervisor.workers[0].alive, f"the end of {pid}", deadline=DEADLINE)
        await supervisor.close()
        assert platform.start_time(pid) is None

    asyncio.run(main())


def test_a_developers_http_proxy_and_other_users_of_the_library_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toxiproxy.api import APIConsumer

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    async def body(world: World, engine: ToxiproxyEngine[Worker]) -> None:
        await engine.add(PROXY, Latency(1))
        assert (APIConsumer.host, APIConsumer.port) == ("127.0.0.1", 8474)

    real(tmp_path, body)


def test_what_the_server_refuses_is_said_in_its_own_words(tmp_path: Path) -> None:
    async def body(world: World, engine: ToxiproxyEngine[Worker]) -> None:
        api = engine._running()
        with pytest.raises(ServiceError, match="refused post /proxies/nobody/toxics: proxy not found"):
            await asyncio.to_thread(api.add, "nobody", {"type": "latency"})
        with pytest.raises(ServiceError, match="missing required field"):
            await asyncio.to_thread(api.create, "", "127.0.0.1:1")

    real(tmp_path, body)
