"""The PostgreSQL decoder: batches, server truth, COPY, hostile input."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_feeding import FUZZ, cut_at, feed, replies, requests, same_however_cut
from wire_postgres import (
    AUTH_OK,
    BOUND,
    CLOSED,
    COPY_DONE,
    COPY_IN,
    COPY_OUT,
    FLUSH,
    GSS,
    NO_DATA,
    PARSED,
    READY,
    ROW_DESCRIPTION,
    SSL,
    STARTUP,
    SYNC,
    bind,
    connected,
    describe,
    error,
    execute,
    extended,
    msg,
    parse,
    query,
    ready,
    row,
    tag,
    types,
    z,
)

from jobcheck.wire.postgres import PostgresDecoder
from jobcheck.wire.unit import MAX_HELD, Change, Kind

NO, PENDING, YES, MAYBE = Change.NO, Change.PENDING, Change.YES, Change.MAYBE


def talk(*turns: bytes, sizes: tuple[int, ...] = (1, 7, 3)):
    """Client and server in turn."""
    sides = ("client", "server")
    return same_however_cut(connected, [(sides[n % 2], data) for n, data in enumerate(turns)], list(sizes))


def changes(units):
    return [unit.change for unit in units]


def test_ssl_and_gss_requests_are_answered_by_the_tap_and_startup_is_control():
    first = [
        ("client", SSL),
        ("client", GSS),
        ("client", STARTUP),
        ("server", msg("R", struct.pack(">I", 10) + z("x"))),
    ]
    units = same_however_cut(PostgresDecoder, [*first, ("client", msg("p", b"secret")), ("server", READY)], [3])
    assert {unit.kind for side in units.values() for unit in side} == {Kind.CONTROL}
    assert [unit.answer for unit in units["client"]] == [b"N", b"N", None, None]
    assert units["client"][2].info["database"] == "shop"
    assert units["server"][-1].info["backend_pid"] == 4711
    assert units["server"][-1].info["parameters"] == {"server_version": "15.1"}


def test_an_error_at_startup_is_given_out_at_once():
    decoder = PostgresDecoder()
    decoder.client(STARTUP)
    for data in (error("28P01", severity="FATAL"), AUTH_OK + error("3D000", severity="FATAL")):
        (unit,) = decoder.server(data)[-1:]
        assert unit.failed
        assert unit.kind is Kind.CONTROL


def test_a_cancel_request_is_control():
    (unit,) = PostgresDecoder().client(struct.pack(">IIII", 16, 80877102, 1, 2))
    assert (unit.kind, unit.shape) == (Kind.CONTROL, "postgres CancelRequest")


@pytest.mark.parametrize(
    ("sql", "answer", "shape", "guess", "truth"),
    [
        ("insert into a values (1)", tag("INSERT 0 1") + ready(), "INSERT a", YES, YES),
        ("insert into a values (1) on conflict do nothing", tag("INSERT 0 0") + ready(), "INSERT a", YES, NO),
        ("update a set b=1", tag("UPDATE 0") + ready(), "UPDATE a", YES, NO),
        ("select 1", ROW_DESCRIPTION + row(b"1") + tag("SELECT 1") + ready(), "SELECT", NO, NO),
        ("select pay(1)", ROW_DESCRIPTION + row(b"1") + tag("SELECT 1") + ready(), "SELECT pay()", MAYBE, YES),
        ("with x as (update a set b=1 returning *) select * from x", tag("SELECT 1") + ready(),
         "WITH UPDATE a SELECT", YES, YES),
        ("with x as (update a set b=1 returning *) select * from x", tag("SELECT 0") + ready(),
         "WITH UPDATE a SELECT", YES, NO),
        ("select nextval('s')", tag("SELECT 1") + ready(), "SELECT nextval()", YES, YES),
        ("begin; insert into a values (1); commit", tag("BEGIN") + tag("INSERT 0 1") + tag("COMMIT") + ready(),
         "BEGIN+INSERT a+COMMIT", YES, YES),
        ("begin; select 1; commit", tag("BEGIN") + tag("SELECT 1") + tag("COMMIT") + ready(),
         "BEGIN+SELECT+COMMIT", NO, NO),
        ("begin; insert into a values (1)", tag("BEGIN") + tag("INSERT 0 1") + ready("T"), "BEGIN+INSERT a", PENDING,
         PENDING),
        ("insert into a values (1); frob", tag("INSERT 0 1") + error() + ready(), "INSERT", YES, NO),
        ("listen x", tag("LISTEN") + ready(), "LISTEN x", NO, NO),
        ("set a = 1", tag("SET") + ready(), "SET", NO, NO),
        ("create table x (a int)", tag("CREATE TABLE") + ready(), "CREATE TABLE x", YES, YES),
        ("call f()", tag("CALL") + ready(), "CALL f()", YES, YES),
        ("do $$begin end$$", tag("DO") + ready(), "DO", YES, YES),
        ("select pg_advisory_lock(1)", tag("SELECT 1") + ready(), "SELECT pg_advisory_lock()", YES, YES),
        ("", msg("I") + ready(), "QUERY", NO, NO),
        ("insert into a values (1)", error("23505") + ready(), "INSERT a", YES, NO),
    ],
)  # fmt: skip
def test_the_server_outranks_the_guess_about_one_query(sql, answer, shape, guess, truth):
    units = talk(query(sql), answer)
    (request,) = units["client"]
    (reply,) = units["server"]
    assert request.shape.startswith(f"postgres {shape}")
    assert (request.kind, request.change, request.number) == (Kind.REQUEST, guess, 1)
    assert (reply.kind, reply.change, reply.number) == (Kind.REPLY, truth, 1)
    assert reply.failed == (reply.info["error"] is not None)


def test_writes_fold_into_the_commit_which_names_them():
    units = talk(
        query("BEGIN"), tag("BEGIN") + ready("T"),
        extended("insert into job_effects values ($1)", b"charge:17"), PARSED + BOUND + tag("INSERT 0 1") + ready("T"),
        query("SELECT 1"), tag("SELECT 1") + ready("T"),
        query("COMMIT"), tag("COMMIT") + ready("I"),
    )  # fmt: skip
    assert changes(requests(units)) == [NO, PENDING, NO, YES]
    assert changes(replies(units)) == [NO, PENDING, NO, YES]
    insert, commit = units["client"][1], units["client"][3]
    assert insert.summary == "insert into job_effects values ('charge:17')"
    assert commit.shape == "postgres COMMIT"
    assert commit.summary == "COMMIT (INSERT job_effects)"
    assert commit.info["wrote"] == replies(units)[3].info["wrote"] == ("INSERT job_effects",)


@pytest.mark.parametrize(
    ("ending", "answer"),
    [
        ("ROLLBACK", tag("ROLLBACK") + ready()),
        ("COMMIT", tag("ROLLBACK") + ready()),
        ("COMMIT", error("40001") + ready()),
    ],
)
def test_what_is_rolled_back_is_no_change(ending, answer):
    wrote = (query("begin; insert into a values (1)"), tag("BEGIN") + tag("INSERT 0 1") + ready("T"))
    empty = (query("begin; commit"), tag("BEGIN") + tag("COMMIT") + ready())
    units = talk(*wrote, query(ending), answer, *empty)
    assert changes(replies(units)) == [PENDING, NO, NO]


def test_a_commit_after_nothing_was_written_is_no_change():
    units = talk(
        query("begin; update a set b=1"),
        tag("BEGIN") + tag("UPDATE 0") + ready("T"),
        query("commit"),
        tag("COMMIT") + ready(),
    )
    assert changes(replies(units)) == [NO, NO]


def test_rolling_back_to_a_savepoint_forgets_what_came_after_it():
    start = query("begin; savepoint s; insert into a values (1)")
    began = tag("BEGIN") + tag("SAVEPOINT") + tag("INSERT 0 1") + ready("T")
    back = (query("rollback to savepoint s"), tag("ROLLBACK") + ready("T"))
    units = talk(start, began, *back, query("commit"), tag("COMMIT") + ready())
    assert changes(replies(units)) == [PENDING, NO, NO]
    units = talk(start, began, query("frob"), error() + ready("E"), *back, query("commit"), tag("COMMIT") + ready())
    assert changes(replies(units)) == [PENDING, NO, NO, NO]


def test_a_session_lock_is_a_change_at_once_inside_a_transaction():
    units = talk(query("begin; select pg_advisory_lock(1)"), tag("BEGIN") + tag("SELECT 1") + ready("T"))
    assert changes(replies(units)) == [YES]


def test_a_batch_of_the_extended_protocol_is_one_unit_with_its_parameters():
    sent = parse("insert into a values ($1,$2,$3)", oids=(23, 25, 16))
    sent += bind(values=(struct.pack(">i", 17), b"x", None), formats=(1, 0, 1)) + describe("", "P") + execute() + SYNC
    units = talk(sent, PARSED + BOUND + NO_DATA + tag("INSERT 0 1") + ready())
    (request,) = units["client"]
    assert request.raw == sent
    assert request.info["params"] == [(17, "x", None)]
    assert request.info["sql"] == ["insert into a values ($1,$2,$3)"]
    assert request.info["tables"] == ("a",)
    assert request.info["writes"]


def test_what_is_compared_with_the_clock_is_told_with_the_message():
    units = talk(
        parse("delete from a where until < now()") + bind() + execute() + SYNC, PARSED + BOUND + tag("DELETE 0")
    )
    assert units["client"][0].info["clock"] == ("now()",)
    units = talk(query("insert into a (at) values (now())"), tag("INSERT 0 1") + ready())
    assert "clock" not in units["client"][0].info


def test_prepared_statements_are_known_by_name_until_they_are_closed():
    units = talk(
        parse("insert into a values ($1)", "s1") + describe("s1") + FLUSH,
        PARSED + types(20) + NO_DATA,
        bind("s1", (struct.pack(">q", 5),), (1,)) + execute() + SYNC, BOUND + tag("INSERT 0 1") + ready(),
        msg("C", b"S" + z("s1")) + SYNC, CLOSED + ready(),
        bind("s1") + execute() + SYNC, error("26000") + ready(),
        query("prepare p as delete from b"), tag("PREPARE") + ready(),
        query("execute p"), tag("DELETE 1") + ready(),
        query("deallocate all"), tag("DEALLOCATE ALL") + ready(),
        bind("p") + execute() + SYNC, BOUND + tag("DELETE 2") + ready(),
    )  # fmt: skip
    assert [unit.shape.removeprefix("postgres ") for unit in requests(units)] == [
        "PREPARE INSERT a", "INSERT a", "DEALLOCATE", "EXECUTE ?",
        "PREPARE DELETE b", "DELETE b", "DEALLOCATE", "EXECUTE ?",
    ]  # fmt: skip
    assert requests(units)[1].info["params"] == [(5,)]
    assert changes(replies(units)) == [NO, YES, NO, NO, NO, YES, NO, YES]
    assert [unit.number for unit in replies(units)] == list(range(1, 9))


def test_a_flush_ends_a_batch_and_the_sync_commits_it():
    units = talk(
        parse("insert into a values (1)") + bind() + execute() + FLUSH,
        PARSED + BOUND + tag("INSERT 0 1"),
        SYNC,
        ready(),
    )
    assert changes(requests(units)) == [PENDING, YES]
    assert changes(replies(units)) == [PENDING, YES]
    assert requests(units)[1].shape == "postgres SYNC"
    assert replies(units)[1].info["wrote"] == ("INSERT a",)


def test_pipelined_batches_get_their_own_replies():
    one = extended("insert into a values (1)")
    answers = PARSED + BOUND + tag("INSERT 0 1") + ready() + tag("SELECT 1") + ready() + PARSED + error() + ready()
    units = talk(one + query("select 1") + one, answers)
    assert [(unit.number, unit.change) for unit in replies(units)] == [(1, YES), (2, NO), (3, NO)]


def test_many_executes_in_one_batch_are_one_label():
    sent = parse("insert into a values ($1)", "s") + (bind("s", (b"1",)) + execute()) * 50 + SYNC
    units = talk(sent, PARSED + (BOUND + tag("INSERT 0 1")) * 50 + ready(), sizes=(50,))
    assert requests(units)[0].shape == "postgres INSERT a"
    assert len(replies(units)[0].info["tags"]) == 50


def test_flushed_batches_that_the_server_skipped_after_an_error_get_empty_replies():
    batch = parse("insert into a values (1)") + bind() + execute() + FLUSH
    units = talk(batch, PARSED + error("42P01"), batch + batch, b"", SYNC, ready())
    assert [(unit.number, unit.failed, unit.change) for unit in replies(units)] == [
        (1, True, NO),
        (2, True, NO),
        (3, True, NO),
        (4, False, NO),
    ]


@pytest.mark.parametrize("form", ["simple", "extended"])
def test_copy_in_is_a_statement_then_parts_then_the_change(form):
    sql = "copy invoices from stdin"
    start = query(sql) if form == "simple" else extended(sql)
    began = COPY_IN if form == "simple" else PARSED + BOUND + COPY_IN
    end = COPY_DONE if form == "simple" else COPY_DONE + SYNC
    data = msg("d", b"1\tx\n") * 20
    units = talk(
        start, began, data, b"", data + end, tag("COPY 40") + ready(), query("select 1"), tag("SELECT 1") + ready()
    )
    assert [(unit.shape, unit.change) for unit in requests(units)] == [
        ("postgres COPY invoices", NO),
        ("postgres COPY invoices", YES),
        ("postgres SELECT", NO),
    ]
    assert {unit.kind for unit in units["client"]} == {Kind.REQUEST, Kind.PART}
    assert [(unit.number, unit.change) for unit in replies(units)] == [(1, NO), (2, YES), (3, NO)]


def test_a_copy_inside_a_transaction_is_pending_and_a_failed_one_is_nothing():
    begin = (query("begin"), tag("BEGIN") + ready("T"), query("copy a from stdin"), COPY_IN)
    units = talk(*begin, COPY_DONE, tag("COPY 1") + ready("T"), query("commit"), tag("COMMIT") + ready())
    assert changes(replies(units)) == [NO, NO, PENDING, YES]
    units = talk(*begin, msg("f", z("stop")), error("57014") + ready("E"), query("rollback"), tag("ROLLBACK") + ready())
    assert changes(requests(units)) == [NO, NO, NO, NO]
    assert changes(replies(units)) == [NO, NO, NO, NO]


def test_copy_out_is_a_head_and_parts():
    data = COPY_OUT + msg("d", b"1\n") * 9 + msg("c") + tag("COPY 9") + ready()
    units = talk(query("copy a to stdout"), data, query("select 1"), tag("SELECT 1") + ready())
    head, *parts, last = units["server"]
    assert (head.kind, head.number, head.last) == (Kind.REPLY, 1, False)
    assert parts[-1].last
    assert parts[-1].change is NO
    assert (last.kind, last.number) == (Kind.REPLY, 2)


def test_notifications_are_pushed_when_idle_and_kept_in_a_reply():
    note = msg("A", struct.pack(">I", 7) + z("jobs") + z("17"))
    units = talk(query("listen jobs"), note + tag("LISTEN") + note + ready() + note + msg("N", b"Mhi\0\0"))
    assert [unit.kind for unit in units["server"]] == [Kind.PUSH, Kind.REPLY, Kind.PUSH, Kind.CONTROL]
    assert units["server"][0].info == {"channel": "jobs", "payload": "17"}
    assert units["server"][1].info["notifications"] == (("jobs", "17"),)


def test_a_fatal_error_ends_the_reply_without_ready_for_query():
    units = talk(query("insert into a values (1)"), error("57P01", severity="FATAL"))
    (reply,) = units["server"]
    assert (reply.failed, reply.change, reply.info["error"][0]) == (True, NO, "57P01")


def test_a_reply_cut_off_by_the_end_may_have_been_carried_out():
    units = feed(connected(), [("client", query("insert into a values (1)")), ("server", tag("INSERT 0 1"))])
    (reply,) = units["server"]
    assert (reply.kind, reply.number, reply.failed, reply.change) == (Kind.REPLY, 1, True, MAYBE)


def test_a_function_call_may_change_state():
    units = talk(msg("F", struct.pack(">I", 1)), msg("V", struct.pack(">i", -1)) + ready())
    assert (units["client"][0].change, units["server"][0].change) == (MAYBE, YES)


def test_terminate_is_control():
    assert talk(msg("X"))["client"][0].kind is Kind.CONTROL


def test_a_long_reply_is_given_out_in_parts_and_its_last_part_tells_the_truth():
    rows = row(b"x" * 1000) * 6000
    decoder = connected()
    turns = [
        ("client", query("select pay() from t")),
        ("server", ROW_DESCRIPTION + rows + tag("SELECT 6000") + ready()),
    ]
    got = feed(decoder, turns, cut_at([65536]), end=False)
    head, *parts = got["server"]
    assert (head.kind, head.number, head.last, head.change) == (Kind.REPLY, 1, False, MAYBE)
    assert len(head.raw) < MAX_HELD + 200_000
    assert (parts[-1].last, parts[-1].number, parts[-1].change) == (True, 1, YES)


def test_long_parameters_and_queries_are_given_out_in_parts():
    blob = b"x" * (MAX_HELD + 1_000_000)
    decoder = connected()
    turns = [
        ("client", parse("insert into a values ($1)", "s") + bind("s", (blob,)) + execute() + SYNC),
        ("server", PARSED + BOUND + tag("INSERT 0 1") + ready()),
        ("client", query(b"insert into b values ('" + blob + b"')")),
        ("server", tag("INSERT 0 1") + ready()),
        ("client", query("select 1")),
        ("server", tag("SELECT 1") + ready()),
    ]
    got = feed(decoder, turns, cut_at([65536]), end=False)
    assert [(unit.shape, unit.change) for unit in requests(got)] == [
        ("postgres PREPARE INSERT a", NO),
        ("postgres INSERT a", YES),
        ("postgres INSERT b", YES),
        ("postgres SELECT", NO),
    ]
    assert [(unit.number, unit.change) for unit in replies(got)] == [(1, NO), (2, YES), (3, YES), (4, NO)]


def test_an_endless_pipeline_goes_out_in_batches():
    one = parse("insert into a values ($1)") + bind(values=(b"x" * 10_000,)) + execute()
    done = PARSED + BOUND + tag("INSERT 0 1")
    turns = [("client", one * 600 + SYNC), ("server", done * 600 + ready())]
    got = feed(connected(), turns, cut_at([65536]), end=False)
    assert changes(requests(got)) == [PENDING, YES]
    assert changes(replies(got)) == [PENDING, YES]


def test_a_hostile_length_costs_nothing():
    tracemalloc.start()
    decoder = connected()
    decoder.client(b"Q" + struct.pack(">I", 0x3FFFFFFF) + b"select 1")
    decoder.server(b"D" + struct.pack(">I", 0x3FFFFFFF) + b"xxxx")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n", b"\0\0\0\x08\0\0\0\0", b"\0\0\0\x04abcd", b"\xff" * 8])
def test_another_protocol_turns_opaque(data):
    (unit,) = feed(PostgresDecoder(), [("client", data)])["client"]
    assert unit.kind is Kind.OPAQUE
    assert "not postgres as expected" in unit.note


def test_tls_without_an_ssl_request_is_told():
    (unit,) = PostgresDecoder().client(b"\x16\x03\x01\x02\x00")
    assert "sslmode=disable" in unit.note


CLIENT = st.sampled_from(
    [query("begin"), query("insert into a values (1)"), query("copy a from stdin"), query("commit"), bind("s"),
     parse("select 1", "s"), execute(), describe("s"), SYNC, FLUSH, COPY_DONE, msg("d", b"x"), msg("X"), STARTUP, SSL,
     msg("C", b"Ss\0"), msg("F", b"abcd"), b"Q\0\0\0", b"B\0\0\0\x0a\0\0\0\xff\xff\xff", msg("B"), msg("P"),
     msg("Q"), msg("E"), msg("C"), msg("D"), msg("f"), msg("p")]
)  # fmt: skip
SERVER = st.sampled_from(
    [PARSED, BOUND, CLOSED, NO_DATA, ROW_DESCRIPTION, COPY_IN, COPY_OUT, row(b"x"), tag("SELECT 1"), tag("COMMIT"),
     tag("INSERT 0 1"), tag("ROLLBACK"), ready("I"), ready("T"), ready("E"), error(), error(severity="FATAL"),
     msg("I"), msg("s"), types(20), AUTH_OK, READY, msg("A"), msg("N"), msg("S"), msg("t"), msg("Z"), msg("C"),
     msg("E"), msg("K"), msg("R"), msg("V"), msg("d", b"x"), msg("c")]
)  # fmt: skip
TURNS = st.lists(
    st.one_of(
        st.tuples(st.just("client"), st.one_of(CLIENT, CLIENT, CLIENT, st.binary(max_size=12))),
        st.tuples(st.just("server"), st.one_of(SERVER, SERVER, SERVER, st.binary(max_size=12))),
    ),
    max_size=25,
)


@FUZZ
@given(TURNS, st.lists(st.integers(1, 40), min_size=1, max_size=5), st.booleans())
def test_any_bytes_give_the_same_units_however_they_are_cut(turns, sizes, started):
    got = same_however_cut(connected if started else PostgresDecoder, turns, sizes)
    assert not any("decoder failed" in unit.note for units in got.values() for unit in units)
