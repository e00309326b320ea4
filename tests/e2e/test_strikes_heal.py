"""What each strike leaves behind when its trial is over: no stopped process, no held byte, no proxy that is down.

Deploys, producers, callbacks, races and mixed versions: `test_faults_heal.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from jobcheck.faults.strikes import FAMILIES, RACE, WEBHOOK, kind_of
from jobcheck.history.records import Point, Strike, TrialRecord
from jobcheck.runner import explore
from jobcheck.runner.queue import QueueMode

from . import tiny
from .healed import left_behind, runs_now

pytestmark = pytest.mark.timeout(300)
KINDS = [kind for kinds in FAMILIES.values() for kind in kinds if kind not in (RACE, WEBHOOK)]
"""Races and callbacks have tests of their own (`test_faults_heal.py`): nobody calls back in the tiny app."""


def one_of_each(strikes: Sequence[Strike], points: Sequence[Point], count: int) -> list[Strike]:
    """The last strike of each kind that is not at the broker's own messages, where it has one."""
    broker = {point.id for point in points if point.broker}
    found: dict[str, Strike] = {}
    for strike in sorted(strikes, key=lambda strike: strike.point not in broker):
        found[kind_of(strike.fault)] = strike
    return list(found.values())


def test_no_strike_leaves_anything_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, list[str]] = {}
    run = QueueMode.run

    async def watched(
        self: QueueMode, purpose: str, strike: Strike | None = None, point: Point | None = None
    ) -> TrialRecord:
        trial = await run(self, purpose, strike, point)
        if strike is not None:
            assert trial.fired, strike
            await self.crew.staffed()
            seen[kind_of(strike.fault)] = [*await left_behind(self), *await runs_now(self)]
        return trial

    monkeypatch.setattr(QueueMode, "run", watched)
    monkeypatch.setattr(explore, "sampled", one_of_each)
    reference = tiny.write(tmp_path, call="[tiny.work.delay(key), tiny.work.delay(key)]")
    faults = tuple(family for family in FAMILIES if family != "race")
    subject = tiny.only(tiny.explore(reference, faults=faults, max_points=1, verify=1))
    assert subject.problem == ""
    assert set(seen) == set(KINDS)
    assert seen == {kind: [] for kind in KINDS}
    assert psutil.Process().children(recursive=True) == []
    assert [one for one in psutil.Process().net_connections("tcp") if one.status == psutil.CONN_LISTEN] == []
