"""TLS ends in the tap: real clients that insist on it reach plain servers, and every message is seen as without it."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import amqp
import asyncpg
import httpx
import kombu
import psycopg
import pytest
import redis
import redis.asyncio
import requests
from wire_proxy import World

from jobcheck.clock import REAL
from jobcheck.effects.ledger import Ledger
from jobcheck.effects.mail import SmtpSink
from jobcheck.effects.provider import HttpProvider
from jobcheck.faults.toxics import ResetPeer, Slicer
from jobcheck.history.records import Point
from jobcheck.seeds import Seeds
from jobcheck.services.spec import Address, Postgres, Provider, RabbitMQ, Redis, secured
from jobcheck.tap.authority import ALPN, Authority
from jobcheck.tap.gate import Armed
from jobcheck.tap.listener import Slot
from jobcheck.tap.sight import OUT, Sight, Trace
from jobcheck.tap.toxic_engine import EmbeddedToxics
from jobcheck.wire.registry import decoder_for
from jobcheck.wire.unit import Kind

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("tls"))
    yield world
    world.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def redis_server(world: World) -> Address:
    return world.service(Redis()).address


@pytest.fixture(scope="module")
def postgres_server(world: World) -> Address:
    return world.service(Postgres()).address


@pytest.fixture(scope="module")
def amqp_server(world: World) -> Address:
    return world.service(RabbitMQ()).address


class Tap:
    """A TLS tap in front of a server, and what it saw."""

    def __init__(self, world: World, authority: Authority, protocol: str, server: Address, asks: bool) -> None:
        self.asks = asks
        self.world = world
        self.protocol = protocol
        self.server = server
        self.tls = authority.context(HOST, "localhost", protocol=ALPN.get(protocol, ""))
        self.slot = Slot("w1", Trace(REAL))

    def open(self) -> None:
        decoder = partial(decoder_for, self.protocol, tls=self.asks)
        target = (self.server.host, self.server.port)
        port = self.world.run(self.slot.tap(self.protocol, target, decoder, tls=self.tls))
        moved = Address(
            self.server.scheme, HOST, port, self.server.user, self.server.password, self.server.path, self.server.query
        )
        self.address = secured(moved)
        self.url = self.address.url

    @property
    def notes(self) -> list[str]:
        return self.slot.trace.notes

    def shapes(self) -> list[str]:
        """Shapes of the requests, whose answers must all be there."""
        asked = [sight for sight in self.slot.trace.sights if sight.way == OUT and sight.unit.kind is Kind.REQUEST]
        assert not [sight for sight in self.slot.trace.sights if sight.unit.kind is Kind.OPAQUE]
        assert all(sight.reply is not None for sight in asked if sight.link.answers(sight.unit))
        return [sight.unit.shape.partition(" ")[2] for sight in asked]


@pytest.fixture
def tapped(world: World, authority: Authority, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Makes TLS taps; this process finds the authority as a worker would."""
    for name, value in authority.environment().items():
        monkeypatch.setenv(name, value)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    taps: list[Tap] = []

    def make(protocol: str, server: Address, asks: bool = True) -> Tap:
        tap = Tap(world, authority, protocol, server, asks)
        taps.append(tap)
        tap.open()
        return tap

    yield make
    for tap in taps:
        world.run(tap.slot.close())


@contextmanager
def provider(world: World) -> Iterator[HttpProvider]:
    made = HttpProvider("payments", Provider(), Ledger(REAL))
    world.run(made.start())
    try:
        yield made
    finally:
        world.run(made.stop())


@pytest.fixture
def payments(world: World) -> Iterator[HttpProvider]:
    with provider(world) as made:
        yield made


def test_requests_posts_over_https(tapped, payments):
    tap = tapped("http", Address("http", payments.host, payments.port))
    answer = requests.post(f"{tap.address.base}/charges", json={"order": 17}, timeout=10)
    assert answer.status_code == 201
    assert tap.url.startswith("https://127.0.0.1:")
    assert tap.shapes() == ["POST /charges"]
    assert [effect.name for effect in payments.ledger.since(0)] == ["payments POST /charges"]
    assert tap.notes == []


