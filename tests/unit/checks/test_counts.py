"""Many cases, each judged on its own and counted."""

from __future__ import annotations

from jobcheck.checks.clean import Clean
from jobcheck.checks.contracts import at_least_once, exactly_once
from jobcheck.checks.counts import CaseOutcome, Counts, tally
from jobcheck.history.records import CaseRecord, Effect, Verdict

CHARGE, MAIL = "payments POST /charges", "mail"
CONTRACTS = [exactly_once(CHARGE), at_least_once(MAIL)]
CLEAN = Clean(CaseRecord("c0", 0, {"invoice": "100"}), (Effect(1, 0.0, CHARGE, "100"), Effect(2, 0.0, MAIL, "100")))


def case(number: int) -> CaseRecord:
    return CaseRecord(f"c{number}", number, {"invoice": str(100 + number)})


def happened(number: int, *names: str) -> list[Effect]:
    return [Effect(1, 0.0, name, str(100 + number), case=f"c{number}") for name in names]


def test_each_case_counts_by_what_happened_to_it() -> None:
    outcomes = [
        CaseOutcome(case(1)),
        CaseOutcome(case(2)),
        CaseOutcome(case(3)),
        CaseOutcome(case(4), filed="dead: 8 attempts"),
        CaseOutcome(case(5), acknowledged=False),
        CaseOutcome(case(6), acknowledged=False),
        CaseOutcome(case(7)),
    ]
    effects = [
        *happened(1, CHARGE, MAIL),
        *happened(2, CHARGE, CHARGE, MAIL),
        *happened(3, CHARGE),
        *happened(4),
        *happened(5, CHARGE, MAIL),
        *happened(7, CHARGE, CHARGE),
    ]
    result = tally(outcomes, effects, CONTRACTS, CLEAN)
    assert result.counts == Counts(
        attempted=7, acknowledged=5, ok=2, lost=2, failed_visibly=1, duplicated=2, recovered=1, vanished=1
    )
    assert [(item.case.number, item.verdict) for item in result.bad] == [
        (2, Verdict.DUPLICATED),
        (3, Verdict.LOST),
        (4, Verdict.FAILED_VISIBLY),
        (7, Verdict.DUPLICATED),
    ]
    assert result.verdict is Verdict.DUPLICATED
    assert result.counts.text == (
        "7 attempted, 5 acknowledged: 2 ok, 2 lost, 1 failed visibly, 2 duplicated, 1 recovered, 1 vanished"
    )


def test_all_right_is_ok() -> None:
    outcomes = [CaseOutcome(case(number)) for number in range(1, 101)]
    effects = [effect for number in range(1, 101) for effect in happened(number, CHARGE, MAIL)]
    result = tally(outcomes, effects, CONTRACTS, {f"c{number}": CLEAN for number in range(1, 101)})
    assert result.verdict is Verdict.OK
    assert result.counts.text == "100 attempted, 100 acknowledged: 100 ok"


def test_effects_of_nobody_are_unexpected_and_calls_without_effect_do_not_count() -> None:
    stray = Effect(9, 0.0, CHARGE, "999")
    replayed = Effect(10, 0.0, CHARGE, "101", case="c1", applied=False)
    result = tally([CaseOutcome(case(1))], [*happened(1, CHARGE, MAIL), stray, replayed], CONTRACTS, CLEAN)
    assert result.orphans == (f"{CHARGE} belongs to no case that was enqueued: 999",)
    assert (result.counts.ok, result.counts.unexpected, result.verdict) == (1, 1, Verdict.UNEXPECTED)
