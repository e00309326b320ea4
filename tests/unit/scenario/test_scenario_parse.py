"""A scenario file becomes values, and what is wrong in it is named with its line and the nearest right word."""

from __future__ import annotations

import textwrap

import pytest

from jobcheck.checks.backoff import BackoffRule
from jobcheck.checks.contracts import at_least_once, exactly_once
from jobcheck.errors import EXIT_USAGE, UsageError
from jobcheck.faults.model import (
    Delay,
    Deploy,
    Duplicate,
    Fail,
    Kill,
    Messages,
    NamedPoint,
    Outage,
    Poison,
    Reorder,
    Restart,
)
from jobcheck.faults.outages import Reply
from jobcheck.faults.toxics import Latency, LimitData, ResetPeer
from jobcheck.faults.triggers import After, Span, Trigger
from jobcheck.scenario.model import BackoffIs, ContractHolds, CountsAre, NoneLost, Provided, RecoveredWithin, Scenario
from jobcheck.scenario.parse import parse
from jobcheck.scenario.read_faults import KINDS

WHOLE = """\
title: Invoices survive a payments outage while workers die
rig: apps/invoices/rig.py:shop
workload:
  enqueue: new_invoice
  count: 300
  rate: 20/s
  values: {customer: name, amount: {pyint: {max_value: 500}}}
workers: 3
seed: 7
versions: {v1: apps/v1, v2: apps/v2}
engine: toxiproxy
clock: {speed: 100}
timeouts: {ready: 20s, drain: 1m30s}
faults:
  - {kill: tree, every: 3s, during: 5s..20s}
  - {kill: child, worker: w2, at: 1500ms, restart: never}
  - {kill: tree, point: after payments POST /charges, nth: 2, times: 3}
  - {duplicate: 10%, mode: while_running}
  - {duplicate: 5%, mode: later, delay: 2s}
  - {reorder: 20%, cases: 3, times: 2}
  - {delay: 20%, by: 3 deliveries, during: 2s}
  - {delay: each 5, by: 500ms}
  - {outage: payments, status: 503, at: 5s, for: 10s}
  - {toxic: latency, upstream: db, latency: 200, jitter: 50ms, toxicity: 50%, stream: upstream, for: 20s, on: w1}
  - {toxic: limit_data, upstream: broker, bytes: 4096}
  - {toxic: reset_peer, point: payments POST  /charges, stream: upstream, first: 2}
  - {toxic: latency, latency: 5, upstream: db, point: db COMMIT, nth: 3}
  - {deploy: v2, at: 12s, mix: 50%, rollback: true, for: 3s}
  - {restart: all, after: 20 deliveries}
  - {kill: broker, every: 30s, for: 15s}
  - {restart: db, point: after db COMMIT}
  - {wipe: broker, at: 3s}
  - {read_only: db, point: before broker reserve, for: 10s}
  - {exhaust: db}
  - {restart: w1, point: before mail DATA}
  - {deploy: v2, point: before broker ack}
settle: [run_relay]
expect:
  - exactly_once: payments POST /charges
  - at_least_once: {effect: mail, key: subject}
  - "exactly once: db rows, by json:id"
  - none_lost
  - counts: {lost: 0, recovered: ">= 1"}
  - recovered_within: 30s
  - backoff: {provider: payments, route: POST /charges, base: 1s, factor: 2, jitter: full, max_attempts: 8}
"""


