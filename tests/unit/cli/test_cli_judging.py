"""Stored runs judged again, from trials made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobcheck.api import at_least_once, at_most_once, exactly_once
from jobcheck.errors import UsageError
from jobcheck.history.codec import to_json
from jobcheck.history.records import CaseRecord, Effect, Strike, TrialRecord
from jobcheck.history.report import StrikeReport, SubjectReport
from jobcheck.runner.judging import exit_code_of_judged, rejudge, rejudge_subject, subjects_of

KEY = "charge/handler"
KILL, LATE = Strike("s1", "p1"), Strike("s2", "p1", when="after")


def trial(name: str, purpose: str, charges: int, strike: Strike | None = None, **values: object) -> TrialRecord:
    case = CaseRecord(name, 1, {"invoice": name})
    effects = tuple(Effect(at, at, "payments POST /charges", name, case=name) for at in range(charges))
    values = {"fired": strike is not None, "deliveries_after": 1, **values}
    return TrialRecord(name, KEY, purpose, case, strike, effects=effects, **values)  # type: ignore[arg-type]


TRIALS = (
    trial("c1", "warm-up", 1),
    trial("c2", "recording", 1),
    trial("c3", "recording", 1),
    trial("c4", "strike", 1, KILL, fired=False),
    trial("c5", "strike", 2, KILL),
    trial("c6", "strike", 1, LATE),
    trial("c7", "verify", 1, KILL),
)
STORED = SubjectReport(
    name="charge",
    system="handler",
    mode="handler",
    contracts=("exactly once: payments POST /charges",),
    strikes=(
        StrikeReport("s1", "p1", "kill", "before", True, "duplicated", layer="handler"),
        StrikeReport("s2", "p1", "kill", "after", True, "ok"),
    ),
    verdict="broken",
)


def test_the_same_contracts_give_the_stored_verdicts():
    judged = rejudge_subject(STORED, TRIALS)
    assert [strike.verdict for strike in judged.strikes] == ["duplicated", "ok"]
    assert judged.strikes[0].effects == ("payments POST /charges: 2 times, expected 1",)
    assert judged.changed == ()
    assert exit_code_of_judged([judged], "settings") == 1


def test_other_contracts_change_the_verdicts():
    judged = rejudge_subject(STORED, TRIALS, [at_least_once("payments")])
    assert [(old.verdict, new.verdict) for old, new in judged.changed] == [("duplicated", "ok")]
    assert exit_code_of_judged([judged], "settings") == 0


def test_the_last_trial_of_a_strike_counts():
    judged = rejudge_subject(STORED, [*TRIALS, trial("c8", "strike", 1, KILL)])
    assert [strike.verdict for strike in judged.strikes] == ["ok", "ok"]


def test_a_strike_without_a_trial_is_unknown():
    judged = rejudge_subject(STORED, TRIALS[:5])
    assert [strike.verdict for strike in judged.strikes] == ["duplicated", "unknown"]
    assert exit_code_of_judged([judged], "none") == 2


def test_a_subject_that_was_never_struck_stays_unknown():
    judged = rejudge_subject(replace(STORED, strikes=(), problem="two clean runs differ"), TRIALS[:3])
    assert judged.problem == "two clean runs differ"
    assert exit_code_of_judged([judged], "settings") == 2


def test_a_contract_that_speaks_of_nothing_is_a_usage_error():
    with pytest.raises(UsageError, match="the clean run never showed it"):
        rejudge_subject(STORED, TRIALS, [exactly_once("mail")])


@pytest.mark.parametrize(
    ("stored", "guarantee", "layer"),
    [
        ("transport", "at-least-once", "transport"),
        ("settings", "at-most-once", "settings"),
        ("", "at-most-once", "settings"),
        ("", "at-least-once", "transport"),
    ],
)
def test_a_lost_job_that_was_never_handed_out_again_is_not_laid_at_the_handler(stored, guarantee, layer):
    subject = replace(
        STORED,
        mode="queue",
        guarantee=guarantee,
        strikes=(StrikeReport("s1", "p1", "kill", "before", True, "lost" if stored else "ok", layer=stored),),
    )
    lost = [*TRIALS[:3], trial("c9", "strike", 0, KILL, deliveries_after=0)]
    (strike,) = rejudge_subject(subject, lost).strikes
    assert (strike.verdict, strike.layer) == ("lost", layer)
    again = [*TRIALS[:3], trial("c9", "strike", 0, KILL)]
    assert rejudge_subject(subject, again, [exactly_once("payments")]).strikes[0].layer == "handler"


def test_at_most_once_forgives_what_is_lost():
    lost = [*TRIALS[:3], trial("c9", "strike", 0, KILL), TRIALS[5]]
    assert [s.verdict for s in rejudge_subject(STORED, lost, [at_most_once("payments")]).strikes] == ["ok", "ok"]


def test_trials_belong_to_the_next_subject_of_their_key():
    lines: list[dict[str, object]] = [{"type": "run"}]
    for group in (TRIALS[:5], TRIALS[1:3]):
        lines += [{"type": "trial", "trial": to_json(item)} for item in group]
        lines.append({"type": "subject", "key": KEY, "subject": to_json(STORED)})
    found = subjects_of([*lines, {"type": "torn"}])
    assert [[item.id for item in trials] for _, trials in found] == [["c1", "c2", "c3", "c4", "c5"], ["c2", "c3"]]
    assert found[0][0] == STORED


def test_a_journal_without_a_finished_job_is_told(tmp_path):
    (tmp_path / "journal.jsonl").write_text('{"type": "run"}\n')
    with pytest.raises(UsageError, match="no job that was explored to its end"):
        rejudge(tmp_path)
