"""When a queue is quiet, on hand-made seats: nothing here runs, so each moment of a race can be looked at."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobcheck.runner.quiet import OFTEN, SELDOM, Quiet, until_next_look
from jobcheck.systems.contract import Settings

LATE = Settings("at-least-once", "late")
EARLY = Settings("at-most-once", "early")


def seat(**values: Any) -> Any:
    slot = SimpleNamespace(
        in_flight=list,
        taken=values.get("taken", {}),
        deliveries=values.get("deliveries", len(values.get("taken", {}))),
        settled=values.get("settled", 0),
        ended=lambda job: None,
        drain=lambda: asyncio.sleep(0),
        polls=values.get("polls", False),
        asks=values.get("asks", False),
    )
    return SimpleNamespace(
        slot=slot,
        alive=True,
        ends=values.get("ends", {}),
        tells=values.get("tells", True),
        dialect=SimpleNamespace(
            held=lambda: values.get("held", []), tasks=values.get("tasks", {}), due=values.get("due", {})
        ),
        tail=list,
    )


def quiet(
    settings: Settings,
    *,
    silence: float = 10.0,
    depth: int = 0,
    seconds: float = 0.05,
    queued: str = "",
    kept: str = "",
) -> Quiet:
    """On a broker of that depth, on which nothing moved for so long."""

    async def tell(*_: object) -> int:
        return depth

    now = iter(range(2000))
    clock = SimpleNamespace(now=lambda: next(now) / 100, wall=lambda: 100.0)
    lane = SimpleNamespace(
        rig=SimpleNamespace(system=SimpleNamespace(broker="broker", depth=tell)),
        queued=queued,
        addresses={"broker": None},
        services={"broker": None},
        stage=SimpleNamespace(clock=clock, job_clock=clock, kept=kept, patience=lambda seconds: f"{seconds:g} s"),
        trace=SimpleNamespace(quiet_for=lambda: silence, started=0.0, now=clock.now),
        company=SimpleNamespace(check=lambda: None, busy=str),
    )
    return Quiet(cast(Any, lane), settings, ["j"], seconds)


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time goes on by looking: see `clock` above."""
    monkeypatch.setattr("jobcheck.runner.quiet.until_next_look", lambda silence: 0.0)


def reached(rule: Quiet, place: Any) -> str:
    return asyncio.run(rule.reached(place))


def test_an_empty_broker_is_quiet() -> None:
    assert reached(quiet(LATE), seat()) == ""


def test_a_call_in_a_providers_queue_is_not_quiet_whoever_made_it() -> None:
    """The job that made it may be dead; the charge will come all the same."""
    said = reached(quiet(LATE, queued="1 call(s) wait in the queue of payments"), seat())
    assert said.endswith("1 call(s) wait in the queue of payments")


def test_a_job_in_the_gap_before_its_reservation_is_not_quiet_though_nobody_holds_it() -> None:
    place = seat(taken={"j": 0.0}, held=[])
    assert "job j has been running" in reached(quiet(LATE), place)


def test_a_late_job_has_ended_with_its_ack_even_when_the_worker_tells_nothing() -> None:
    assert reached(quiet(LATE), seat(taken={"j": 0.0}, settled=1, tells=False)) == ""


def test_an_early_job_is_not_over_with_its_ack() -> None:
    assert "job j has been running" in reached(quiet(EARLY), seat(taken={"j": 0.0}, settled=1))
    assert reached(quiet(EARLY), seat(taken={"j": 0.0}, settled=1, ends={"j": "succeeded"})) == ""


def test_an_early_job_of_a_worker_that_never_tells_is_over_after_a_silence() -> None:
    place = seat(taken={"j": 0.0}, settled=1, tells=False)
    assert reached(quiet(EARLY, silence=2.0), place) == ""
    assert "job j has been running" in reached(quiet(EARLY, silence=0.5), place)


def test_jobs_on_the_broker_are_waited_for() -> None:
    assert "1 job(s) on the broker" in reached(quiet(LATE, depth=1), seat())


def test_a_worker_that_ended_by_itself_is_told() -> None:
    place = seat(taken={"j": 0.0})
    place.alive = False
    assert "the worker ended by itself" in reached(quiet(LATE), place)


def test_a_worker_that_polls_is_not_done_before_it_asks_for_the_next_job() -> None:
    done = {"taken": {"j": 0.0}, "settled": 1, "polls": True}
    assert "has not asked for the next job yet" in reached(quiet(LATE), seat(**done))
    assert reached(quiet(LATE), seat(**done, asks=True)) == ""


def test_what_hangs_is_named_by_its_task_and_for_how_long() -> None:
    for tells in (True, False):
        place = seat(taken={"j": 0.01}, tasks={"j": "shop.charge"}, tells=tells, polls=True)
        assert reached(quiet(LATE, seconds=2.0), place) == "not quiet after 2 s: shop.charge has been running for 2 s"


def test_a_job_that_waits_for_its_time_is_named_with_how_long_it_will() -> None:
    due = {"j": "1970-01-01T00:04:40+00:00"}
    said = (
        "not quiet after 2 s: shop.charge is not due for another 180 s (a countdown, an eta, or the delay of a retry)"
    )
    held = {"taken": {"j": 0.01}, "tasks": {"j": "shop.charge"}, "due": due}
    assert reached(quiet(LATE, seconds=2.0), seat(**held)) == said
    retried = seat(**held, ends={"j": "retrying"}, settled=1)
    assert reached(quiet(LATE, depth=1, seconds=2.0), retried) == said


def test_a_lease_that_runs_out_by_itself_comes_on_top_of_every_patience() -> None:
    """The job of a dead worker is on the broker, and one that lives leaves its own where it is, until it is over."""
    waiting = seat()
    left = seat(taken={"j": 0.0}, ends={"j": "succeeded"}, held=["t"])
    early = seat(taken={"j": 0.0}, ends={"j": "succeeded"})

    def going(place: Any, lease: float, **given: float) -> str:
        rule = quiet(LATE, depth=1, seconds=0.2, silence=0.3)
        return asyncio.run(rule.reached(place, lease=lease, **given))

    assert going(waiting, 0.0) == "not quiet after 0.2 s: 1 job(s) on the broker"
    assert going(waiting, 0.3) == "not quiet after 0.5 s: 1 job(s) on the broker"
    assert going(left, 0.0, stuck=0.1) == "1 job(s) on the broker"
    assert going(early, 0.3, stuck=0.1) == "1 job(s) on the broker", "it holds nothing that could come back"
    assert going(left, 0.3, stuck=0.1) == "not quiet after 0.5 s: 1 job(s) on the broker"


def test_a_retry_that_real_time_does_not_reach_is_not_waited_for() -> None:
    """Only where a faster clock was asked for and cannot be had; the wall is at 100 s."""
    place = seat(taken={"j": 0.0}, held=["t"], due={"j": "1970-01-01T00:02:40+00:00"})
    rule = quiet(LATE, seconds=10.0, kept="the broker is given by its url")
    assert reached(rule, place) == "job j is not due for another 60 s (a countdown, an eta, or the delay of a retry)"
    assert rule.out_of_reach
    assert reached(quiet(LATE, seconds=0.5), place).startswith("not quiet after 0.5 s: ")


def test_a_long_silence_is_looked_at_seldom_and_a_short_one_often() -> None:
    """A lease of half a minute cost 40 % of a processor while nothing happened."""
    assert [until_next_look(silence) for silence in (0.0, 0.1, 1.0, 36.0)] == [OFTEN, OFTEN, 0.02, SELDOM]
