"""Each bug of the self-test that one family of strikes shows is shown by that family, and by no other one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from blameless import only_the_transport_loses

from jobcheck.events import Bus
from jobcheck.faults.strikes import DUPLICATE, FAMILIES, WORKERS_ONLY, family_of, kind_of
from jobcheck.history.records import Point, Strike
from jobcheck.history.report import SubjectReport
from jobcheck.runner import explore, facade
from jobcheck.selftest.kinds import QUEUE_MODE, WRONG, Planted
from jobcheck.selftest.planted import PLANTED
from jobcheck.selftest.queued import QUEUED
from jobcheck.selftest.rounds import Round, play, request_for

pytestmark = pytest.mark.timeout(300)
ALONE = {
    "swallowed_error": "reset",
    "reply_ignored": "reset",
    "retry_without_key": "reset",
    "version_read_too_late": "race",
    "worker_that_remembers": "kill-child",
    "batch_cut_short": "term",
    "redelivered_alone": "duplicate",
    "lease_without_fence": "zombie",
    "last_one_wins": "order",
}
"""Bugs, and the family that each is left to."""
THE_SAME = {"last_one_wins": ("kill-child", "term", "duplicate", "race"), "redelivered_alone": ("race",)}
"""Families that do what its own one does: Celery puts the job of a child that died back behind those that wait, and a
second delivery of the first job comes behind the second one, which are other orders; a race begins with a duplicate."""
BY_NAME = {planted.name: planted for planted in PLANTED}
FEW = 16
"""Strikes and schedules of a job in its queue."""


def at_the_commit(strikes: Sequence[Strike], points: Sequence[Point], count: int) -> list[Strike]:
    """Every strike at the first commit, which all these bugs are about; duplicates wherever they are."""
    commit = next(point.id for point in points if point.shape == "postgres COMMIT")
    chosen = [strike for strike in strikes if strike.point == commit or kind_of(strike.fault) == DUPLICATE]
    assert len(chosen) <= count
    return chosen or list(strikes)


def others(planted: Planted, mode: str) -> tuple[str, ...]:
    """The families that must not show it."""
    return tuple(
        family
        for family in FAMILIES
        if family != ALONE[planted.name]
        and family not in THE_SAME.get(planted.name, ())
        and (mode == QUEUE_MODE or family not in WORKERS_ONLY)
    )


@pytest.fixture(scope="module")
def queued(tmp_path_factory: pytest.TempPathFactory) -> Round:
    """What needs a queue, each under its own family; what is right in its place, too."""
    names = [planted.name for planted in QUEUED]
    return play(1, [QUEUE_MODE], seed=7, reports=tmp_path_factory.mktemp("own"), bus=Bus(), only=names)


@pytest.fixture(scope="module")
def under_others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SubjectReport]:
    request = request_for(7, only=list(ALONE), reports=tmp_path_factory.mktemp("others"))
    jobs = [
        replace(
            job,
            faults=others(BY_NAME[job.subject], job.mode),
            max_points=FEW if job.mode == QUEUE_MODE else 0,
        )
        for job in request.jobs
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explore, "sampled", at_the_commit)
        report = facade.run(lambda: facade.explore(replace(request, jobs=jobs, verify=1), Bus())).report
    return {subject.name: subject for subject in report.subjects}


def test_each_is_planted_under_its_own_family_alone() -> None:
    for name, family in ALONE.items():
        assert {family_of(bad.fault) for bad in BY_NAME[name].bad} == {family}
    assert {planted.name for planted in QUEUED if planted.kind == WRONG} <= set(ALONE)


@pytest.mark.parametrize("name", [planted.name for planted in QUEUED])
def test_a_job_that_needs_a_worker_comes_out_as_planted(queued: Round, name: str) -> None:
    assert queued.broke == ""
    (item,) = (item for item in queued.compared if item.planted.name == name)
    assert item.differences == ()


@pytest.mark.parametrize("name", ALONE)
def test_no_other_family_shows_it(under_others: dict[str, SubjectReport], name: str) -> None:
    subject = under_others[name]
    wanted = set(others(BY_NAME[name], subject.mode))
    wanted -= {"order", "webhook"}  # there is but one job, and nobody calls back
    only_the_transport_loses(subject, wanted)