def test_every_field_of_a_file_is_read() -> None:
    """One file with everything in it."""
    scenario = parse(WHOLE, "s.yaml")
    assert (scenario.title, scenario.rig) == (
        "Invoices survive a payments outage while workers die",
        "apps/invoices/rig.py:shop",
    )
    work = scenario.workload
    assert (work.enqueue, work.count, work.rate, work.length) == ("new_invoice", 300, 20.0, 15.0)
    assert work.values == {"customer": Provided("name"), "amount": Provided("pyint", {"max_value": 500})}
    assert (scenario.worker_names, scenario.seed, scenario.engine) == (("w1", "w2", "w3"), 7, "toxiproxy")
    assert (scenario.timeouts.ready, scenario.timeouts.drain, scenario.timeouts.trial) == (20.0, 90.0, 600.0)
    assert scenario.versions == {"v1": "apps/v1", "v2": "apps/v2"}
    assert (scenario.speed, scenario.real_clocks, small().speed, small().real_clocks) == (100.0, False, 1.0, False)
    assert scenario.settle == ("run_relay",)
    assert scenario.faults == (
        Kill(trigger=Trigger(every=3.0, during=Span(5.0, 20.0))),
        Kill("child", "w2", None, trigger=Trigger(at=1.5)),
        Kill(point=NamedPoint("payments POST /charges", "after", 2), trigger=Trigger(times=3)),
        Duplicate(0.1, "while running"),
        Duplicate(0.05, "later", 2.0),
        Reorder(0.2, 3, Trigger(times=2)),
        Delay(0.2, others=3, trigger=Trigger(during=Span(0.0, 2.0))),
        Delay(each=5, seconds=0.5),
        Outage("payments", Reply(503), Trigger(at=5.0, lasts=10.0)),
        Poison(Latency(200, jitter=50, toxicity=0.5, stream="upstream"), "db", "w1", Trigger(lasts=20.0)),
        Poison(LimitData(4096), "broker"),
        Poison(ResetPeer(stream="upstream"), "payments", messages=Messages("payments POST /charges", first=2)),
        Poison(Latency(5), "db", messages=Messages("db COMMIT", nth=3)),
        Deploy("v2", "v1", 0.5, rollback=True, trigger=Trigger(at=12.0, lasts=3.0)),
        Restart("all", Trigger(after=After(20, "deliveries"))),
        Fail("broker", "kill", trigger=Trigger(every=30.0, lasts=15.0)),
        Fail("db", "restart", NamedPoint("db COMMIT", "after")),
        Fail("broker", "wipe", trigger=Trigger(at=3.0)),
        Fail("db", "read_only", NamedPoint("broker reserve"), Trigger(lasts=10.0)),
        Fail("db", "exhaust"),
        Restart("w1", point=NamedPoint("mail DATA")),
        Deploy("v2", "v1", point=NamedPoint("broker ack")),
    )
    assert scenario.expect == (
        ContractHolds(exactly_once("payments POST /charges")),
        ContractHolds(at_least_once("mail", "subject")),
        ContractHolds(exactly_once("db rows", "json:id")),
        NoneLost(),
        CountsAre(scenario.expect[4].limits),  # type: ignore[union-attr]
        RecoveredWithin(30.0),
        BackoffIs(BackoffRule("payments", 1.0, jitter="full", route="POST /charges", max_attempts=8)),
    )
    assert scenario.expect[4].text == "counts: lost = 0, recovered >= 1"


def test_every_fault_knows_its_lines() -> None:
    """For errors that are found when the rig is known."""
    scenario = parse(block("faults:\n  - toxic: down\n    upstream: dbb\n"), "a/b.yaml")
    where = scenario.faults[0].where
    assert where.of("upstream") == "a/b.yaml:6"
    assert where.of() == where.of("no such field") == "a/b.yaml:5"
    assert where.lead("upstream") == "a/b.yaml:6: "


def test_a_duration_gives_the_number_of_cases() -> None:
    assert small(workload="{enqueue: f, duration: 1m, rate: 30/m}").workload.count == 30


def block(rest: str) -> str:
    return "title: t\nrig: rig.py:shop\nworkload: {enqueue: f, count: 1, rate: 1/s}\n" + rest + "expect: [none_lost]\n"


def small(**fields: str) -> Scenario:
    """A scenario of one line a field, in the order title, rig, workload, then what is given."""
    said = {
        "title": "t",
        "rig": "rig.py:shop",
        "workload": "{enqueue: f, count: 1, rate: 1/s}",
        **fields,
    }
    said.setdefault("expect", "[none_lost]")
    return parse("".join(f"{name}: {value}\n" for name, value in said.items() if value), "x.yaml")


def faults(*items: str) -> Scenario:
    """A scenario whose first fault stands in line 5."""
    return small(faults="\n" + "".join(f"  - {item}\n" for item in items).rstrip("\n"))


