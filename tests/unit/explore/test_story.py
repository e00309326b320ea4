"""The story of a trial, from hand-written records."""

from __future__ import annotations

from dataclasses import replace

from jobcheck.explore.story import story
from jobcheck.history.records import CaseRecord, Effect, Strike, TrialRecord

from .hand import Wire


def trial(wire: Wire, **values: object) -> TrialRecord:
    record = TrialRecord(
        id="t",
        subject="s",
        purpose="strike",
        case=CaseRecord("c", 1),
        strike=Strike("k", "p"),
        operations=tuple(wire.operations),
    )
    return replace(record, **values)  # type: ignore[arg-type]


def struck(wire: Wire, at: int) -> Wire:
    wire.operations[at] = replace(wire.operations[at], fate="struck")
    return wire


def kinds(record: TrialRecord) -> list[str]:
    return [line.kind for line in story(record)]


def test_the_strike_stands_at_its_message_and_the_recovery_before_the_next_worker() -> None:
    wire = struck(Wire("w1").say("db", "postgres COMMIT"), 0)
    wire.worker = "w2"
    wire.deliver().ask("db", "postgres COMMIT")
    record = trial(wire, notes=("lease rewound",), deliveries_after=1)
    assert kinds(record) == ["message", "strike", "recovery", "recovery", "delivery", "message"]
    assert [line.text for line in story(record)][2:4] == ["lease rewound", "w2 takes over"]


def test_a_job_that_is_not_handed_out_again_ends_its_story_so() -> None:
    wire = struck(Wire("w1").deliver(), 1)
    assert [line.text for line in story(trial(wire))][-1] == "the job was not handed out again"
    assert kinds(trial(wire)) == ["delivery", "strike", "recovery", "note"]


def test_a_lease_that_ran_out_is_told_where_the_job_is_put_back() -> None:
    """Whoever does that may be another one than the one who then does the job."""
    wire = struck(Wire("w1").say("db", "postgres COMMIT"), 0)
    wire.worker = "w2"
    wire.ask("broker", "redis EXEC", role="restore").deliver()
    record = trial(wire, notes=("lease of 3 s ran out by itself after 3.4 s",), deliveries_after=1)
    assert [line.text for line in story(record)][2:] == [
        "lease of 3 s ran out by itself after 3.4 s: w2 puts the job back into its queue",
        "w2 takes over",
        "the broker hands the job out",
    ]


def test_effects_stand_where_they_happened_and_calls_without_effect_are_notes() -> None:
    wire = Wire("handler").ask("payments", "http POST /charges").ask("mail", "smtp DATA")
    effects = (
        Effect(1, 0.015, "payments POST /charges", "{}"),
        Effect(2, 0.045, "payments POST /charges", "{}", applied=False, note="replayed"),
    )
    lines = story(trial(wire, effects=effects))
    assert [line.kind for line in lines] == ["message", "effect", "message", "note"]
    assert lines[-1].text == "no new effect: payments POST /charges replayed"


def test_polls_answers_and_transaction_chatter_are_left_out() -> None:
    wire = Wire("w1").ask("db", "postgres BEGIN", "no").ask("broker", "redis BRPOP q", "no", role="poll")
    assert [line.text for line in story(trial(wire)) if "BEGIN" in line.text] == []
