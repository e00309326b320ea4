"""A few effects against one clean run: every verdict has its history here."""

from __future__ import annotations

from typing import Any

import pytest

from jobcheck.checks.clean import Clean, check_contracts, clean_of, lines_to_paste, uncontracted, unmatched
from jobcheck.checks.contracts import Contract, at_least_once, at_most_once, exactly_once
from jobcheck.checks.judge import Judgement, judge
from jobcheck.errors import UsageError
from jobcheck.history.codec import from_json, to_json
from jobcheck.history.records import NEXT_JOB, CaseRecord, Effect, Ending, Strike, TrialRecord, Verdict

CHARGE, MAIL = "payments POST /charges", "mail"
CONTRACTS = [exactly_once(CHARGE), at_least_once(MAIL)]


def trial(number: int, *bodies: tuple[str, str], strike: str = "kill", fired: bool = True, **more: Any) -> TrialRecord:
    """A trial of the invoice `number`; `%` in a body stands for its id."""
    case = CaseRecord(f"c{number}", number, {"invoice": str(number)})
    effects = tuple(
        Effect(seq, float(seq), name, body.replace("%", str(number)), case=case.id)
        for seq, (name, body) in enumerate(bodies, 1)
    )
    planned = Strike("s", "p", strike) if strike else None
    return TrialRecord(f"t{number}", "job", "strike", case, planned, fired, effects=effects, **more)


def recording(*bodies: tuple[str, str]) -> TrialRecord:
    return trial(1000001, *bodies, strike="")


ONE_CHARGE = clean_of([recording((CHARGE, "%"), (MAIL, "to %"))])
DEPOSIT_BALANCE = clean_of([recording((CHARGE, "deposit %"), (CHARGE, "balance %"))])


def struck(
    *bodies: tuple[str, str], clean: Clean = ONE_CHARGE, expect: list[Contract] | None = None, **more: Any
) -> Judgement:
    strict = more.pop("strict", False)
    return judge(trial(1000002, *bodies, **more), clean, CONTRACTS if expect is None else expect, strict=strict)


def test_the_same_effects_as_in_the_clean_run_are_ok() -> None:
    result = struck((CHARGE, "%"), (MAIL, "to %"))
    assert (result.verdict, result.broken, result.notes) == (Verdict.OK, (), ())
    assert result.passed


def test_a_second_charge_is_duplicated() -> None:
    result = struck((CHARGE, "%"), (MAIL, "to %"), (CHARGE, "%"))
    assert result.verdict is Verdict.DUPLICATED
    (item,) = result.broken
    assert (item.contract, item.effect, item.seen, item.expected) == (f"exactly once: {CHARGE}", CHARGE, 2, 1)
    assert item.phrase == "payments POST /charges: 2 times, expected 1"


def test_no_charge_is_lost() -> None:
    result = struck((MAIL, "to %"))
    assert result.verdict is Verdict.LOST
    assert result.broken[0].phrase == "payments POST /charges: never, expected 1"


def test_a_second_mail_is_fine_at_least_once_and_a_missing_one_is_lost() -> None:
    assert struck((CHARGE, "%"), (MAIL, "to %"), (MAIL, "to %")).passed
    assert struck((CHARGE, "%")).verdict is Verdict.LOST


def test_at_most_once_forgives_a_missing_effect_and_no_second_one() -> None:
    expect = [at_most_once(CHARGE)]
    assert struck((MAIL, "to %"), expect=expect).passed
    assert struck((CHARGE, "%"), (CHARGE, "%"), expect=expect).verdict is Verdict.DUPLICATED


def test_deposit_and_balance_are_two_effects() -> None:
    assert struck((CHARGE, "balance %"), (CHARGE, "deposit %"), clean=DEPOSIT_BALANCE).passed


def test_deposit_twice_and_balance_once_is_duplicated() -> None:
    result = struck((CHARGE, "deposit %"), (CHARGE, "deposit %"), (CHARGE, "balance %"), clean=DEPOSIT_BALANCE)
    assert result.verdict is Verdict.DUPLICATED
    assert result.broken[0].phrase == "payments POST /charges: deposit {invoice} 2 times, expected 1"


def test_deposit_twice_and_balance_never_is_partial_though_the_number_is_right() -> None:
    result = struck((CHARGE, "deposit %"), (CHARGE, "deposit %"), clean=DEPOSIT_BALANCE)
    assert result.verdict is Verdict.PARTIAL
    assert result.broken[0].phrase == (
        "payments POST /charges: deposit {invoice} 2 times, expected 1; balance {invoice} never, expected 1"
    )


def test_bodies_that_differ_in_every_case_are_matched_by_rank() -> None:
    clean = clean_of([recording((CHARGE, "ann 12.50"), (CHARGE, "bob 7.10"))])
    assert struck((CHARGE, "cid 3.20"), (CHARGE, "dan 9.00"), clean=clean).passed
    twice = struck((CHARGE, "cid 3.20"), (CHARGE, "cid 3.20"), clean=clean)
    assert twice.verdict is Verdict.PARTIAL