FAULT_ERRORS = {
    "{kil: tree}": "unknown fault 'kil'; did you mean 'kill'?",
    "{kill: tre}": "unknown scope of a kill 'tre'; did you mean 'tree'?",
    "{kill: tree, worker: w9}": "unknown worker 'w9'; there are any, w1, w2",
    "{kill: tree, evry: 3s}": "unknown field of a kill 'evry'; did you mean 'every'?",
    "{kill: tree, every: 3}": "expected a duration such as 3s, 500ms or 2m, got '3'; did you mean 3s?",
    "{kill: tree, every: 0s}": "expected a duration such as 3s, 500ms or 2m, longer than 0s, got '0s'",
    "{kill: tree, at: soon}": "expected a duration such as 3s, 500ms or 2m, got 'soon'",
    "{kill: tree, for: 3s}": "a kill has no 'for', it takes a moment; "
    "how long it goes on happening is said by 'during'",
    "{kill: tree, at: 1s, during: 2s}": "a kill has 'at' and 'during'; one moment needs no span",
    "{kill: tree, at: 1s, times: 2}": "a kill has 'at' and 'times'; say 'every' for how often it is repeated",
    "{kill: tree, during: 9s..3s}": "expected a span that ends after it begins, such as 5s..20s, got '9s..3s'",
    "{kill: tree, after: 3 deliverys}": "unknown event 'deliverys'; did you mean 'deliveries'?",
    "{kill: tree, after: 3s}": "expected an event such as '20 deliveries' or '10 cases', got '3s'",
    "{kill: tree, when: after}": "'when' belongs to a 'point', and there is none",
    "{kill: tree, point: payments}": "expected an upstream and a message, such as payments POST /charges, "
    "got 'payments'",
    "{duplicate: 10}": "expected a share such as 10%, got '10'; did you mean 10%?",
    "{duplicate: 0.1}": "expected a share such as 10%, got '0.1'; did you mean 10%?",
    "{duplicate: 0%}": "expected a share above 0%, got '0%'",
    "{duplicate: 5%, mode: latter}": "unknown mode of a duplicate 'latter'; did you mean 'later'?",
    "{duplicate: 5%, delay: 1s}": "'delay' is for 'mode: later', and this duplicate comes at once",
    "{reorder: 10}": "expected a share such as 10%, got '10'; did you mean 10%?",
    "{reorder: 0%}": "expected a share above 0%, got '0%'",
    "{reordr: 10%}": "unknown fault 'reordr'; did you mean 'reorder'?",
    "{reorder: 10%, case: 3}": "unknown field of a reorder 'case'; did you mean 'cases'?",
    "{reorder: 10%, cases: 0}": "expected a number of cases such as 3, got '0'",
    "{delay: 10%}": "expected 'by': how much later it comes, by: 500ms or by: 3 deliveries",
    "{delay: 10, by: 3 deliveries}": "expected a share such as 10%, got '10'; did you mean 10%?",
    "{delay: each, by: 1s}": "expected a share of the cases such as 20%, or each 5, got 'each'",
    "{delay: 10%, by: 3}": "expected a duration such as 500ms, or a number such as 3 deliveries, got '3'; "
    "did you mean 3s?",
    "{delay: 10%, by: 3 delivries}": "expected a duration such as 500ms, or a number such as 3 deliveries, "
    "got '3 delivries'",
    "{delay: 10%, by: 0 deliveries}": "expected at least 1 delivery, got '0 deliveries'",
    "{delay: 10%, bye: 3s, by: 2s}": "unknown field of a delay 'bye'; did you mean 'by'?",
    "{delay: 10%, reorder: 5%, by: 1s}": "one fault is 'delay' and 'reorder'; make two items of the list",
    "{outage: payments, status: 200}": "expected an HTTP status from 400 to 599, got '200'",
    "{outage: payments, every: 5s}": "an outage that is repeated needs 'for': how long it lasts each time",
    "{outage: payments, every: 5s, for: 6s}": "expected 'for' to be shorter than 'every' (5 s)",
    "{toxic: reset_peer, upstream: db, first: 2}": "'first' belongs to a 'point', and there is none",
    "{toxic: reset_peer, point: db}": "expected an upstream and a message, such as payments POST /charges, got 'db'",
    "{toxic: reset_peer, point: before db COMMIT}": "a toxic acts on a way, not before a point; write point: "
    "db COMMIT, and stream: upstream: the request is lost",
    "{toxic: reset_peer, point: db COMMIT, upstream: mail}": "the point is on 'db'; leave 'upstream' out",
    "{toxic: down, point: db COMMIT}": "'down' takes a whole upstream away; at a point take reset_peer",
    "{toxic: reset_peer, point: db COMMIT, on: producers}": "a toxic at a point acts on the messages of jobs, which "
    "are the workers'",
    "{toxic: reset_peer, point: db COMMIT, first: 2, nth: 1}": "'nth' is one message and 'first' are several; say one "
    "of them",
    "{toxic: reset_peer, point: db COMMIT, first: 2 of each key}": "the keys of messages are not known; say "
    "'of each case'",
    "{toxic: latncy, upstream: db}": "unknown toxic 'latncy'; did you mean 'latency'?",
    "{toxic: latency, upstream: db}": "expected 'latency' of latency: milliseconds",
    "{toxic: latency, latency: 5}": "expected 'upstream': whose network it is",
    "{toxic: latency, latency: 5x, upstream: db}": "expected a whole number of milliseconds, or a duration such as "
    "200ms, got '5x'",
    "{toxic: latency, latency: 5, rate: 5, upstream: db}": "unknown parameter of latency 'rate'; "
    "there are latency, jitter, stream, toxicity",
    "{toxic: limit_data, bytes: 5s, upstream: db}": "expected a whole number of bytes, got '5s'",
    "{toxic: latency, latency: 5, upstream: db, toxicity: 2}": "expected a number from 0 to 1, or a share such as 50%, "
    "got '2'",
    "{toxic: slicer, average_size: 5, size_variation: 9, upstream: db}": "slicer: expected size_variation to be less "
    "than average_size, got 9 and 5",
    "{deploy: v2}": "unknown version 'v2'; name it in 'versions' with its folder",
    "{kill: tree, duplicate: 5%}": "one fault is 'kill' and 'duplicate'; make two items of the list",
    "kill": "expected a fault such as {kill: tree, every: 3s}, got 'kill'",
    "{}": "expected a fault: one of kill, restart, wipe, read_only, exhaust, duplicate, "
    "reorder, delay, toxic, outage, deploy",
    "{zzz: 1}": f"unknown fault 'zzz'; there are {', '.join(KINDS)}",
    "{kill: db, restart: 2s}": "unknown field of a kill of a service 'restart'; there are kill, point, when, nth, at, "
    "every, during, after, times, for",
    "{kill: db, every: 5s, for: 5s}": "expected 'for' to be shorter than 'every' (5 s)",
    "{wipe: db, every: 5s, point: db COMMIT}": "a fault at a point comes once; leave out 'every' or 'point'",
    "{read_only: db, every: 5s}": "a read-only that is repeated needs 'for': how long it lasts each time",
    "{restart: all, point: db COMMIT}": "expected 'any' or one worker: a point is reached by one of them, got 'all'",
}


