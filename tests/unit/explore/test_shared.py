"""Which messages are about state that two deliveries share, by what real decoders say of them."""

from __future__ import annotations

import struct

import pytest

from jobcheck.explore.shared import Shared, places
from jobcheck.wire.postgres import PostgresDecoder
from jobcheck.wire.resp import RespDecoder
from jobcheck.wire.unit import Change, Kind, Unit

LINK = 7


class Connection:
    """A connection to PostgreSQL whose client speaks simple queries."""

    def __init__(self, link: int = LINK) -> None:
        self.link = link
        self._decoder = PostgresDecoder()
        body = b"\x00\x03\x00\x00user\x00u\x00\x00"
        self._decoder.client(struct.pack(">I", len(body) + 4) + body)

    def says(self, sql: str) -> Unit:
        text = sql.encode() + b"\x00"
        (unit,) = self._decoder.client(b"Q" + struct.pack(">I", len(text) + 4) + text)
        return unit


def redis(*commands: str) -> list[Unit]:
    decoder, units = RespDecoder(), []
    for command in commands:
        words = command.split()
        data = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        units += decoder.client(data.encode())
    return units


def learnt(*statements: str) -> Shared:
    """After a run with these statements."""
    shared, one = Shared(), Connection(99)
    shared.learn(("db", one.says(sql)) for sql in statements)
    return shared


def test_before_anything_is_learnt_every_look_counts_and_talk_does_not() -> None:
    shared, one = Shared(), Connection()
    counted = [
        sql for sql in ("BEGIN", "SELECT 1 FROM t", "SELECT 1", "COMMIT") if shared.counts("db", 1, one.says(sql))
    ]
    assert counted == ["SELECT 1 FROM t"]


def test_a_read_counts_where_its_table_is_written_on_the_same_upstream() -> None:
    shared, one = learnt("INSERT INTO markers VALUES (1)"), Connection()
    assert shared.counts("db", LINK, one.says("SELECT 1 FROM markers WHERE id = 1"))
    assert shared.counts("db", LINK, one.says("SELECT 1 FROM orders JOIN markers USING (id)"))
    assert not shared.counts("db", LINK, one.says("SELECT 1 FROM orders"))
    assert not shared.counts("reports", LINK, one.says("SELECT 1 FROM markers"))


def test_a_commit_names_no_table_of_its_own() -> None:
    shared, one = learnt("BEGIN", "INSERT INTO markers VALUES (1)", "COMMIT"), Connection()
    assert shared.written == {("db", "markers")}
    assert not shared.counts("db", LINK, one.says("SELECT 1 FROM orders"))


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1)",
        "SELECT 1 FROM orders FOR UPDATE",
        "SELECT pg_advisory_xact_lock(1)",
        "SELECT who_knows(1)",
        "LOCK TABLE orders",
    ],
)
def test_what_writes_or_locks_counts_whatever_was_learnt(sql: str) -> None:
    one = Connection()
    unit = one.says(sql)
    assert learnt("INSERT INTO markers VALUES (1)").counts("db", LINK, unit)
    assert Shared().changes(unit)


def test_the_end_of_a_transaction_counts_when_it_wrote() -> None:
    shared, one = learnt("INSERT INTO t VALUES (1)"), Connection()
    script = ["BEGIN", "SELECT 1 FROM orders", "ROLLBACK", "BEGIN", "INSERT INTO t VALUES (1)", "ROLLBACK"]
    assert [shared.counts("db", LINK, one.says(sql)) for sql in script] == [False, False, False, False, True, True]
    script = ["BEGIN", "INSERT INTO t VALUES (1)", "COMMIT", "BEGIN", "COMMIT"]
    assert [shared.counts("db", LINK, one.says(sql)) for sql in script] == [False, True, True, False, False]


def test_the_first_read_of_an_isolated_transaction_takes_its_snapshot_so_it_counts() -> None:
    shared, one = learnt("INSERT INTO t VALUES (1)"), Connection()
    script = ["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1 FROM orders", "SELECT 1 FROM orders"]
    assert [shared.counts("db", LINK, one.says(sql)) for sql in script] == [False, True, False]


def test_keys_of_redis_are_compared_without_their_ids() -> None:
    shared = Shared()
    shared.learn(("cache", unit) for unit in redis("SET lock:4711 1", "INCR hits"))
    assert shared.written == {("cache", "lock:*"), ("cache", "hits")}
    read, other = redis("GET lock:4712", "GET settings")
    assert shared.counts("cache", LINK, read)
    assert not shared.counts("cache", LINK, other)


def test_what_redis_queues_is_seen_by_nobody_before_its_exec() -> None:
    shared = Shared()
    units = redis("MULTI", "SET a 1", "EXEC")
    shared.learn(("cache", unit) for unit in units)
    assert [shared.counts("cache", LINK, unit) for unit in units] == [False, False, True]


def test_a_protocol_that_names_no_places_is_taken_as_a_whole() -> None:
    shared = Shared()
    shared.learn([("payments", Unit(b"", Kind.REQUEST, "http POST /charges", 1, Change.YES))])
    look = Unit(b"", Kind.REQUEST, "http GET /charges", 2, Change.NO)
    assert shared.counts("payments", LINK, look)
    assert not shared.counts("accounting", LINK, look)
    assert not shared.changes(look)


def test_unknown_functions_that_write_may_write_anywhere() -> None:
    unit = Connection().says("SELECT mystery(1) FROM orders")
    assert places(unit) == {"*", "orders"}


def test_bytes_that_nobody_decoded_count() -> None:
    assert learnt("INSERT INTO t VALUES (1)").counts("db", LINK, Unit(b"x", Kind.OPAQUE, "opaque", change=Change.MAYBE))
