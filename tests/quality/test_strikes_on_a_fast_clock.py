"""Strikes on a clock that goes a hundred times as fast: what a strike needs is done before a living worker is held, or
when it has ended, for a moment of ours is minutes of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobcheck.errors import UsageError
from jobcheck.events import Bus
from jobcheck.faults.strikes import DEPLOY, FAMILIES, ZOMBIE, kind_of
from jobcheck.history.records import Point, Strike
from jobcheck.runner import clocks, explore, facade, leases
from jobcheck.runner.crew import Crew
from jobcheck.runner.lane import Lane
from jobcheck.runner.queue_strikes import Struck
from jobcheck.selftest.around import AROUND, FAST, PATIENT
from jobcheck.selftest.asked import requests
from jobcheck.selftest.kinds import QUEUE_MODE
from jobcheck.selftest.queued import QUEUED
from jobcheck.selftest.rounds import finish
from jobcheck.systems.celery.adapter import Celery
from jobcheck.tap.gate import Armed, HoldFetch
from jobcheck.tap.sight import OUT

pytestmark = pytest.mark.timeout(300)
KNOWN = ("zombie", "term", "duplicate", "order")
BY_NAME = {planted.name: planted for planted in (*AROUND, *QUEUED)}


def kept_waiting(lane: Lane) -> list[str]:
    """Workers that wait for us at this moment: at the message of a strike, or at their first fetch."""
    return [
        slot.name
        for slot in lane.slots.values()
        if any(link.holding(OUT) for link in slot.links)
        and (
            (isinstance(slot.gate, Armed) and slot.gate.fired.is_set())
            or (isinstance(slot.gate, HoldFetch) and slot.gate.reached.is_set())
        )
    ]


def one_of_each(strikes: Sequence[Strike], points: Sequence[Point], count: int) -> list[Strike]:
    """The last strike of each fault, at the job's own messages where it has one."""
    broker = {point.id for point in points if point.broker}
    return list({one.fault: one for one in sorted(strikes, key=lambda one: one.point not in broker)}.values())


def test_whatever_takes_long_is_done_while_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    held: list[str] = []
    lanes: list[Lane] = []

    def watch(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        async def watched(*args: Any, **more: Any) -> Any:
            first = args[0]
            paused = (
                isinstance(first, Struck)
                and first.running.strike is not None
                and (kind_of(first.running.strike.fault) == ZOMBIE)
            )
            lanes.extend([first] if isinstance(first, Lane) else [first.lane] if isinstance(first, Crew) else [])
            seen.append(name)
            held.extend(f"{one} at {name}" for one in ([] if paused else kept_waiting(lanes[-1])))
            return await original(*args, **more)

        monkeypatch.setattr(owner, name, watched)

    watch(Lane, "new_case")
    watch(Lane, "canary_case")
    watch(Crew, "newcomer")
    watch(Crew, "replace")
    watch(Celery, "reorder")
    watch(leases, "rewind")
    monkeypatch.setattr(explore, "sampled", one_of_each)
    planted = [
        replace(BY_NAME["newest_one_wins"], rig=PATIENT, speed=FAST, faults=KNOWN, strikes=9),
        replace(BY_NAME["renewed_for_both_versions"], rig=PATIENT, speed=FAST),
    ]
    (request,) = requests([(one, QUEUE_MODE) for one in planted], 7, tmp_path, finish)
    report = facade.run(lambda: facade.explore(replace(request, lanes=1, finish=lambda told: told), Bus())).report
    struck = [strike for subject in report.subjects for strike in subject.strikes]
    assert [subject.problem for subject in report.subjects] == ["", ""]
    assert {kind_of(strike.fault) for strike in struck} == {
        "zombie",
        "term",
        "term-group",
        "duplicate",
        "order",
        DEPLOY,
    }
    assert [(strike.fault, strike.verdict) for strike in struck if strike.verdict != "ok" or not strike.fired] == []
    assert "duplicate meanwhile" not in {strike.fault for strike in struck}
    assert {"canary_case", "newcomer", "replace", "reorder", "rewind"} <= set(seen)
    assert held == []


def test_races_are_refused_by_name_and_left_out_of_all() -> None:
    with pytest.raises(UsageError, match="--speed 100 and races do not go together"):
        clocks.check(100, ("kill", "race"))
    clocks.check(1, ("kill", "race"))
    clocks.check(100, tuple(FAMILIES))