@pytest.mark.parametrize("item", FAULT_ERRORS)
def test_a_wrong_fault_gives_its_line_and_the_right_word(item: str) -> None:
    """One line: file, line, what was expected, what is there."""
    with pytest.raises(UsageError) as error:
        faults(item)
    assert error.value.message == f"x.yaml:5: {FAULT_ERRORS[item]}"
    assert error.value.exit_code == EXIT_USAGE


EXPECT_ERRORS = {
    "none_lots": "unknown expectation 'none_lots'; did you mean 'none_lost'?",
    "exactly_one: mail": "unknown expectation 'exactly_one'; did you mean 'exactly_once'?",
    "{exactly_once: mail, kei: to}": "unknown field of a contract 'kei'; did you mean 'key'?",
    "{exactly_once: mail, key: jsn:id}": "exactly once: mail: expected a key such as json:order_id, json:a.b, "
    "header:x-id, row:column, path, to, from, subject, text, message_id, key, body, method, got 'jsn:id'; "
    "did you mean json:id?",
    "exactly_once: ''": "exactly once: expected the name of an effect, got ''; an effect is named "
    "'upstream METHOD /path', 'mail', 'rows <name>' or 'mark <kind>'",
    "counts: {lots: 0}": "unknown count 'lots'; did you mean 'lost'?",
    "counts: {lost: few}": "expected a number such as 0, or a bound such as <= 3, got 'few'",
    "counts": "'counts' needs a value, such as counts: {lost: 0, duplicated: 0}",
    "backoff": "'backoff' needs a value, such as backoff: {provider: payments, base: 1s, factor: 2, jitter: full, "
    "max_attempts: 8}",
    "backoff: {provder: payments, provider: payments, base: 1s}": "unknown field of backoff 'provder'; "
    "did you mean 'provider'?",
    "backoff: {provider: payments}": "expected 'base': the first wait",
    "backoff: {provider: payments, base: 1}": "expected a duration such as 3s, 500ms or 2m, got '1'; did you mean 1s?",
    "backoff: {provider: payments, base: 1s, factor: 0.5}": "expected a number such as 2, at least 1, got '0.5'",
    "backoff: {provider: payments, base: 1s, jitter: ful}": "unknown jitter 'ful'; did you mean 'full'?",
    "backoff: {provider: payments, base: 1s, jitter: 10}": "expected a share such as 10%, got '10'; did you mean 10%?",
    "dead_letters: {owner: true}": "'dead_letters' cannot be checked yet; leave it out. Celery keeps none: count "
    "what was given up by counts: {failed_visibly: 0}",
    "dead_letters": "'dead_letters' cannot be checked yet; leave it out. Celery keeps none: count "
    "what was given up by counts: {failed_visibly: 0}",
    "recovered_within: 30": "expected a duration such as 3s, 500ms or 2m, got '30'; did you mean 30s?",
}


