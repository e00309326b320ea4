"""What stands around a job is wrong: each such bug is shown by the one fault that reaches it, and by no other one.

`jobcheck selftest` plays them; one round of it serves the first test, and a run in which each is put under all other
families the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from blameless import only_the_transport_loses
from click.testing import CliRunner

from jobcheck.cli.selftest import command
from jobcheck.events import Bus
from jobcheck.faults.strikes import DUPLICATE, FAMILIES, WEBHOOK, kind_of
from jobcheck.history.records import Point, Strike
from jobcheck.history.report import SubjectReport
from jobcheck.runner import explore, facade
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.rig import load_rig
from jobcheck.runner.samples import sample
from jobcheck.selftest import rounds
from jobcheck.selftest.around import AROUND
from jobcheck.selftest.asked import requests
from jobcheck.selftest.kinds import BOOKED, FOLLOWED_UP, PRODUCER_MODE, QUEUE_MODE
from jobcheck.selftest.rounds import Round, compared, finish, planted_in, play

pytestmark = pytest.mark.timeout(300)
NAMES = [planted.name for planted in AROUND]
MODES = (QUEUE_MODE, PRODUCER_MODE)
FEW = 16
"""Strikes and schedules of a job."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Round:
    return play(1, MODES, seed=7, reports=tmp_path_factory.mktemp("around"), bus=Bus(), only=NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_planted_around_a_job_comes_out_as_planted(played: Round, name: str) -> None:
    assert played.broke == ""
    (item,) = (item for item in played.compared if item.planted.name == name)
    assert item.differences == ()


def at_its_own_message(strikes: Sequence[Strike], points: Sequence[Point], count: int) -> list[Strike]:
    """Every strike at the first message that is the job's and not Celery's; duplicates wherever they are."""
    own = next(point.id for point in points if point.role in ("", "enqueue"))
    chosen = [strike for strike in strikes if strike.point == own or kind_of(strike.fault) == DUPLICATE]
    assert len(chosen) <= count
    return chosen


@pytest.fixture(scope="module")
def under_others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SubjectReport]:
    """What a worker runs, without its callback and without its deploy. (No strike of a worker reaches a producer.)"""
    path = sample("apps", "selftest", "rig.py")
    jobs = {
        "entry_for_each_callback": ("enqueue_wrong_entry_for_each_callback", BOOKED),
        "renewed_for_the_next_version": ("enqueue_wrong_renewed_for_the_next_version", FOLLOWED_UP),
    }
    others = tuple(family for family in FAMILIES if family != WEBHOOK)
    request = Request(
        command="test",
        rig=load_rig(f"{path}:club_with_others"),
        jobs=[
            Job(name, QUEUE_MODE, f"{path}:{function}", "", (contract,)) for name, (function, contract) in jobs.items()
        ],
        reports=tmp_path_factory.mktemp("others"),
        faults=others,
        max_points=FEW,
        verify=1,
        seed=7,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explore, "sampled", at_its_own_message)
        report = facade.run(lambda: facade.explore(request, Bus())).report
    return {subject.name: subject for subject in report.subjects}


@pytest.mark.parametrize("name", ["entry_for_each_callback", "renewed_for_the_next_version"])
def test_no_strike_of_a_worker_shows_it(under_others: dict[str, SubjectReport], name: str) -> None:
    subject = under_others[name]
    wanted = set(FAMILIES) - {WEBHOOK, "order"}  # one job, and here nobody calls back in another way
    if all(point.side == "delivery" or point.upstream == "broker" for point in subject.points):
        wanted -= {"kill-child", "duplicate"}  # which are about messages of the job's own
    only_the_transport_loses(subject, wanted)


def test_without_its_clock_the_last_retry_is_not_waited_for(tmp_path: Path) -> None:
    """The same strike at the same message: in real time the job is hung, and nothing is shown."""
    (planted,) = (one for one in AROUND if one.name == "claim_that_ends_too_early")
    (request,) = requests([(replace(planted, speed=1.0), QUEUE_MODE)], 7, tmp_path, finish)
    request = replace(request, deadline=3.0, verify=1)
    report = facade.run(lambda: facade.explore(request, Bus())).report
    (strike,) = report.subjects[0].strikes
    assert (strike.fired, strike.verdict) == (True, "hung")
    assert not compared(report)[0].good


def test_without_libfaketime_the_clock_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "faketime", list)
    slow = [planted.name for planted in AROUND if planted.speed != 1]
    assert not {planted.name for planted, _ in planted_in(MODES)} & set(slow)
    monkeypatch.setattr(rounds, "play", lambda number, *args, **more: Round(number, 7, (), 0.0))
    said = " ".join(CliRunner().invoke(command, ["--mode", "queue"], standalone_mode=False).output.split())
    assert f"not played: {', '.join(slow)}: no libfaketime is here" in said
