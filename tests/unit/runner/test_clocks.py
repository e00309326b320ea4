"""The arithmetic of a faster clock, to the digit, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobcheck.clock import ManualClock
from jobcheck.errors import CaseError
from jobcheck.runner.clocks import out_of_reach, own_time, too_tight
from jobcheck.runner.scenarios.clocks import Load, arithmetic, fastest, sums, too_much
from jobcheck.runner.stage import Stage
from jobcheck.systems.contract import Settings
from jobcheck.workers.pace import Pace


def scenario(rate: float, count: int, speed: float = 100.0) -> Any:
    return SimpleNamespace(speed=speed, workload=SimpleNamespace(rate=rate, count=count))


def test_a_load_that_cannot_be_met_is_unknown_with_its_sums() -> None:
    load = Load("", 0.08, 2)
    assert sums(load, 20, 100) == "20/s x 0.08 s of work x 100 = 160 workers busy, and there are 2"
    assert too_much(load, 20, 100) == "at most speed 1, or a rate of at most 0.25/s (15/m)"
    with pytest.raises(CaseError) as error:
        arithmetic(scenario(20, 300), [load])
    assert error.value.message == (
        "the load cannot be met at that speed: 20/s x 0.08 s of work x 100 = 160 workers busy, and there are 2: "
        "at most speed 1, or a rate of at most 0.25/s (15/m)"
    )


def test_each_role_is_counted_with_the_jobs_that_it_does_at_once() -> None:
    found = [Load("", 0.01, 2), Load("mail", 0.05, 8)]
    assert arithmetic(scenario(1, 50), found) == [
        "clock: 1/s x 0.01 s of work x 100 = 1 workers busy, and there are 2",
        "clock: 1/s x 0.05 s of work x 100 = 5 mail workers busy, and there are 8",
    ]
    with pytest.raises(CaseError, match=r"2/s x 0.05 s of work x 100 = 10 mail workers busy, and there are 8: at most"):
        arithmetic(scenario(2, 50), found)


def test_a_few_cases_that_wait_for_one_another_are_told_only() -> None:
    (said,) = arithmetic(scenario(20, 4), [Load("", 0.08, 2)])
    assert said.endswith("at most speed 1, or a rate of at most 0.25/s (15/m); told only, since there are 4 cases")
    assert "it cannot be met in real time either" in too_much(Load("", 0.2, 2), 20, 100)
    assert arithmetic(scenario(20, 300, speed=1.0), [Load("", 0.08, 2)]) == []


def test_a_machine_that_was_busy_once_is_no_reason() -> None:
    first, second = [Load("", 0.3, 2), Load("mail", 0.02, 8)], [Load("", 0.01, 2)]
    assert fastest(first, second) == [Load("", 0.01, 2), Load("mail", 0.02, 8)]


def test_exactly_as_much_as_there_is_can_be_met() -> None:
    assert too_much(Load("", 0.01, 2), 2, 100) == ""
    assert too_much(Load("", 0.0101, 2), 2, 100) == "at most speed 99, or a rate of at most 1.98/s (119/m)"


def test_limits_that_the_clock_alone_brings_on_are_told_with_a_speed_that_leaves_room() -> None:
    stage: Any = SimpleNamespace(pace=object(), speed=100.0)
    settings = Settings("at-least-once", "", limits={"task_soft_time_limit": 10.0, "visibility_timeout": 3600.0})
    assert own_time(stage, settings, 0.08) == [
        "clock: 0.08 s of work x 100 = 8 s of the job's own time, within visibility_timeout 3600 s; shorter time-outs "
        "that nobody told of fire, such as those of HTTP clients",
        "clock: task_soft_time_limit is 10 s, and 2 x 0.08 s of work x 100 = 16 s: it may fire by the clock alone; "
        "at most speed 62",
    ]
    assert too_tight("task_time_limit", 16.0, 0.08, 100.0) == ""
    assert "no room in real time either" in too_tight("task_time_limit", 0.1, 0.08, 100.0)
    assert own_time(SimpleNamespace(pace=None, speed=1.0), settings, 0.08) == []  # type: ignore[arg-type]


def test_a_retry_that_real_time_does_not_reach_is_told_with_the_reason() -> None:
    stage: Any = SimpleNamespace(kept="'broker' is given by its url", job_clock=ManualClock(1000.0))
    said = out_of_reach(stage, "pay is not due", ["1970-01-01T00:17:00+00:00", "1970-01-01T00:17:40+00:00"])
    assert said == "its retry is due in another 60 s, and the clock could not be sped up: 'broker' is given by its url"
    assert out_of_reach(stage, "pay runs", ["1970-01-01T00:16:00+00:00"]).startswith("it had not ended (pay runs), and")
    assert out_of_reach(stage, "", []) == ""
    stage.kept = ""
    assert out_of_reach(stage, "pay runs", []) == ""


def test_who_was_too_slow_for_the_clock_is_told_to_take_a_smaller_speed() -> None:
    def hurried(pace: Pace | None) -> str:
        return Stage.hurried.fget(SimpleNamespace(pace=pace))  # type: ignore[attr-defined, no-any-return]

    assert hurried(None) == ""
    assert hurried(Pace(1000.0, Path("/lib/x.so"), ManualClock(), 0.0)) == (
        "a smaller --speed: a time-out of 10 s is 0.01 s of real time at speed 1000"
    )