@pytest.mark.parametrize("item", EXPECT_ERRORS)
def test_a_wrong_expectation_gives_its_line_and_the_right_word(item: str) -> None:
    with pytest.raises(UsageError) as error:
        small(expect=f"\n  - {item}")
    assert error.value.message == f"x.yaml:5: {EXPECT_ERRORS[item]}"


FIELD_ERRORS = {
    "rig: apps": "x.yaml:1: expected a rig such as apps/invoices/rig.py:shop, got 'apps'",
    "workload: {enqueue: f, count: 1, rate: 20}": "x.yaml:1: expected a rate such as 20/s or 90/m, got '20'; "
    "did you mean 20/s?",
    "workload: {enqueue: f, count: 1, rate: 0/s}": "x.yaml:1: expected a rate such as 20/s or 90/m, got '0/s'",
    "workload: {enqueue: f, rate: 1/s}": "x.yaml:1: expected 'count' or 'duration': how many cases, or for how long",
    "workload: {enqueue: f, rate: 1/s, count: 1, duration: 1s}": "x.yaml:1: expected 'count' or 'duration', got both; "
    "the rate gives the other one",
    "workload: {count: 1, rate: 1/s}": "x.yaml:1: expected 'enqueue': the function that makes a case",
    "workload: new_invoice": "x.yaml:1: expected a workload such as {enqueue: new_invoice, count: 300, rate: 20/s}, "
    "got 'new_invoice'",
    "workload: {enqueue: f, count: 1, rate: 1/s, values: {a: {b: 1, c: 2}}}": "x.yaml:1: expected one Faker provider "
    "such as {pyint: {max_value: 500}}, got a mapping",
    "workers: two": "x.yaml:1: expected a number of workers such as 2, got 'two'",
    "workers: 99": "x.yaml:1: expected at most 32 workers, got '99'",
    "engine: toxiproxi": "x.yaml:1: unknown engine 'toxiproxi'; did you mean 'toxiproxy'?",
    "timeouts: {redy: 3s}": "x.yaml:1: unknown timeout 'redy'; did you mean 'ready'?",
    "settle: run_relay": "x.yaml:1: expected a list of functions, got 'run_relay'",
    "seed: x": "x.yaml:1: expected a whole number, got 'x'",
    "fault: []": "x.yaml:1: unknown field 'fault'; did you mean 'faults'?",
    "title:": "x.yaml:1: expected a title, got nothing",
}