def test_a_second_charge_with_another_attempt_number_is_still_a_second_charge() -> None:
    clean = clean_of([recording((CHARGE, "% attempt 1"))])
    assert struck((CHARGE, "% attempt 2"), clean=clean).passed
    result = struck((CHARGE, "% attempt 1"), (CHARGE, "% attempt 2"), clean=clean)
    assert result.broken[0].phrase == "payments POST /charges: 2 times, expected 1"


def test_a_named_key_decides_what_is_the_same_effect() -> None:
    def charge(order: str, attempt: int) -> Effect:
        return Effect(attempt, 0.0, CHARGE, f"{order} {attempt}", {"json": {"order": order}})

    case = CaseRecord("c", 1, {"invoice": "9"})
    expect = [exactly_once(CHARGE, key="json:order")]
    clean = Clean(case, (charge("a", 1), charge("b", 1)))
    again = TrialRecord("t", "job", "strike", case, effects=(charge("a", 1), charge("a", 2), charge("b", 1)))
    assert judge(again, clean, expect).broken[0].phrase == "payments POST /charges: a 2 times, expected 1"


def test_calls_without_effect_and_effects_of_other_cases_do_not_count() -> None:
    base = trial(1000002, (CHARGE, "%"), (MAIL, "to %"))
    replayed = Effect(3, 3.0, CHARGE, "1000002", applied=False, case="c1000002", note="replayed")
    late = Effect(4, 4.0, CHARGE, "1000001", case="c1000001")
    seen = TrialRecord(base.id, "job", "strike", base.case, effects=(*base.effects, replayed, late))
    assert judge(seen, ONE_CHARGE, CONTRACTS).passed


def test_the_worst_breach_names_the_trial() -> None:
    result = struck((CHARGE, "%"), (CHARGE, "%"))
    assert result.verdict is Verdict.DUPLICATED
    assert [item.verdict for item in result.broken] == [Verdict.DUPLICATED, Verdict.LOST]


def test_a_new_shape_of_a_contracted_upstream_is_unexpected() -> None:
    result = struck((CHARGE, "%"), ("payments POST /refunds", "%"), expect=[exactly_once("payments")])
    assert result.verdict is Verdict.UNEXPECTED
    assert result.broken[0].phrase == "payments POST /refunds: 1 time, never in the clean run"


def test_other_new_effects_are_notes() -> None:
    result = struck((CHARGE, "%"), (MAIL, "to %"), ("mark alarm", "%"))
    assert result.passed
    assert result.notes == ("mark alarm: 1 time, never in the clean run (no contract)",)


def test_a_contract_of_the_exact_name_goes_before_the_one_of_the_upstream() -> None:
    expect = [exactly_once("payments"), at_least_once(CHARGE)]
    assert struck((CHARGE, "%"), (CHARGE, "%"), expect=expect).passed


@pytest.mark.parametrize(
    ("more", "verdict", "note"),
    [
        ({"diverged": "another message came"}, Verdict.DIVERGED, "another message came"),
        ({"fired": False}, Verdict.NOT_EXERCISED, "the planned strike did not happen"),
        ({"problems": ("two owners",)}, Verdict.UNKNOWN, "two owners"),
        ({"settled": False}, Verdict.UNKNOWN, "the system did not become quiet, and what it was doing was not seen"),
    ],
)
def test_a_trial_that_says_nothing_never_passes_and_blames_nobody(
    more: dict[str, Any], verdict: Verdict, note: str
) -> None:
    result = struck((CHARGE, "%"), (MAIL, "to %"), **more)
    assert (result.verdict, result.broken, result.notes[0]) == (verdict, (), note)
    assert not result.passed


def test_a_job_that_is_still_going_is_hung_and_its_missing_effects_are_not_lost_yet() -> None:
    result = struck((CHARGE, "%"), settled=False, unsettled="1 unacked")
    assert result.verdict is Verdict.HUNG
    assert [item.phrase for item in result.broken] == ["the job did not come to an end: 1 unacked"]


def test_a_job_that_is_still_going_and_charged_twice_is_duplicated() -> None:
    assert struck((CHARGE, "%"), (CHARGE, "%"), settled=False, unsettled="1 ready").verdict is Verdict.DUPLICATED


def test_a_job_that_is_handed_out_without_bound_is_endless() -> None:
    result = struck((CHARGE, "%"), settled=False, unsettled="1 ready", deliveries=57)
    assert result.verdict is Verdict.ENDLESS
    assert "57 times" in result.broken[0].phrase


def test_everything_happened_but_filed_as_failed_is_misfiled() -> None:
    result = struck((CHARGE, "%"), (MAIL, "to %"), filed="failed: timeout")
    assert result.verdict is Verdict.MISFILED
    assert "failed: timeout" in result.broken[0].phrase


