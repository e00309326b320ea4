"""RabbitMQ: one real node for what a private one can do, one with its management API for what a given one can do."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import amqp
import pytest

from jobcheck.aio import wait_for, wait_until
from jobcheck.errors import ServiceError, UsageError
from jobcheck.seeds import token
from jobcheck.services import find, start
from jobcheck.services.base import Place, free_port
from jobcheck.services.rabbit_control import QueueDepth, parse_depths
from jobcheck.services.rabbitmq_server import RabbitService, start_node
from jobcheck.services.spec import Address, RabbitMQ
from jobcheck.workers import platform
from jobcheck.workers.guardian import Guardian
from jobcheck.workers.supervisor import Supervisor


def with_place(folder: Path, body: Callable[[Place], Awaitable[None]]) -> str:
    """Runs `body` and gives the run's id."""

    async def main() -> str:
        run = f"rabbit{token()}"
        guardian = Guardian.start(run)
        supervisor = Supervisor(run, folder, guardian)
        try:
            await body(Place("broker", supervisor, guardian, folder))
        finally:
            await supervisor.close()
            guardian.close()
        return run

    return asyncio.run(main())


async def started(spec: RabbitMQ, place: Place) -> RabbitService:
    service = await start(
        spec,
        name=place.name,
        supervisor=place.supervisor,
        guardian=place.guardian,
        folder=place.folder,
        environ={},
    )
    assert isinstance(service, RabbitService)
    return service


def connect(address: Address) -> amqp.Connection:
    connection = amqp.Connection(
        f"{address.host}:{address.port}", userid=address.user, password=address.password, virtual_host=address.path
    )
    connection.connect()
    return connection


def test_a_private_node_has_lanes_counts_them_exactly_and_leaves_nothing(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        service = await started(RabbitMQ(), place)
        assert service.owned
        assert service.exact
        assert service.origin == f"found: {find.rabbitmq_bin()}"
        assert service.version[0].isdigit()
        one, two = await service.namespace("1"), await service.namespace("2")
        assert one.path != two.path
        assert await service.depth(one) == []

        connection = connect(one)
        channel = connection.channel()
        channel.confirm_select()
        channel.queue_declare("jobs é:1", durable=True, auto_delete=False)
        channel.queue_declare("reply", exclusive=True)
        for number in range(5):
            channel.basic_publish_confirm(amqp.Message(f"job {number}"), routing_key="jobs é:1")
        jobs, reply = QueueDepth("jobs é:1", 5, 0, False), QueueDepth("reply", 0, 0, True)
        assert await service.depth(one) == [jobs, reply]
        first = channel.basic_get("jobs é:1")
        channel.basic_get("jobs é:1")
        assert (await service.depth(one))[0] == QueueDepth("jobs é:1", 3, 2, False)
        channel.basic_ack(first.delivery_tag)

        async def acked() -> bool:  # an ack has no answer
            return (await service.depth(one))[0] == QueueDepth("jobs é:1", 3, 1, False)

        await wait_until(acked, "the ack", deadline=10)
        assert await service.depth(two) == []
        again = await service.namespace("1")
        assert await service.depth(again) == []
        try:
            connection.close()
        except (OSError, amqp.exceptions.AMQPError):
            pass  # its virtual host was removed under it
        await check_death(service)
        await service.stop()

    run = with_place(tmp_path, body)
    mark = f"JOBCHECK_RUN={run}".encode()
    assert [one.pid for one in platform.processes() if one.alive and platform.carries(one.pid, mark)] == []
    assert [path for base in ("/tmp", "/dev/shm") for path in Path(base).glob(f"jobcheck-{run}-*")] == []


async def check_death(service: RabbitService) -> None:
    """A node that dies is noticed, and asking it is one clear error."""
    assert service.worker is not None
    os.kill(service.worker.pid, signal.SIGKILL)
    await wait_for(lambda: not service.alive, "the death to be noticed", deadline=10)
    with pytest.raises(ServiceError, match="was ended by SIGKILL"):
        await service.namespace("3")
    with pytest.raises(ServiceError, match="hung up|did not answer"):
        await service.depth("/")


def test_a_given_server_gets_virtual_hosts_by_its_management_api_and_is_left_as_it_was(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        script = find.rabbitmq_bin()
        assert script is not None
        port = free_port()
        server = await start_node(
            script,
            place,
            plugins="rabbitmq_management",
            config=f'{{rabbitmq_management, [{{tcp_config, [{{ip, "127.0.0.1"}}, {{port, {port}}}]}}]}}',
        )
        try:
            url = f"amqp://guest:guest@127.0.0.1:{server.address.port}/?management_port={port}&heartbeat=30"
            given = await started(RabbitMQ(url=url), place)
            assert not given.owned
            assert not given.exact
            assert given.version == server.version
            lane = await given.namespace("1")
            assert lane.query == "heartbeat=30"
            connection = connect(lane)
            channel = connection.channel()
            channel.confirm_select()
            channel.queue_declare("jobs", auto_delete=False)
            channel.basic_publish_confirm(amqp.Message("x"), routing_key="jobs")
            assert [one.name for one in await given.depth(lane)] == ["jobs"]
            assert await server.depth(lane) == [QueueDepth("jobs", 1, 0, False)]
            connection.close()
            await given.stop()
            with pytest.raises(amqp.exceptions.NotAllowed):
                connect(lane)
            without = await started(RabbitMQ(url=f"amqp://guest:guest@127.0.0.1:{server.address.port}/"), place)
            with pytest.raises(ServiceError, match="management API at .*:15672.* does not answer"):
                await without.namespace("1")
        finally:
            await server.stop()

    with_place(tmp_path, body)


@pytest.mark.parametrize("taken", [1, 3], ids=["distribution", "control"])
def test_a_node_whose_port_somebody_took_meanwhile_is_started_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    """Between the moment in which a port was found free and the one in which the node wants it."""

    async def body(place: Place) -> None:
        async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as other:
            asked: list[int] = []

            def port() -> int:
                asked.append(other.sockets[0].getsockname()[1] if len(asked) == taken else free_port())
                return asked[-1]

            monkeypatch.setattr("jobcheck.services.base.free_port", port)
            service = await started(RabbitMQ(), place)
            assert len(asked) > 4
            assert await service.depth((await service.namespace("1")).path or "/") == []
            await service.stop()

    with_place(tmp_path, body)


def test_a_url_that_nobody_answers_or_that_is_elsewhere_is_one_clear_error(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        with pytest.raises(ServiceError, match="does not answer") as caught:
            await started(RabbitMQ(url=f"amqp://me:hidden@127.0.0.1:{free_port()}/"), place)
        assert "hidden" not in str(caught.value)
        with pytest.raises(UsageError, match="not on this machine"):
            await started(RabbitMQ(url="amqp://mq.example.com/"), place)
        async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as other:
            port = other.sockets[0].getsockname()[1]
            with pytest.raises(ServiceError, match="expected an AMQP server"):
                await started(RabbitMQ(url=f"amqp://127.0.0.1:{port}/"), place)

    with_place(tmp_path, body)


def test_an_answer_that_is_no_list_of_queues_is_an_error() -> None:
    assert parse_depths(" am9icw==:3:1:0") == [QueueDepth("jobs", 3, 1, False)]
    for text in ("jobs", "a:b:c:d", "!!!:1:1:0"):
        with pytest.raises(ServiceError, match="expected queues"):
            parse_depths(text)
