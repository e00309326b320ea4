"""SQL labels: what a text does, for texts that parsers trip over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_feeding import FUZZ

from jobcheck.wire.sql import MAX_PARSED, parse_sql, strip_comments
from jobcheck.wire.sql_words import read_words
from jobcheck.wire.unit import Change

NO, YES, MAYBE = Change.NO, Change.YES, Change.MAYBE


@pytest.mark.parametrize(
    ("sql", "labels", "changes"),
    [
        ("insert into job_effects values($1,$2)", ["INSERT job_effects"], [YES]),
        ("INSERT INTO public.job_effects (key) VALUES ($1) ON CONFLICT DO NOTHING", ["INSERT job_effects"], [YES]),
        ('insert into "Billing"."Line Items" default values', ["INSERT Billing.Line Items"], [YES]),
        ("insert into payments_2026_11 values (1)", ["INSERT payments_*_*"], [YES]),
        ("insert into payments_p20261129 values (1)", ["INSERT payments_p*"], [YES]),
        ("LISTEN jobs", ["LISTEN jobs"], [NO]),
        ("NOTIFY jobs, 'x'", ["NOTIFY jobs"], [YES]),
        ("begin; insert into a values (1); commit", ["BEGIN", "INSERT a", "COMMIT"], [NO, YES, NO]),
        ("with x as (update a set b=1 returning *) select * from x", ["WITH UPDATE a SELECT"], [YES]),
        ("with x as (insert into t values (1)) update z set y=1", ["WITH INSERT t UPDATE z"], [YES]),
        ("select * from invoices where id=$1", ["SELECT invoices"], [NO]),
        ("select * from invoices where id=$1 for update skip locked", ["SELECT invoices FOR UPDATE"], [NO]),
        ("select a.x from a join public.b on true", ["SELECT a,b"], [NO]),
        ("select pg_advisory_xact_lock($1)", ["SELECT pg_advisory_xact_lock()"], [NO]),
        ("select pg_try_advisory_lock(1)", ["SELECT pg_try_advisory_lock()"], [YES]),
        ("select nextval('s')", ["SELECT nextval()"], [YES]),
        ("select pay(1)", ["SELECT pay()"], [MAYBE]),
        ("select * from shop.pop_job($1)", ["SELECT shop.pop_job()"], [MAYBE]),
        ("select lower(pg_catalog.upper(x)), count(*), now(), gen_random_uuid() from t", ["SELECT t"], [NO]),
        ("select public.lower('x')", ["SELECT lower()"], [MAYBE]),
        ("select set_config('a', 'b', false), current_setting('a')", ["SELECT"], [NO]),
        ("select extract(epoch from now()), trim('a'), substring('a' from 1), coalesce(1,2)", ["SELECT"], [NO]),
        ("call settle(1)", ["CALL settle()"], [YES]),
        ("do $$ begin perform 1; end $$", ["DO"], [YES]),
        ("copy invoices (a, b) from stdin", ["COPY invoices"], [YES]),
        ("copy (select 1) to stdout", ["COPY TO"], [NO]),
        ("truncate a, b", ["TRUNCATE a"], [YES]),
        ("create table if not exists x (a int)", ["CREATE TABLE x"], [YES]),
        ("create temp table x (a int)", ["CREATE TABLE x"], [NO]),
        ("create table y as select 1", ["CREATE TABLE AS y"], [YES]),
        ("drop table if exists public.x", ["DROP TABLE x"], [YES]),
        ("prepare p as insert into b values ($1)", ["PREPARE INSERT b"], [NO]),
        ("explain delete from a", ["EXPLAIN DELETE a"], [NO]),
        ("explain analyze delete from a", ["EXPLAIN DELETE a"], [YES]),
        ("savepoint s; rollback to s; release s", ["SAVEPOINT", "ROLLBACK TO", "RELEASE"], [NO, NO, NO]),
        ("merge into a using b on true when matched then delete", ["MERGE a"], [YES]),
        ("set local statement_timeout = 5; show x; discard all", ["SET", "SHOW", "DISCARD"], [NO, NO, NO]),
        ("lock table a in share mode", ["LOCK a"], [NO]),
        ("/*app='x',traceparent='00-4bf9-01'*/ update a set b = 1", ["UPDATE a"], [YES]),
        ("update a set b = 1 /*traceparent='00-4bf9-01'*/", ["UPDATE a"], [YES]),
        ("-- who\n-- and why\nselect 1", ["SELECT"], [NO]),
        ("", [], []),
        (" ; ", [], []),
    ],
)
def test_a_text_has_labels_and_changes(sql, labels, changes):
    statements = parse_sql(sql)
    assert [statement.label for statement in statements] == labels
    assert [statement.change for statement in statements] == changes


def test_a_trailing_comment_inside_a_string_stays():
    assert strip_comments("select 'a /* b */'") == "select 'a /* b */'"
    assert strip_comments("select 1 /* b='c' */ ;") == "select 1"


def test_texts_of_several_statements_are_cut_by_bytes():
    first, second = parse_sql("select 'é€'; select 'ü'")
    assert (first.text, second.text) == ("select 'é€'", "select 'ü'")


def test_locks_and_lasting_effects_are_told():
    (update,) = parse_sql("update q set x=1 where id in (select id from q for update skip locked)")
    (lock,) = parse_sql("select pg_advisory_xact_lock(1)")
    (session_lock,) = parse_sql("select pg_advisory_lock(1)")
    assert update.locks
    assert lock.locks
    assert not lock.lasting
    assert session_lock.lasting


@pytest.mark.parametrize(
    ("sql", "counted"),
    [
        ("insert into a select 1", True),
        ("insert into a select pay()", False),
        ("with x as (update a set b=1 returning *) select * from x", True),
        ("with x as (update a set b=1 returning *) select count(*) from x", False),
        ("with x as (update a set b=1 returning *) select * from x where c", False),
        ("with x as (update a set b=1 returning *) select * from y", False),
    ],
)
def test_it_is_known_whether_the_row_count_tells_a_change(sql, counted):
    assert parse_sql(sql)[0].counted is counted


@pytest.mark.parametrize(
    ("sql", "label", "change"),
    [
        ("insert into public.a values " + "(1)," * 40000, "INSERT a", YES),
        ("INSERT INTO a SELECT frm where ?", "INSERT a", YES),
        ("delete from only x where !!", "DELETE x", YES),
        ("select a from t where x in (1,2) frm", "SELECT t", NO),
        ("select pay(1) frm frm", "SELECT", MAYBE),
        ("copy a from stdin wih x", "COPY a", YES),
        ("begin frm", "BEGIN", NO),
        ("rollback to frm frm", "ROLLBACK TO", NO),
        ("frobnicate x", "FROBNICATE", YES),
        ("create flavor x", "CREATE FLAVOR", YES),
    ],
)
def test_what_the_parser_refuses_is_read_by_its_first_words(sql, label, change):
    (statement,) = parse_sql(sql)
    assert (statement.label, statement.change) == (label, change)


@pytest.mark.parametrize("part", ["1+", "not ", "f(", "case when true then ", "array[", "- "])
def test_deep_texts_do_not_break_the_parser(part):
    assert parse_sql("select " + part * 5000 + "1")[0].verb == "SELECT"


def test_a_long_text_costs_little():
    assert len(parse_sql("select '" + "x" * MAX_PARSED * 40 + "'")) == 1


WORDS = [
    "select",
    "insert",
    "into",
    "(",
    ")",
    ";",
    "'",
    "$1",
    "with",
    "as",
    "from",
    "x",
    "/*",
    "*/",
    "--",
    "f",
    "update",
]


@FUZZ
@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join)))
def test_any_text_gives_statements(text):
    for statement in (*parse_sql(text), *read_words(text)):
        assert statement.verb


@pytest.mark.parametrize(
    ("sql", "clocks"),
    [
        ("select * from claims where until < now()", ("now()",)),
        (
            "update c set x = 1 where until < current_timestamp and day = current_date",
            ("CURRENT_DATE", "CURRENT_TIMESTAMP"),
        ),
        (
            "insert into c values (1) on conflict (id) do update set x = 1 where c.until < clock_timestamp()",
            ("clock_timestamp()",),
        ),
        ("select now() - at > $1 as old from c", ("now()",)),
        ("select * from c where age(at) > interval '1h'", ("age()",)),
        ("select * from c where now() between a and b", ("now()",)),
        ("delete from c where tstzrange(a, b) @> localtimestamp(0)", ("LOCALTIMESTAMP",)),
        ("select case when until > pg_catalog.now() then 1 end from c", ("now()",)),
        ("update c set until = now() + interval '10 min' where id = $1", ()),
        ("insert into c (at) values (now())", ()),
        ("select now(), age(a, b) > '1h' from c", ()),
        ("select shop.now() > 1", ()),
        ("select * from c where name = 'now()'", ()),
    ],
)
def test_a_clock_that_is_compared_with_something_is_named(sql: str, clocks: tuple[str, ...]) -> None:
    """One that is only written down decides nothing."""
    assert [statement.clock for statement in parse_sql(sql)] == [clocks]
