"""Races of the sample shop's jobs: what two workers do to each other is found, and the right jobs bear every order.

One stage serves all tests of this file: each job is raced once in each mode that is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobcheck.checks.clean import clean_of
from jobcheck.checks.contracts import at_least_once, exactly_once
from jobcheck.events import Bus
from jobcheck.explore.causes import HANDLER
from jobcheck.explore.races import A, B, parse
from jobcheck.history.records import TrialRecord, Verdict
from jobcheck.history.report import FindingReport
from jobcheck.runner.handler import HandlerMode
from jobcheck.runner.lane import Lane
from jobcheck.runner.queue import QueueMode
from jobcheck.runner.races import Raced, RaceOptions, race
from jobcheck.runner.rig import load_rig
from jobcheck.runner.samples import sample
from jobcheck.runner.stage import Stage

CONTRACTS = (exactly_once("payments POST /charges"), at_least_once("mail"))
CHECK_THEN_ACT, DRAWN_ONCE = "at_once:check_then_act", "at_once:drawn_once"
NAIVE, MARKER_AFTER = "variants:naive", "variants:marker_after"
IDEMPOTENT, LOCKED = "variants:idempotent", "variants:locked"

WRONG = [(CHECK_THEN_ACT, "handler"), (CHECK_THEN_ACT, "queue"), (MARKER_AFTER, "handler")]
RIGHT = [
    *((job, "handler") for job in (DRAWN_ONCE, IDEMPOTENT, LOCKED)),
    *((job, "queue") for job in (IDEMPOTENT, LOCKED)),
]


@dataclass(frozen=True)
class Outcome:
    """What a search gave, and a clean run of the same mode behind it."""

    raced: Raced
    after: TrialRecord
    again: Raced | None = None
    """The schedule of its failure, replayed."""

    @property
    def finding(self) -> FindingReport:
        assert len(self.raced.findings) == 1
        return self.raced.findings[0]


async def searched(lane: Lane, job: str, mode: str) -> Outcome:
    module, _, variant = job.partition(":")
    rig = lane.rig
    ways: HandlerMode | QueueMode
    if mode == "handler":
        handler = f"shop.{module}:charge_and_mail_{variant}"
        ways = HandlerMode(lane, variant, handler, rig.reference("invoice_row"))
    else:
        ways = QueueMode(lane, variant, rig.reference(f"new_invoice_{variant}"))
    await ways.open()
    try:
        await ways.run("warm-up")
        recordings = [await ways.run("recording"), await ways.run("recording")]
        options = RaceOptions(CONTRACTS, clean_of(recordings), recordings[0])
        raced = await race(ways, options)
        again = None
        if raced.findings and mode == "handler":
            bad = next(outcome for outcome in raced.outcomes if outcome.bad)
            again = await race(ways, RaceOptions(CONTRACTS, clean_of(recordings), only=bad.strike.when, verify=2))
        return Outcome(raced, await ways.run("recording"), again)
    finally:
        await ways.close()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, str], Outcome]:
    logs = tmp_path_factory.mktemp("output")
    rig = load_rig(f"{sample('apps', 'invoices', 'rig.py')}:shop")

    async def main() -> dict[tuple[str, str], Outcome]:
        async with Stage(seed=7, bus=Bus(), logs=logs) as stage, Lane(stage, rig, 0) as lane:
            return {key: await searched(lane, *key) for key in [*WRONG, (NAIVE, "handler"), *RIGHT]}

    return asyncio.run(main())


Outcomes = Mapping[tuple[str, str], Outcome]


@pytest.mark.parametrize("key", WRONG, ids=str)
def test_two_workers_that_look_before_either_has_acted_are_found_within_ten_schedules(
    outcomes: Outcomes, key: tuple[str, str]
) -> None:
    found = outcomes[key]
    assert len(found.raced.outcomes) <= 10
    assert (found.finding.layer, found.finding.effect, found.finding.verdict) == (
        HANDLER,
        "payments POST /charges",
        "duplicated",
    )
    assert found.finding.verified == {"reproduced": 3, "of": 3}


@pytest.mark.parametrize("key", RIGHT, ids=str)
def test_the_right_jobs_bear_every_order_with_two_preemptions(outcomes: Outcomes, key: tuple[str, str]) -> None:
    raced = outcomes[key].raced
    verdicts = {outcome.verdict for outcome in raced.outcomes}
    assert verdicts == {Verdict.OK}
    assert all(outcome.fired for outcome in raced.outcomes)
    assert (raced.exhausted, raced.left, raced.findings) == (True, 0, [])
    assert {parse(outcome.strike.when).preemptions for outcome in raced.outcomes} >= {0, 1}
    assert len({outcome.strike.id for outcome in raced.outcomes}) == len(raced.outcomes)


def test_the_search_shows_its_size(outcomes: Outcomes) -> None:
    """Five steps: one schedule without, four with one preemption, and each of these with one more (tap-notes 4)."""
    raced = outcomes[IDEMPOTENT, "handler"].raced
    counts = [parse(outcome.strike.when).preemptions for outcome in raced.outcomes]
    assert raced.steps == 5
    assert (counts.count(0), counts.count(1)) == (1, 4)
    assert counts.count(2) >= 12


def test_who_waits_for_a_row_lock_is_found_by_the_servers_word(outcomes: Outcomes) -> None:
    """The second claim waits in the database until the first transaction ends: the order is forced, not chosen."""
    raced = outcomes[LOCKED, "handler"].raced
    assert raced.steps == 4
    assert not raced.notes, "nobody was taken to wait because it was silent"
    for outcome in raced.outcomes:
        if not parse(outcome.strike.when).switches:
            continue
        sent = [op for op in raced.trials[outcome.trial].operations if op.way == "out" and op.worker != "producer"]
        operations = sorted(sent, key=lambda op: op.at)
        commits = [op.worker for op in operations if op.shape == "postgres COMMIT"]
        charges = [op.worker for op in operations if op.shape == "http POST /charges"]
        assert len(charges) == 1
        assert commits[0] == charges[0] == "handler"


def test_a_job_that_is_not_idempotent_fails_without_a_preemption(outcomes: Outcomes) -> None:
    found = outcomes[NAIVE, "handler"]
    assert len(found.raced.outcomes) == 1
    assert found.finding.title == "payments POST /charges happens again when the job is delivered twice"
    assert "idempotency key" in found.finding.advice


def test_a_finding_says_who_was_held_where_and_what_would_mend_it(outcomes: Outcomes) -> None:
    finding = outcomes[CHECK_THEN_ACT, "handler"].finding
    assert finding.title == "payments POST /charges happens again when two workers have the job at once"
    assert finding.where == "A is held before db INSERT charge_keys"
    assert finding.code.startswith("shop/db.py:")
    assert finding.code.endswith(" set_charge_key")
    assert "db SELECT charge_keys" in finding.advice
    assert "FOR UPDATE" in finding.advice


@pytest.mark.parametrize("mode", ["handler", "queue"])
def test_the_story_tells_the_turns_of_both(outcomes: Outcomes, mode: str) -> None:
    story = outcomes[CHECK_THEN_ACT, mode].finding.story
    held = next(number for number, line in enumerate(story) if line.kind == "strike")
    on = next(number for number, line in enumerate(story) if line.text == "B has ended; A goes on")
    assert story[held].text == "A is held here, before db INSERT charge_keys; B goes on"
    charges = [number for number, line in enumerate(story) if line.kind == "effect" and line.upstream == "payments"]
    assert len(charges) == 2
    assert held < charges[0] < on < charges[1]
    assert {line.lane for line in story[held:on] if line.kind == "message" and line.upstream == "db"} == {B}
    assert {line.lane for line in story[on:] if line.kind == "message" and line.upstream == "db"} == {A}


def test_in_queue_mode_the_message_is_doubled_on_the_broker(outcomes: Outcomes) -> None:
    story = outcomes[CHECK_THEN_ACT, "queue"].finding.story
    assert [line.lane for line in story if line.kind == "delivery"] == [A, B]
    assert [line.lane for line in story if line.text == "acknowledges the job"] == [B, A]
    assert any("put on the broker once more" in line.text for line in story)


@pytest.mark.parametrize("key", [*WRONG, *RIGHT], ids=str)
def test_a_race_leaves_workers_and_taps_as_they_were(outcomes: Outcomes, key: tuple[str, str]) -> None:
    after = outcomes[key].after
    assert (after.settled, after.problems, after.deliveries) == (True, (), 1)


@pytest.mark.parametrize("job", [CHECK_THEN_ACT, MARKER_AFTER, NAIVE])
def test_a_schedule_can_be_run_again_alone(outcomes: Outcomes, job: str) -> None:
    found = outcomes[job, "handler"]
    assert found.again is not None
    (again,) = found.again.findings
    assert (again.id, again.strikes, again.verified) == (
        found.finding.id,
        found.finding.strikes,
        {"reproduced": 2, "of": 2},
    )
    assert len(found.again.outcomes) == 1


def test_a_delivery_that_loses_may_fail(outcomes: Outcomes) -> None:
    """The second marker violates its key: that one delivery failed is told, and is not what breaks the contract."""
    bad = outcomes[MARKER_AFTER, "handler"].raced.outcomes[-1]
    assert [item.verdict for item in bad.broken] == [Verdict.DUPLICATED]
    assert any("UniqueViolation" in note for note in bad.notes)


def test_every_trial_is_kept(outcomes: Outcomes, tmp_path: Path) -> None:
    raced = outcomes[IDEMPOTENT, "handler"].raced
    assert {outcome.trial for outcome in raced.outcomes} <= set(raced.trials)
