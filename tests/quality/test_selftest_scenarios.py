"""The scenarios of the self-test: what only a failing server, provider or network shows is found in its own scenario,
the right counterpart stays green in the same one, and a run that differs from what is planted is told.

One round serves all tests of the first part; those of the second part spoil its report.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from jobcheck.cli.selftest import command
from jobcheck.events import Bus, Event, ScenarioStarted, ScenarioStep
from jobcheck.explore.causes import HANDLER, TRANSPORT
from jobcheck.runner.scenarios.campaign import run_scenarios
from jobcheck.selftest.compare_runs import compare_run
from jobcheck.selftest.in_trouble import IN_TROUBLE, PAIRS
from jobcheck.selftest.kinds import SCENARIO_MODE, Planted
from jobcheck.selftest.rounds import Round, play
from jobcheck.selftest.runs import loaded, runs_request
from jobcheck.selftest.tally import found_words

pytestmark = pytest.mark.timeout(300)
FAULTS = Path(__file__).parents[2] / "scenarios" / "apps" / "selftest" / "faults"
NAMES = [planted.name for planted in IN_TROUBLE]
BY_NAME = {planted.name: planted for planted in IN_TROUBLE}
LOST = [wrong.name for wrong, _ in PAIRS if any(bad.verdict == "lost" for bad in wrong.bad)]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Round:
    return play(1, [SCENARIO_MODE], seed=7, reports=tmp_path_factory.mktemp("scenarios"), bus=Bus())


@pytest.fixture(scope="module")
def runs(played: Round) -> Mapping[str, dict[str, Any]]:
    """The scenarios of the round's report by handler."""
    assert played.broke == ""
    return dict(zip(NAMES, played.results[0].report.scenarios, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_job_comes_out_of_its_scenario_as_planted(played: Round, name: str) -> None:
    """Red with the planted verdict, effect and layer, or green."""
    assert played.broke == ""
    (item,) = (item for item in played.compared if item.planted.name == name)
    assert (item.differences, item.mode) == ((), SCENARIO_MODE)


def test_the_report_says_what_came_out_and_how_to_play_it_again(played: Round, runs: Mapping[str, Any]) -> None:
    (result,) = played.results
    assert result.report.verdict == "ok"
    assert {run["expected"] for run in runs.values()} == {"as planted"}
    again = runs["slow_is_sent"]["reproduce"]
    assert again == "jobcheck selftest slow_is_sent --mode scenario --seed 7"


def test_every_scenario_of_the_app_has_one_pair_and_begins_with_the_wrong_one() -> None:
    """So that the file can be run as it is."""
    files = {path.stem: path.read_text() for path in FAULTS.glob("*.yaml")}
    assert sorted(files) == sorted(wrong.scenario for wrong, _ in PAIRS)
    for wrong, right in PAIRS:
        assert wrong.scenario == right.scenario
        assert f"enqueue_wrong_{wrong.name}," in files[wrong.scenario]
        assert wrong.trouble == right.trouble != ""
        mine, others = (loaded(one, 7).scenario for one in (wrong, right))
        assert (mine.faults, mine.expect) == (others.faults, others.expect)
        assert others.workload.enqueue == f"enqueue_right_{right.name}"


def test_the_line_of_a_bug_says_what_fails() -> None:
    """Of a bug that no case shows, the expectation that does not hold."""
    words = {
        name: found_words(compare_run(BY_NAME[name], {})) for name in ("slow_is_sent", "told_to_wait", "waits_as_told")
    }
    assert words == {
        "slow_is_sent": "lost: mail, mail server slow",
        "told_to_wait": "broken: backoff at payments, provider asks to wait",
        "waits_as_told": "nothing to find",
    }


# How differences are told: what the round showed, and then spoilt.


def told(name: str, run: Mapping[str, Any]) -> tuple[str, ...]:
    return compare_run(BY_NAME[name], run).differences


@pytest.mark.parametrize(("wrong", "right"), PAIRS, ids=[wrong.name for wrong, _ in PAIRS])
def test_a_right_handler_in_the_place_of_a_wrong_one_is_missed_and_the_reverse_accused(
    runs: Mapping[str, Any], wrong: Planted, right: Planted
) -> None:
    """The self-test can fail: each of the two has what the other one did."""
    missed, accused = told(wrong.name, runs[right.name]), told(right.name, runs[wrong.name])
    assert {line.partition(":")[0] for line in missed} == {"missed"}
    assert {line.partition(":")[0] for line in accused} == {"accused"}
    assert len(missed) == len({(bad.verdict, bad.layer) for bad in wrong.bad}) + len(wrong.breaks)
    for bad in wrong.bad:
        assert any(bad.verdict in line and bad.effect in line and wrong.trouble in line for line in missed)


@pytest.mark.parametrize("name", LOST)
def test_another_verdict_effect_or_layer_is_told(runs: Mapping[str, Any], name: str) -> None:
    (bad,) = BY_NAME[name].bad
    changes: dict[str, Any] = {"verdict": "duplicated", "layer": "settings", "broken": ["dues: never, expected 1"]}
    for field, value in changes.items():
        run = copy.deepcopy(runs[name])
        for case in run["bad"]:
            case[field] = value
        (line,) = told(name, run)
        assert line.startswith(f"missed: lost: {bad.effect} (handler) with {BY_NAME[name].trouble}; ")
        assert ("dues" if field == "broken" else value) in line.partition("; ")[2]


def test_a_second_thing_that_is_found_beside_the_planted_one_is_told(runs: Mapping[str, Any]) -> None:
    run = copy.deepcopy(runs["slow_is_sent"])
    run["bad"].append({"verdict": "unexpected", "layer": HANDLER, "broken": ["dues: 2 times, expected 1"]})
    run["expectations"].append({"text": "none_lost", "held": False, "detail": "1 lost"})
    assert told("slow_is_sent", run) == (
        "found otherwise: unexpected: dues (handler) with mail server slow",
        "found otherwise: none_lost: 1 lost",
    )


def test_what_the_transport_loses_is_nobodys_bug(runs: Mapping[str, Any]) -> None:
    run = copy.deepcopy(runs["mails_in_the_database"])
    run["bad"].append({"verdict": "lost", "layer": TRANSPORT, "broken": ["mail: never, expected 1"]})
    assert told("mails_in_the_database", run) == ()


def test_what_is_filed_as_failed_is_no_good_end_for_a_right_handler(runs: Mapping[str, Any]) -> None:
    run = copy.deepcopy(runs["tries_that_raise"])
    run["bad"].append({"verdict": "failed visibly", "layer": "", "broken": ["payments POST /charges: never"]})
    assert told("tries_that_raise", run) == (
        "accused: failed visibly: payments POST /charges (filed as failed) with provider answers 503",
    )


@pytest.mark.parametrize("name", ["told_to_wait", "waits_as_told"])
def test_whatever_is_not_known_is_a_difference_for_wrong_and_right(runs: Mapping[str, Any], name: str) -> None:
    problem = "not exercised: outage of payments never met a running job"
    assert told(name, {**runs[name], "problem": problem}) == (f"unknown: {problem}",)
    assert told(name, {"problem": "postgres died"}) == ("unknown: postgres died",)
    run = copy.deepcopy(runs[name])
    (backoff,) = (item for item in run["expectations"] if item["text"].startswith("backoff"))
    backoff.update(held=None, detail="no case called a second time")
    (line,) = told(name, run)
    assert line.startswith("unknown: backoff at payments: base 0.1 s")
    assert line.endswith("no case called a second time")
    assert told(name, {**runs[name], "orphans": ["mail belongs to no case"]}) == (
        "found elsewhere: mail belongs to no case",
    )


def test_an_expectation_that_the_scenario_does_not_ask_for_is_told(runs: Mapping[str, Any]) -> None:
    run = copy.deepcopy(runs["told_to_wait"])
    run["expectations"] = [item for item in run["expectations"] if not item["text"].startswith("backoff")]
    assert told("told_to_wait", run) == ("missed: backoff at payments; the scenario does not ask for it",)


def test_the_command_plays_scenarios_by_name(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        command, ["one_second_try", "--mode", "scenario", "--reports", str(tmp_path)], standalone_mode=False
    )
    assert done.exception is None, done.output
    assert done.return_value == 0
    assert "lost: payments POST /charges, two connections cut" in " ".join(done.stdout.split())
    assert "1 handler, 1 as planted; 1 round in" in done.stdout


def test_who_stops_a_round_does_not_wait_for_scenarios_that_nobody_is_told_of(tmp_path: Path) -> None:
    """One that is alone heals and reports what there is; of several side by side nothing is reported."""
    seen: list[Event] = []

    async def main() -> None:
        both, bus = asyncio.Event(), Bus()

        def hear(event: Event) -> None:
            seen.append(event)
            if sum(isinstance(one, ScenarioStarted) for one in seen) == 2:
                both.set()

        bus.subscribe(hear)
        planted = [BY_NAME["slow_is_sent"], BY_NAME["slow_is_not_sent"]]
        running = asyncio.create_task(run_scenarios(runs_request(planted, 7, reports=tmp_path), bus))
        await both.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert [one.text for one in seen if isinstance(one, ScenarioStep) and one.text.startswith("all faults ended")] == []
