"""The observers' pure parts: ledger, answers, idempotency keys, resources, bodies, files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from jobcheck.clock import ManualClock
from jobcheck.effects.answers import Answer, Call, Routes, resolve, to_answer
from jobcheck.effects.bodies import read_body
from jobcheck.effects.files import FilesObserver
from jobcheck.effects.idempotency import IdempotencyKeys, Stored
from jobcheck.effects.ledger import Ledger
from jobcheck.effects.observer import Seen
from jobcheck.effects.paths import label, template
from jobcheck.effects.resources import Resources
from jobcheck.effects.rows import plain
from jobcheck.errors import UsageError
from jobcheck.history.records import Effect
from jobcheck.services.spec import Provider

CALL = Call("POST", "/charges", {}, "")


def test_the_ledger_numbers_and_stamps_effects_and_tells_its_listeners() -> None:
    clock = ManualClock(5.0)
    ledger = Ledger(clock)
    heard: list[Effect] = []
    end = ledger.subscribe(heard.append)
    first = ledger.record("mail", "a", fields={"to": "x"})
    clock.advance(1.5)
    mark = ledger.seq
    second = ledger.add(Seen("rows ledger", "{}", {"row": {}}))
    end()
    third = ledger.record("mail", "c", key="k", applied=False, note="503")
    assert [(item.seq, item.at) for item in (first, second, third)] == [(1, 5.0), (2, 6.5), (3, 6.5)]
    assert ledger.since(mark) == [second, third]
    assert ledger.since(0) == [first, second, third]
    assert ledger.since(ledger.seq) == []
    assert heard == [first, second]


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/charges", "/charges"),
        ("/charges?invoice=17", "/charges"),
        ("/charges/1000017", "/charges/*"),
        ("/v1/charges/6f1c8a52-1b0e-4c7e-9d5f-0a1b2c3d4e5f/refund", "/v1/charges/*/refund"),
    ],
)
def test_a_path_is_named_without_its_ids(path: str, shape: str) -> None:
    assert template(path) == shape


@pytest.mark.parametrize(
    ("target", "headers", "value", "name"),
    [
        ("/charges", {}, {"Action": 3}, "POST /charges"),
        ("/", {}, {"Action": "SendMessage"}, "POST / SendMessage"),
        ("/?Action=SendMessage&Id=1", {}, None, "POST / SendMessage"),
        ("/", {"x-amz-target": "DynamoDB_20120810.PutItem"}, {}, "POST / PutItem"),
        ("/graphql", {}, {"operationName": "createCharge", "query": "..."}, "POST /graphql createCharge"),
        ("/graphql", {}, [1], "POST /graphql"),
    ],
)
def test_a_verb_outside_the_path_is_part_of_the_name(
    target: str, headers: dict[str, str], value: Any, name: str
) -> None:
    assert label("POST", target, headers, value) == name


def test_the_same_calls_get_the_same_ids_and_every_id_is_templated() -> None:
    made = [[Resources("payments").create("/charges", {"a": 1})["id"] for _ in range(1)] for _ in range(2)]
    assert made[0] == made[1]
    things = Resources("payments")
    ids = {things.create("/charges", None)["id"] for _ in range(500)}
    assert len(ids) == 500
    assert {template(f"/charges/{item}/refund") for item in ids} == {"/charges/*/refund"}


def test_a_body_is_canonical_json_where_it_is_json_or_a_form() -> None:
    assert read_body(b'{"b": 1, "a": "\xc3\xbc"}', "application/json") == ('{"a":"ü","b":1}', {"b": 1, "a": "ü"})
    assert read_body(b'{"b": 1}', "text/plain") == ('{"b":1}', {"b": 1})
    assert read_body(b"{broken", "application/json") == ("{broken", None)
    assert read_body(b"a=1&b=", "application/x-www-form-urlencoded") == ('{"a":"1","b":""}', {"a": "1", "b": ""})
    assert read_body(b"hello", "text/plain") == ("hello", None)
    assert read_body(b"", "application/json") == ("", None)


def take(routes: Routes, method: str, path: str) -> Any:
    return routes.take(method, path)[0]


def test_queued_answers_come_first_and_once_then_the_most_exact_route() -> None:
    routes = Routes({"POST /charges": 402, "* /charges": 403, "POST /*": 404, "*": 405})
    routes.program("POST /charges", [500, {"status": 501}])
    answers = [take(routes, "POST", "/charges") for _ in range(3)]
    assert [answer.status for answer in answers] == [500, 501, 402]
    assert take(routes, "GET", "/charges").status == 403
    assert take(routes, "POST", "/other").status == 404
    assert take(routes, "POST", "/a/b").status == 405
    routes.program("POST /charges", [500])
    routes.clear()
    assert take(routes, "POST", "/charges?x=1").status == 402


@pytest.mark.parametrize(
    ("route", "path", "fits"),
    [
        ("POST /charges/*", "/charges/17", True),
        ("POST /charges/*", "/charges/17/refund", False),
        ("POST /charges/**", "/charges/17/refund", True),
        ("POST /charges/*/refund", "/charges/17/refund", True),
        ("POST /charges/*", "/charges", False),
    ],
)
def test_wildcards_stand_for_one_segment_or_the_rest(route: str, path: str, fits: bool) -> None:
    assert (take(Routes({route: 418}), "POST", path) is not None) is fits


@pytest.mark.parametrize("route", ["/charges", "post /charges", "POST charges", "POST", ""])
def test_a_wrong_route_is_refused(route: str) -> None:
    with pytest.raises(UsageError, match="expected a route"):
        Routes({route: 200})


@pytest.mark.parametrize("answer", [{"stat": 200}, {"status": 99}, {"status": "200"}, "200", True, [1]])
def test_a_wrong_answer_is_refused_with_the_route(answer: Any) -> None:
    with pytest.raises(UsageError, match="POST /charges"):
        Routes({"POST /charges": answer})


def test_functions_answer_plain_or_async_or_by_default() -> None:
    async def later(call: Call) -> int:
        return 202

    async def main() -> list[Answer]:
        return [
            await resolve(item, CALL, "x") for item in (lambda call: {"json": call.method}, later, lambda call: None)
        ]

    assert asyncio.run(main()) == [Answer(json="POST"), Answer(status=202), Answer()]
    with pytest.raises(UsageError, match="POST /charges"):
        asyncio.run(resolve(lambda call: "nonsense", CALL, "POST /charges"))
    assert to_answer(503, "x") == Answer(status=503)


def test_a_key_is_new_then_in_flight_then_replayed_until_its_retention() -> None:
    clock = ManualClock()
    keys = IdempotencyKeys(clock, retention=100.0)
    stored = Stored(201, {}, b"{}")
    assert keys.begin("k", "body") == ""
    assert keys.begin("k", "body") == "409 in flight"
    assert keys.begin("k", "other") == "422 same key, another body"
    keys.finish("k", stored)
    assert keys.begin("k", "body") is stored
    clock.advance(99)
    assert keys.begin("k", "body") is stored
    clock.advance(1)
    assert keys.begin("k", "body") == ""
    keys.forget("k")
    assert keys.begin("k", "other") == ""
    assert keys.rewind(1000) == 0, "a call in flight is not forgotten"
    keys.finish("k", stored)
    assert keys.rewind(0) == 1


def test_how_long_a_provider_remembers_keys_is_the_rigs_to_say() -> None:
    assert Provider(idempotency="Key").keys_live == 24 * 3600
    assert Provider(idempotency="Key", idempotency_for="1m30s").keys_live == 90
    assert Provider(idempotency="Key", idempotency_for=600).keys_live == 600
    for wrong, said in (("10", "did you mean '10s'"), ("soon", "a duration"), (0, "got 0"), (True, "got True")):
        with pytest.raises(UsageError, match=said):
            Provider(idempotency="Key", idempotency_for=wrong)
    with pytest.raises(UsageError, match="belongs to idempotency"):
        Provider(idempotency_for="10m")


def look(observer: FilesObserver) -> list[tuple[str, str]]:
    return [(str(seen.fields["path"]), seen.body) for seen in asyncio.run(observer.read())]


def test_files_that_appear_or_change_are_effects(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    observer = FilesObserver("files pdfs", folder)
    asyncio.run(observer.prime())
    (folder / "sub").mkdir(parents=True)
    (folder / "old.txt").write_text("old")
    assert look(observer) == [("old.txt", "old.txt old")]
    (folder / "sub" / "17.pdf").write_bytes(b"%PDF\0")
    (folder / "link").symlink_to(folder / "old.txt")
    ((path, body),) = look(observer)
    assert path == "sub/17.pdf"
    assert body.startswith("sub/17.pdf sha256:")
    assert look(observer) == []


def test_a_file_that_was_written_again_is_an_effect_again(tmp_path: Path) -> None:
    observer = FilesObserver("files pdfs", tmp_path)
    (tmp_path / "a").write_text("same")
    asyncio.run(observer.prime())
    os.utime(tmp_path / "a", ns=(1, 1))
    assert look(observer) == [("a", "a same")]


def test_database_values_become_json() -> None:
    import datetime as dt
    import decimal
    import uuid

    row = {
        "n": decimal.Decimal("12.50"),
        "t": dt.datetime(2026, 11, 17, 10, 0, tzinfo=dt.UTC),
        "u": uuid.UUID(int=1),
        "b": b"\x00",
        "l": [1, {"d": dt.date(2026, 1, 2)}],
        "x": None,
    }
    assert {name: plain(value) for name, value in row.items()} == {
        "n": "12.50",
        "t": "2026-11-17T10:00:00+00:00",
        "u": "00000000-0000-0000-0000-000000000001",
        "b": "base64:AA==",
        "l": [1, {"d": "2026-01-02"}],
        "x": None,
    }


def test_a_route_is_programmed_with_the_words_of_an_outage() -> None:
    """What a scenario file says of an outage, a rig says of a route."""
    assert to_answer({"status": 429, "retry_after": "1500ms", "first": 2}, "r") == Answer(
        429, headers={"retry-after": "2"}, first=2
    )
    assert to_answer({"slow": "3s", "content_type": "text/html", "headers": {"x": "1"}}, "r") == Answer(
        delay=3.0, headers={"x": "1", "content-type": "text/html"}
    )
    assert to_answer({"answer": "lost", "slow": 0.5}, "r") == Answer(delay=0.5, drop=True, applied=True)
    assert to_answer({"answer": "hang"}, "r").hang
    assert to_answer({"status": 500, "counts": True}, "r") == Answer(500, applied=True)
    routes = Routes({"POST /charges": {"status": 500, "first": 2}, "POST /**": 404})
    assert [take(routes, "POST", "/charges").status for _ in range(4)] == [500, 500, 404, 404]


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        ({"stauts": 5}, "r: unknown 'stauts'", "did you mean 'status'?"),
        ({"answer": "hnag"}, "r: unknown answer 'hnag'", "did you mean 'hang'?"),
        ({"answer": "refused"}, "r: unknown answer 'refused'", "there are hang, garbage, cut, lost"),
        (
            {"slow": "soon"},
            "r: slow: expected a duration such as 3s, 500ms or 2m, or seconds as a number, got 'soon'",
            "",
        ),
        ({"first": 0}, "r: expected first to be a number of calls such as 2, got 0", ""),
    ],
)
def test_a_wrong_word_of_a_route_is_told_with_the_right_one(said: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        to_answer(said, "r")
    assert (error.value.message, error.value.hint) == (message, hint)
