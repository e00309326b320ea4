"""Effects go to the case whose ids occur in them; no owner and two owners are told with the body."""

from __future__ import annotations

from typing import Any

import pytest

from jobcheck.checks.ownership import assign
from jobcheck.history.records import CaseRecord, Effect

CASES = [CaseRecord("c1", 1, {"invoice": "1000017"}), CaseRecord("c2", 2, {"invoice": "1000018"})]


def effect(body: str = "", *, key: str = "", applied: bool = True, **fields: Any) -> Effect:
    return Effect(1, 0.0, "payments POST /charges", body, fields, key=key, applied=applied)


@pytest.mark.parametrize(
    "seen",
    [
        effect('{"invoice":1000017}'),
        effect(path="/invoices/1000017/charges"),
        effect(path="/invoices/inv%2D1000017/charges"),
        effect(headers={"x-invoice": "1000017"}),
        effect(key="charge:1000017"),
        effect('{"invoice_id":1000017}', row={"invoice_id": 1000017}),
        effect(attachments=[{"name": "invoice-1000017.pdf"}]),
    ],
    ids=["body", "path", "escaped path", "header", "key", "row", "attachment"],
)
def test_an_effect_belongs_to_the_case_whose_id_occurs_in_it(seen: Effect) -> None:
    out, problems = assign([seen], CASES)
    assert [item.case for item in out] == ["c1"]
    assert problems == []


@pytest.mark.parametrize(
    "seen",
    [
        effect("x", headers={"content-length": "1000017", "user-agent": "x/1000017", "date": "1000017"}),
        effect("x", message_id="<1000017.1@host>"),
        effect('{"invoice":10000170}'),
    ],
    ids=["transport headers", "message id", "longer number"],
)
def test_a_number_that_is_not_the_business_id_gives_no_owner(seen: Effect) -> None:
    out, problems = assign([seen], CASES)
    assert out[0].case == ""
    assert len(problems) == 1
    assert "belongs to no case" in problems[0]
    assert (seen.body) in problems[0]


def test_two_owners_are_a_problem_that_shows_both_and_the_body() -> None:
    _, problems = assign([effect('{"ids":[1000017,1000018]}')], CASES)
    (sentence,) = problems
    assert "c1 by invoice 1000017 and c2 by invoice 1000018" in sentence
    assert '{"ids":[1000017,1000018]}' in sentence


def test_a_refund_that_names_only_the_providers_id_belongs_to_the_case_of_the_charge() -> None:
    made = "e964ee2f-81bc-4ec1-17cc-15348fff0c79"
    out, problems = assign([effect('{"invoice":1000018}', id=made), effect(path=f"/charges/{made}/refund")], CASES)
    assert [item.case for item in out] == ["c2", "c2"]
    assert problems == []


def test_an_id_that_a_provider_gave_to_two_cases_says_nothing() -> None:
    same = "always-the-same"
    seen = [effect("1000017", id=same), effect("1000018", id=same), effect(path=f"/charges/{same}/refund")]
    out, problems = assign(seen, CASES)
    assert [item.case for item in out] == ["c1", "c2", ""]
    assert len(problems) == 1


def test_a_single_case_without_ids_owns_everything() -> None:
    out, problems = assign([effect("whatever"), effect("else")], [CaseRecord("only", 1)])
    assert {item.case for item in out} == {"only"}
    assert problems == []


def test_a_single_case_with_ids_does_not_own_what_carries_none_of_them() -> None:
    _, problems = assign([effect("whatever")], CASES[:1])
    assert len(problems) == 1


def test_a_refused_call_may_stay_without_an_owner() -> None:
    out, problems = assign([effect("whatever", applied=False)], CASES)
    assert out[0].case == ""
    assert problems == []