def test_httpx_keeps_to_http_1_whatever_it_could_speak(tapped, payments):
    tap = tapped("http", Address("http", payments.host, payments.port))
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2", "http/1.1"])

    async def main() -> None:
        async with httpx.AsyncClient(verify=context) as client:
            for order in (1, 2):
                answer = await client.post(f"{tap.address.base}/charges", json={"order": order})
                assert answer.status_code == 201
        assert context.check_hostname

    asyncio.run(main())
    assert tap.shapes() == ["POST /charges", "POST /charges"]


def test_redis_over_rediss(tapped, redis_server):
    tap = tapped("redis", redis_server)
    assert "rediss://" in tap.url
    with redis.Redis.from_url(tap.url) as client:
        client.set("key", "x" * 300_000)
        assert len(client.get("key")) == 300_000
    assert tap.shapes()[-2:] == ["SET key", "GET key"]


def test_asyncio_redis_over_rediss(tapped, redis_server):
    tap = tapped("redis", redis_server)

    async def main() -> None:
        async with redis.asyncio.Redis.from_url(tap.url) as client:
            await client.incr("counted")

    asyncio.run(main())
    assert tap.shapes()[-1] == "INCRBY counted"


@pytest.mark.parametrize("mode", ["require", "verify-full", "verify-ca", "prefer"])
def test_psycopg_with_every_sslmode(tapped, mode, postgres_server):
    tap = tapped("postgres", postgres_server)
    assert tap.url.endswith("?sslmode=require")
    with psycopg.connect(tap.url.replace("require", mode)) as connection:
        assert connection.pgconn.ssl_in_use
        connection.execute("create temp table t (a int)")
    assert tap.shapes() == ["BEGIN", "CREATE TABLE t", "COMMIT"]
    assert "postgres startup" in [sight.unit.shape for sight in tap.slot.trace.sights]


def test_psycopg_that_begins_with_tls_at_once(tapped, postgres_server):
    if psycopg.pq.version() < 170000:
        pytest.fail(f"libpq {psycopg.pq.version()} knows no sslnegotiation")
    tap = tapped("postgres", postgres_server)
    with psycopg.connect(tap.url + "&sslnegotiation=direct") as connection:
        connection.execute("select 1")
    assert tap.shapes() == ["BEGIN", "SELECT", "COMMIT"]


def test_asyncpg(tapped, postgres_server):
    tap = tapped("postgres", postgres_server)

    async def main() -> None:
        connection = await asyncpg.connect(tap.url.replace("require", "verify-full"))
        await connection.execute("create temp table t (a int)")
        await connection.close()

    asyncio.run(main())
    assert "CREATE TABLE t" in tap.shapes()


def test_kombu_over_amqps(tapped, authority, amqp_server):
    tap = tapped("amqp", amqp_server)
    assert tap.url.startswith("amqps://")
    trust = {"ca_certs": str(authority.file), "cert_reqs": ssl.CERT_REQUIRED}
    with kombu.Connection(tap.url, ssl=trust) as connection:
        queue = connection.SimpleQueue("orders")
        queue.put({"order": 1})
        message = queue.get(timeout=10)
        assert message.payload == {"order": 1}
        message.ack()
        queue.close()
    assert "basic.publish orders" in tap.shapes()


def test_py_amqp_without_a_word_about_certificates(tapped, amqp_server):
    tap = tapped("amqp", amqp_server)
    connection = amqp.Connection(
        f"{HOST}:{tap.address.port}",
        tap.address.user,
        tap.address.password,
        virtual_host=unquote(tap.address.path),
        ssl=True,
    )
    connection.connect()
    connection.channel().queue_declare("plain", auto_delete=True)
    connection.close()
    assert "queue.declare plain" in tap.shapes()


@pytest.fixture
def mailbox(world: World) -> Iterator[SmtpSink]:
    sink = SmtpSink("mail", Ledger(REAL), tls=True)
    world.run(sink.start())
    yield sink
    world.run(sink.stop())


@pytest.mark.parametrize("implicit", [True, False], ids=["smtps", "starttls"])
def test_smtplib(tapped, mailbox, implicit):
    tap = tapped("smtp", Address("smtp", mailbox.host, mailbox.port), asks=not implicit)
    trust = ssl.create_default_context()
    maker = partial(smtplib.SMTP_SSL, context=trust) if implicit else smtplib.SMTP
    with maker(HOST, tap.address.port, timeout=10) as client:
        if not implicit:
            client.starttls(context=trust)
        client.login("shop", "password")
        client.sendmail("shop@example.com", ["ann@example.com"], "Subject: Paid\r\n\r\nThanks")
    assert tap.shapes() == ["DATA"]
    assert [effect.fields["subject"] for effect in mailbox.ledger.since(0)] == ["Paid"]
    assert tap.notes == []