@pytest.mark.parametrize("fault", ["kill", "zombie", "duplicate", "sigterm", "race", "some new fault"])
def test_missing_effects_with_a_failed_record_are_broken_after_a_kill(fault: str) -> None:
    result = struck((MAIL, "to %"), filed="dead: 3 attempts", strike=fault)
    assert result.verdict is Verdict.FAILED_VISIBLY
    assert result.broken[0].phrase == "payments POST /charges: never, expected 1; filed as dead: 3 attempts"


@pytest.mark.parametrize("fault", ["lost request", "lost-reply", "error_reply", "reset", "outage"])
def test_missing_effects_with_a_failed_record_are_a_note_after_a_reset_unless_strict(fault: str) -> None:
    result = struck((MAIL, "to %"), filed="failed: 503", strike=fault)
    assert (result.verdict, result.broken) == (Verdict.OK, ())
    assert result.notes == ("failed visibly: payments POST /charges: never, expected 1; filed as failed: 503",)
    assert struck((MAIL, "to %"), filed="failed: 503", strike=fault, strict=True).verdict is Verdict.FAILED_VISIBLY


def test_a_failed_record_does_not_excuse_a_second_charge() -> None:
    assert struck((CHARGE, "%"), (CHARGE, "%"), filed="failed: x", strike="reset").verdict is Verdict.DUPLICATED
    twice_and_never = struck(
        (CHARGE, "deposit %"), (CHARGE, "deposit %"), clean=DEPOSIT_BALANCE, filed="failed: x", strike="reset"
    )
    assert twice_and_never.verdict is Verdict.DUPLICATED


def test_an_effect_that_may_be_missing_and_is_with_a_failed_record_is_ok() -> None:
    result = struck((MAIL, "to %"), filed="failed: x", expect=[at_most_once(CHARGE)])
    assert result.passed
    assert "filed as failed: x" in result.notes


def test_a_trial_that_was_stored_and_read_again_is_judged_the_same() -> None:
    seen = trial(1000002, (CHARGE, "%"), (CHARGE, "%"))
    assert judge(from_json(TrialRecord, to_json(seen)), ONE_CHARGE, CONTRACTS) == judge(seen, ONE_CHARGE, CONTRACTS)


def test_recordings_that_disagree_are_told() -> None:
    clean = clean_of([recording((CHARGE, "%")), recording((CHARGE, "%"), (MAIL, "x"))])
    assert clean.differences == ("mail: never in clean run 1, 1 time in 2",)
    with pytest.raises(ValueError, match="at least one recording"):
        clean_of([])


def test_a_contract_that_the_clean_run_never_showed_is_told_with_what_was_seen() -> None:
    (sentence,) = unmatched([exactly_once("payments POST /charge")], ONE_CHARGE)
    assert "payments POST /charges (1 time), mail (1 time)" in sentence
    assert "did you mean 'payments POST /charges'?" in sentence
    with pytest.raises(UsageError, match="never showed"):
        check_contracts([exactly_once("sms")], ONE_CHARGE)
    check_contracts(CONTRACTS, ONE_CHARGE)


def test_a_key_that_no_effect_has_is_told() -> None:
    effect = Effect(1, 0.0, CHARGE, "b", {"json": {"order": 1}, "path": "/charges"})
    clean = Clean(CaseRecord("c", 1), (effect,))
    (sentence,) = unmatched([exactly_once(CHARGE, key="json:order_id")], clean)
    assert "has json:order_id; it has json:order, path" in sentence


def test_effects_without_a_contract_are_listed_and_lines_are_offered() -> None:
    assert uncontracted(ONE_CHARGE, [exactly_once("payments")]) == ["mail"]
    assert lines_to_paste(ONE_CHARGE, {"payments": "provider", "mail": "smtp"}) == [
        'exactly_once("payments POST /charges"),',
        'at_least_once("mail"),',
    ]


ENDS = [
    (Ending(took=False, runs=1), Verdict.OK),
    (Ending(took=True, runs=1), Verdict.OK),
    (Ending(took=False, runs=2), Verdict.OK),
    (Ending(took=True, runs=2), Verdict.DUPLICATED),
    (Ending(took=True, runs=0), Verdict.LOST),
    (Ending(took=False, runs=0), Verdict.LOST),
]


@pytest.mark.parametrize(("ending", "verdict"), ENDS)
def test_the_job_that_waited_at_sigterm_must_be_done_and_only_who_took_it_may_not_double_it(
    ending: Ending, verdict: Verdict
) -> None:
    result = struck((CHARGE, "%"), (MAIL, "to %"), strike="term", ending=ending)
    assert result.verdict is verdict
    assert all(item.effect == NEXT_JOB for item in result.broken)


def test_a_job_that_is_still_going_has_not_lost_the_next_one_yet() -> None:
    result = struck((CHARGE, "%"), (MAIL, "to %"), strike="term", settled=False, unsettled="runs", ending=Ending())
    assert result.verdict is Verdict.HUNG
