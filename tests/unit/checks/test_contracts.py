"""Contracts: what they say, what they match, what they take as key, and how wrong ones are refused."""

from __future__ import annotations

import pytest

from jobcheck.checks.contracts import Contract, at_least_once, at_most_once, exactly_once, parse_contract
from jobcheck.errors import UsageError
from jobcheck.history.records import Effect


def test_a_contract_says_what_it_promises() -> None:
    assert exactly_once("payments POST /charges").text == "exactly once: payments POST /charges"
    assert at_most_once("mail", key="subject").text == "at most once: mail, by subject"
    assert at_least_once("mail", key="json:a").call == 'at_least_once("mail", key="json:a")'


@pytest.mark.parametrize(
    ("effect", "name", "matches"),
    [
        ("payments POST /charges", "payments POST /charges", True),
        ("payments POST /charges", "payments POST /charges/*", False),
        ("payments", "payments POST /charges", True),
        ("payments", "payments2 POST /charges", False),
        ("mail", "mail", True),
        ("mark", "mark sent", True),
        ("rows ledger", "rows ledger2", False),
    ],
)
def test_a_contract_matches_the_exact_name_or_the_upstream_alone(effect: str, name: str, matches: bool) -> None:
    assert exactly_once(effect).matches(name) is matches


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("json:order_id", "17"),
        ("json:a.b", "x"),
        ("json:items.1.sku", "s2"),
        ("json:dotted.name", "d"),
        ("json:missing", None),
        ("header:X-Id", "h"),
        ("path", "/charges?x=1"),
        ("subject", "Hello"),
        ("row:col", "3.5"),
        ("key", "idem"),
        ("body", "BODY"),
        ("", "/charges?x=1 BODY"),
    ],
)
def test_a_key_names_one_part_of_an_effect(key: str, value: str | None) -> None:
    fields = {
        "json": {"order_id": 17, "a": {"b": "x"}, "items": [{"sku": "s1"}, {"sku": "s2"}], "dotted.name": "d"},
        "headers": {"x-id": "h"},
        "path": "/charges?x=1",
        "method": "POST",
        "subject": "Hello",
        "row": {"col": 3.5},
    }
    effect = Effect(1, 0.0, "payments POST /charges", "BODY", fields, key="idem")
    assert exactly_once("payments", key=key).key_of(effect) == value


@pytest.mark.parametrize(
    "given",
    [
        {"exactly_once": "payments POST /charges", "key": "json:id"},
        {"exactly_once": {"effect": "payments POST /charges", "key": "json:id"}},
        {"exactly once": {"effect": " payments  POST /charges ", "key": "json:id"}},
        "exactly once: payments POST /charges, by json:id",
        "exactly_once: payments POST /charges, by json:id",
    ],
)
def test_contracts_are_read_from_scenarios(given: object) -> None:
    assert parse_contract(given) == Contract("exactly once", "payments POST /charges", "json:id")


def test_the_text_of_a_contract_reads_back_as_the_contract() -> None:
    contract = at_least_once("mail", key="subject")
    assert parse_contract(contract.text) == contract


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"exactly_onec": "mail"}, "did you mean exactly_once?"),
        ({"atleast_once": "mail"}, "did you mean at_least_once?"),
        ("exactly-twice: mail", "did you mean exactly_once?"),
        ("payments POST /charges", "say how often"),
        ({"exactly_once": ""}, "expected the name of an effect"),
        ({"exactly_once": 3}, "expected the name of an effect"),
        ({"exactly_once": "mail", "at_most_once": "mail"}, "expected one of"),
        ({"exactly_once": {"effect": "mail", "kee": "x"}}, "'kee'"),
        ({"exactly_once": "mail", "key": "jsn:order"}, "did you mean json:order?"),
        ({"exactly_once": "mail", "key": "json:"}, "expected a key such as"),
        (["mail"], "expected a contract such as"),
    ],
)
def test_a_wrong_contract_is_refused_with_the_nearest_right_word(given: object, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_contract(given, "expect[0]")
    assert part in str(caught.value)