# What the tap can do with it


def test_a_held_request_reaches_the_server_only_after_its_release(tapped, payments, world):
    tap = tapped("http", Address("http", payments.host, payments.port))
    gate = Armed(Point(id="p", upstream="http", shape="http POST /charges", nth=1), "before", window=True)
    tap.slot.gate = gate

    async def struck() -> None:
        await gate.fired.wait()
        assert payments.ledger.seq == 0
        await tap.slot.cut()

    ended = asyncio.run_coroutine_threadsafe(struck(), world.loop)
    with pytest.raises(requests.ConnectionError):
        requests.post(f"{tap.address.base}/charges", json={"order": 17}, timeout=10)
    ended.result(10)
    assert payments.ledger.seq == 0


def test_a_client_that_brings_its_own_bundle_is_named(tapped, payments, tmp_path: Path):
    tap = tapped("http", Address("http", payments.host, payments.port))
    stranger = Authority(tmp_path)
    with pytest.raises(requests.exceptions.SSLError):
        requests.post(f"{tap.address.base}/charges", verify=str(stranger.file), timeout=10)
    tap.world.settle(lambda: bool(tap.notes), "a note about the handshake")
    assert "http: the client does not trust jobcheck's certificate: it pins one or brings its own" in tap.notes[0]
    assert len(tap.notes) == 1


def test_a_client_that_breaks_off_is_named(tapped, payments):
    tap = tapped("http", Address("http", payments.host, payments.port))

    async def main() -> None:
        _, writer = await asyncio.open_connection(HOST, tap.address.port)
        writer.write(b"\x16\x03\x01\x00\x05\x01")
        writer.close()
        await writer.wait_closed()

    asyncio.run(main())
    tap.world.settle(lambda: bool(tap.notes), "a note about the handshake")
    assert "broke off the TLS handshake" in tap.notes[0]


def test_plain_traffic_passes_and_is_named(tapped, payments):
    tap = tapped("http", Address("http", payments.host, payments.port))
    assert requests.post(f"http://{HOST}:{tap.address.port}/charges", timeout=10).status_code == 201
    assert "plain traffic came to an address that is declared with tls=True" in tap.notes[0]


def test_postgres_without_tls_still_answers_no(world, postgres_server):
    slot = Slot("w1", Trace(REAL))
    server = postgres_server
    port = world.run(slot.tap("db", (server.host, server.port), partial(decoder_for, "postgres")))
    with pytest.raises(psycopg.OperationalError, match="does not support SSL"):
        psycopg.connect(f"postgresql://{server.user}@{HOST}:{port}/{server.path}?sslmode=require")
    world.settle(lambda: bool(slot.trace.notes), "a note")
    assert "say postgres(tls=True) in the rig" in slot.trace.notes[0]
    world.run(slot.close())


def test_the_gate_is_asked_about_what_postgres_clients_encrypt(tapped, postgres_server):
    tap = tapped("postgres", postgres_server)
    seen: list[str] = []

    class Passes:
        def holds(self, sight: Sight) -> bool:
            seen.append(sight.unit.shape)
            return False

    tap.slot.gate = Passes()
    with psycopg.connect(tap.url) as connection:
        connection.execute("select 1")
    assert "postgres COMMIT" in seen


# Toxics act inside


def test_toxics_act_on_what_is_encrypted(tapped, payments, world):
    tap = tapped("http", Address("http", payments.host, payments.port))
    engine = EmbeddedToxics(Seeds(1))
    world.run(engine.attach(tap.slot))
    world.run(engine.add("w1:http", Slicer(average_size=7, size_variation=0, delay=0), name="slices"))
    world.run(engine.add("w1:http", Slicer(average_size=7, size_variation=0, delay=0, stream="upstream"), name="up"))
    assert requests.post(f"{tap.address.base}/charges", data=b"x" * 5000, timeout=10).status_code == 201
    world.run(engine.add("w1:http", ResetPeer(timeout=0), name="reset"))
    with pytest.raises(requests.ConnectionError):
        requests.post(f"{tap.address.base}/charges", timeout=10)
    world.run(engine.reset())
    assert requests.post(f"{tap.address.base}/charges", timeout=10).status_code == 201
    world.run(engine.close())