@pytest.mark.parametrize("line", FIELD_ERRORS)
def test_a_wrong_field_gives_its_line_and_the_right_word(line: str) -> None:
    """The field stands in line 1, everything else is right."""
    name = line.partition(":")[0]
    rest = {"title": "t", "rig": "r.py:s", "workload": "{enqueue: f, count: 1, rate: 1/s}", "expect": "[none_lost]"}
    text = f"{line}\n" + "".join(f"{key}: {value}\n" for key, value in rest.items() if key != name)
    with pytest.raises(UsageError) as error:
        parse(text, "x.yaml")
    assert error.value.message == FIELD_ERRORS[line]


def test_all_that_is_wrong_is_told_at_once_in_the_order_of_the_file() -> None:
    """A reader mends a file in one go."""
    text = textwrap.dedent("""\
        titel: t
        rig: apps
        workload: {enqueue: f, count: 1, rate: 1/s}
        faults:
          - {kil: tree}
          - {kill: tre}
        expect: []
        """)
    with pytest.raises(UsageError) as error:
        parse(text, "x.yaml")
    assert error.value.message.splitlines() == [
        "x.yaml:1: unknown field 'titel'; did you mean 'title'?",
        "x.yaml:1: expected 'title': one line that says what is claimed",
        "x.yaml:2: expected a rig such as apps/invoices/rig.py:shop, got 'apps'",
        "x.yaml:5: unknown fault 'kil'; did you mean 'kill'?",
        "x.yaml:6: unknown scope of a kill 'tre'; did you mean 'tree'?",
        "x.yaml:7: expected at least one expectation, such as exactly_once: payments POST /charges",
    ]


NO_YAML = {
    "": "x.yaml:1: the file is empty; a scenario has a title, a rig and a workload",
    "- a\n- b\n": "x.yaml:1: expected a mapping with title, rig and workload, got a list",
    "title: t\ntitle: u\n": "x.yaml:2: 'title' is there twice, first in line 1",
    "title: [a\nrig: b\n": "x.yaml:2: this is no YAML: expected ',' or ']', but got ':'",
    "title: t\n\trig: b\n": "x.yaml:2: this is no YAML: found character '\\t' that cannot start any token",
    "? [a]\n: b\n": "x.yaml:1: expected a name as key, got a list",
    "title: \x00": "x.yaml:1: this is no YAML: unacceptable character #x0000: special characters are not allowed in "
    '"<unicode string>", position 7',
    "title: a\n--- \ntitle: b\n": "x.yaml:2: this is no YAML: but found another document",
}


@pytest.mark.parametrize("text", NO_YAML)
def test_a_file_that_is_no_scenario_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(text, "x.yaml")
    assert error.value.message == NO_YAML[text]


def test_a_tag_of_python_makes_nothing() -> None:
    """The file is data, whatever it says."""
    work = "{enqueue: f, count: 1, rate: 1/s, values: {a: {b: {c: %s}}}}"
    scenario = small(workload=work % "!!python/object/apply:os.getcwd []")
    assert scenario.workload.values == {"a": Provided("b", {"c": []})}
    with pytest.raises(UsageError) as error:
        small(workload=work % "!!python/name:os.getcwd x")
    assert error.value.message == "x.yaml:3: expected a plain value, got 'x'"


def test_values_without_end_are_refused() -> None:
    """An alias may name what it stands in."""
    with pytest.raises(UsageError, match=r"x.yaml:3: .*nested too deep"):
        small(workload="{enqueue: f, count: 1, rate: 1/s, values: {a: {b: &x {c: *x}}}}")


def test_a_clock_may_be_real_faster_or_both() -> None:
    told = {text: small(clock=text) for text in ("{real: true}", "{real: true, speed: 100}", "{speed: 5, real: no}")}
    assert [(one.real_clocks, one.speed) for one in told.values()] == [(True, 1.0), (True, 100.0), (False, 5.0)]
    for text, why in (("{}", "how fast it goes"), ("{real: 3}", "true or false"), ("{real: true, sped: 1}", "sped")):
        with pytest.raises(UsageError, match=why):
            small(clock=text)
