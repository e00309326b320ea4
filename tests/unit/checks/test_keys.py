"""Rule 21: a key that changes between attempts, is shared by two events, or is not there, is told."""

from __future__ import annotations

from jobcheck.checks.keys import check_keys
from jobcheck.history.records import CaseRecord, Effect, TrialRecord

CHARGE = "payments POST /charges"


def trial(number: int, *keys: str, purpose: str = "strike") -> TrialRecord:
    case = CaseRecord(f"c{number}", number, {"invoice": str(number)})
    effects = tuple(
        Effect(seq, 0.0, CHARGE, "{}", key=key, case=case.id, applied=seq == 1) for seq, key in enumerate(keys, 1)
    )
    return TrialRecord(f"t{number}", "job", purpose, case, effects=effects)


def sentences(*trials: TrialRecord, honours: tuple[str, ...] = ()) -> list[tuple[str, bool]]:
    return [(problem.sentence, problem.failure) for problem in check_keys(trials, honours)]


def test_a_key_of_the_event_is_fine() -> None:
    first, second = trial(1000017, "charge:1000017", "charge:1000017"), trial(1000018, "charge:1000018")
    assert sentences(first, second) == []


def test_a_key_with_the_attempt_in_it_is_told_with_both_keys() -> None:
    recording = trial(1000016, "charge:1000016:attempt-1", purpose="recording")
    struck = trial(1000017, "charge:1000017:attempt-1", "charge:1000017:attempt-2")
    assert sentences(recording, struck) == [
        (
            f'{CHARGE}: key "charge:1000017:attempt-2" differs from "charge:1000017:attempt-1" of the first attempt',
            True,
        )
    ]


def test_the_same_problem_of_many_trials_is_told_once() -> None:
    trials = [trial(number, f"k:{number}:1", f"k:{number}:2") for number in range(1000001, 1000010)]
    recording = trial(1000099, "k:1000099:1", purpose="recording")
    assert len(sentences(recording, *trials)) == 1


def test_two_effects_of_one_job_have_two_keys_by_right() -> None:
    recording = trial(16, "deposit:16", "balance:16", purpose="recording")
    assert sentences(recording, trial(17, "deposit:17", "deposit:17", "balance:17")) == []
    assert len(sentences(recording, trial(17, "deposit:17", "balance:17", "balance:17:b"))) == 1


def test_a_key_that_two_events_share_is_told() -> None:
    assert sentences(trial(17, "charge"), trial(18, "charge")) == [
        (f'{CHARGE}: key "charge" is the same for two events, invoice 17 and invoice 18', True)
    ]


def test_a_key_on_one_attempt_only_is_told() -> None:
    recording = trial(16, "k:16", purpose="recording")
    assert sentences(recording, trial(17, "k:17", "")) == [
        (f'{CHARGE}: one attempt sent no key, another sent "k:17"', True)
    ]


def test_no_key_at_all_on_a_provider_that_honours_one_is_advice() -> None:
    assert sentences(trial(17, ""), honours=("payments",)) == [
        (f"{CHARGE}: no idempotency key was seen, though payments honours one", False)
    ]
    assert sentences(trial(17, "")) == []
