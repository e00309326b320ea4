"""A row if and only if its job, on hand-made histories."""

from __future__ import annotations

import pytest

from jobcheck.checks.clean import Clean, clean_of
from jobcheck.checks.contracts import Contract, exactly_once
from jobcheck.checks.producers import COMMITTED, given_the_row, judge_producer
from jobcheck.history.records import CaseRecord, Effect, Strike, TrialRecord, Verdict

CASE = CaseRecord("case-1", 1)
ROW, OUTBOX, SENT, JOB = "db INSERT invoices", "db INSERT outbox", "db UPDATE outbox", "job shop.render"
STRIKE = Strike("s", "p")


def trial(*names: str, purpose: str = "strike", **values: object) -> TrialRecord:
    effects = tuple(
        Effect(number, float(number), name, name, {COMMITTED: name} if name.startswith("db ") else {})
        for number, name in enumerate(names, 1)
    )
    record = {"strike": STRIKE, "fired": True, **values} if purpose == "strike" else values
    return TrialRecord(f"t-{purpose}", "new", purpose, CASE, effects=effects, **record)  # type: ignore[arg-type]


def clean(*names: str) -> Clean:
    return clean_of([trial(*names, purpose="recording")])


def verdict(struck: TrialRecord, measure: Clean, contracts: tuple[Contract, ...] = ()) -> Verdict:
    return judge_producer(struck, measure, contracts or given_the_row(measure)).verdict


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ((), Verdict.OK),
        ((ROW, JOB), Verdict.OK),
        ((JOB, ROW), Verdict.OK),
        ((ROW,), Verdict.LOST),
        ((JOB,), Verdict.UNEXPECTED),
        ((ROW, JOB, JOB), Verdict.OK),
    ],
)
def test_row_and_job_are_there_together_or_not_at_all(left: tuple[str, ...], expected: Verdict) -> None:
    assert verdict(trial(*left), clean(ROW, JOB)) is expected


def test_a_second_job_is_a_breach_where_the_contract_says_so() -> None:
    assert verdict(trial(ROW, JOB, JOB), clean(ROW, JOB), (exactly_once(JOB),)) is Verdict.DUPLICATED
    assert verdict(trial(), clean(ROW, JOB), (exactly_once(JOB),)) is Verdict.OK


def test_what_a_relay_writes_down_is_no_row_of_its_own() -> None:
    measure = clean(ROW, OUTBOX, JOB, SENT)
    assert [contract.effect for contract in given_the_row(measure)] == [ROW, OUTBOX, JOB]
    assert verdict(trial(ROW, OUTBOX, JOB, JOB, SENT), measure) is Verdict.OK
    assert verdict(trial(ROW, OUTBOX, JOB), measure) is Verdict.OK
    assert verdict(trial(ROW, OUTBOX), measure) is Verdict.LOST


def test_rows_of_two_transactions_belong_together() -> None:
    measure = clean(ROW, "db INSERT lines", JOB)
    broken = judge_producer(trial(ROW, JOB), measure, given_the_row(measure)).broken
    assert [(item.effect, item.verdict) for item in broken] == [("db INSERT lines", Verdict.LOST)]


def test_a_job_without_its_row_is_told_with_the_row_that_it_lacks() -> None:
    measure = clean(ROW, JOB)
    (broken,) = judge_producer(trial(JOB), measure, given_the_row(measure)).broken
    assert broken.phrase == "job shop.render: 1 time, without db INSERT invoices"


def test_other_effects_are_judged_given_the_row_too() -> None:
    charge = "payments POST /charges"
    measure = clean(ROW, charge, JOB)
    contracts = (*given_the_row(measure), exactly_once(charge))
    assert verdict(trial(), measure, contracts) is Verdict.OK
    assert verdict(trial(charge), measure, contracts) is Verdict.UNEXPECTED
    assert verdict(trial(ROW, JOB), measure, contracts) is Verdict.LOST


def test_what_says_nothing_is_no_pass() -> None:
    measure = clean(ROW, JOB)
    assert verdict(trial(fired=False), measure) is Verdict.NOT_EXERCISED
    assert verdict(trial(problems=("x",)), measure) is Verdict.UNKNOWN
    assert verdict(trial(settled=False, unsettled="the relay runs"), measure) is Verdict.HUNG
