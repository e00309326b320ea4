"""AMQP traffic as py-amqp and kombu make it against a real RabbitMQ."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import amqp
import kombu
import pytest
from wire_proxy import Proxy, World

from jobcheck.seeds import token
from jobcheck.services.spec import Address, RabbitMQ
from jobcheck.wire.unit import Change, Kind

NO, PENDING, YES, MAYBE = Change.NO, Change.PENDING, Change.YES, Change.MAYBE


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("amqp"))
    yield world
    world.close()


@pytest.fixture(scope="module")
def server(world: World) -> Address:
    service = world.service(RabbitMQ())
    return world.run(service.namespace("1"))


@pytest.fixture
def proxy(world: World, server: Address) -> Iterator[Proxy]:
    with world.proxy("amqp", server.port) as proxy:
        yield proxy


@pytest.fixture
def queue() -> str:
    return f"jobs_{token(4).translate(str.maketrans('0123456789', 'ghijklmnop'))}"


def connect(server: Address, proxy: Proxy, **more: object) -> amqp.Connection:
    connection = amqp.Connection(
        f"127.0.0.1:{proxy.port}", userid=server.user, password=server.password, virtual_host=server.path, **more
    )
    connection.connect()
    return connection


def said(proxy: Proxy) -> list[tuple[str, Change]]:
    return [(shape.removeprefix("amqp "), truth) for shape, _, truth in proxy.said()]


def test_py_amqp_publishes_gets_and_acks(server, proxy, queue):
    with connect(server, proxy) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, auto_delete=False)
        message = amqp.Message("[17]", application_headers={"task": "charge", "id": "x-1", "n": [1, {"a": None}]})
        channel.basic_publish(message, routing_key=queue)
        channel.basic_publish(amqp.Message(b"y" * 400_000), routing_key=queue)
        first = channel.basic_get(queue)
        while first is None:  # a publish is not answered, so the message may be on its way
            first = channel.basic_get(queue)
        channel.basic_ack(first.delivery_tag)
        channel.queue_purge(queue)
        channel.queue_delete(queue)
    truths = [entry for entry in said(proxy) if entry != (f"basic.get {queue}", NO)]
    assert truths == [
        (f"queue.declare {queue}", NO), (f"basic.publish {queue}", YES), (f"basic.publish {queue}", YES),
        (f"basic.get {queue}", YES), ("basic.ack", YES), (f"queue.purge {queue}", YES), (f"queue.delete {queue}", YES),
    ]  # fmt: skip
    sent = [unit for unit in proxy.units() if unit.shape.startswith("amqp basic.publish")]
    assert sent[0].info["properties"]["headers"] == {"task": "charge", "id": "x-1", "n": [1, {"a": None}]}
    assert sent[0].summary == f"basic.publish {queue} charge x-1 [17]"
    assert len(sent[1].raw) > 400_000
    got = next(unit for unit in proxy.units("server") if unit.info.get("method") == "basic.get-ok")
    assert got.info["body"] == b"[17]"


def test_py_amqp_consumes(server, proxy, queue):
    got: list[amqp.Message] = []
    with connect(server, proxy, heartbeat=5) as connection:
        channel = connection.channel()
        channel.queue_declare(queue)
        channel.basic_qos(0, 1, False)
        channel.basic_consume(queue, callback=got.append)
        for number in range(3):
            channel.basic_publish(amqp.Message(f"[{number}]", correlation_id=str(number)), routing_key=queue)
        for number in range(3):
            while len(got) <= number:
                connection.drain_events(timeout=10)
            channel.basic_ack(got[number].delivery_tag)
        connection.send_heartbeat()
    pushed = [unit for unit in proxy.units("server") if unit.kind is Kind.PUSH]
    assert [(unit.shape, unit.info["queue"], unit.info["body"]) for unit in pushed] == [
        (f"amqp basic.deliver {queue}", queue, f"[{number}]".encode()) for number in range(3)
    ]
    assert [unit.info["delivery_tag"] for unit in proxy.units() if unit.shape == "amqp basic.ack"] == [1, 2, 3]
    assert any(unit.info.get("heartbeat") for unit in proxy.units())


def test_py_amqp_confirms_and_transactions(server, proxy, queue):
    with connect(server, proxy, confirm_publish=True) as connection:
        channel = connection.channel()
        channel.queue_declare(queue)
        for number in range(5):
            channel.basic_publish(amqp.Message(f"[{number}]"), routing_key=queue)
    with connect(server, proxy) as connection:
        channel = connection.channel()
        channel.tx_select()
        channel.basic_publish(amqp.Message("[]"), routing_key=queue)
        channel.tx_commit()
        channel.tx_rollback()
    confirmed, transacted = (connection.said() for connection in proxy.connections)
    assert [truth for shape, _, truth in confirmed if "publish" in shape] == [YES] * 5
    assert [(shape.removeprefix("amqp "), truth) for shape, _, truth in transacted] == [
        ("tx.select", NO), (f"basic.publish {queue}", PENDING), ("tx.commit", YES), ("tx.rollback", NO),
    ]  # fmt: skip


def test_py_amqp_an_error_closes_the_channel_and_the_connection_goes_on(server, proxy, queue):
    with connect(server, proxy) as connection:
        channel = connection.channel()
        with pytest.raises(amqp.NotFound):
            channel.basic_get(queue)
        again = connection.channel()
        again.queue_declare(queue)
    failed = [unit for unit in proxy.units("server") if unit.failed]
    assert [(unit.kind, unit.info["reply_code"], unit.change) for unit in failed] == [(Kind.REPLY, 404, NO)]


def test_kombu_producers_and_consumers(server, proxy, queue):
    got: list[object] = []

    def take(body: object, message: kombu.Message) -> None:
        got.append(body)
        message.ack()

    url = f"amqp://{server.user}:{server.password}@127.0.0.1:{proxy.port}/{server.path}"
    with kombu.Connection(url) as connection:
        where = kombu.Queue(queue, kombu.Exchange(queue, type="direct"), routing_key=queue)
        with connection.Producer(serializer="json") as producer:
            for number in range(10):
                producer.publish([number], exchange=where.exchange, routing_key=queue, declare=[where])
        with connection.Consumer(where, callbacks=[take]):
            while len(got) < 10:
                connection.drain_events(timeout=10)
    assert got == [[number] for number in range(10)]
    assert proxy.changes().count(f"amqp basic.publish {queue}") == 10
    assert proxy.changes().count("amqp basic.ack") == 10
    assert sum(unit.shape == f"amqp basic.deliver {queue}" for unit in proxy.units("server")) == 10


def test_a_wrong_password_ends_the_connection(server, proxy):
    connection = amqp.Connection(
        f"127.0.0.1:{proxy.port}", userid="nobody", password="hunter2", virtual_host=server.path
    )
    with pytest.raises((amqp.AccessRefused, socket.error)):
        connection.connect()
    assert not any("hunter2" in unit.summary for unit in proxy.units())
