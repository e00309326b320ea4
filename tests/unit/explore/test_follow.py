"""The points of a job and of those that it causes."""

from __future__ import annotations

from jobcheck.explore.causes import gap
from jobcheck.explore.follow import alike, followed, followed_reads
from jobcheck.explore.points import name
from jobcheck.explore.search import kills
from jobcheck.history.records import CaseRecord, Member, TrialRecord

from .hand import Wire


def trial(tree: list[Member], wire: Wire) -> TrialRecord:
    return TrialRecord("t", "s", "recording", CaseRecord("c", 1), tree=tuple(tree), operations=tuple(wire.operations))


def a_group(*, last_is_other: bool = False) -> TrialRecord:
    """A parent and three children of one task."""
    wire = Wire(job="p")
    wire.deliver().ask("db", "postgres COMMIT").ask("broker", "redis LPUSH celery", role="enqueue")
    tree = [Member("p", "shop.start")]
    for nth in (1, 2, 3):
        wire.job = f"c{nth}"
        tree.append(Member(wire.job, "shop.part", nth, "p"))
        wire.deliver().ask("db", "postgres SELECT", "no", guess="no").ask("db", "postgres COMMIT")
        if nth == 3 and last_is_other:
            wire.ask("broker", "redis LPUSH celery", role="enqueue")
    return trial(tree, wire)


def test_each_job_has_its_points_under_its_name() -> None:
    points = followed(a_group(), "broker").points
    assert [name(point) for point in points] == [
        "shop.start: broker delivery",
        "shop.start: db COMMIT",
        "shop.start: broker LPUSH celery",
        "shop.part: broker delivery",
        "shop.part: db COMMIT",
    ]
    assert [point.nth for point in points] == [1, 1, 1, 1, 1], "each job counts for itself"
    assert len({point.id for point in points}) == len(points)


def test_jobs_that_do_the_same_are_struck_once_and_that_is_said() -> None:
    assert alike(a_group(), "broker") == ["shop.part is struck for 2 more of its task that do the same"]


def test_the_last_of_a_group_that_does_more_is_struck_for_itself() -> None:
    recording = a_group(last_is_other=True)
    jobs = list(dict.fromkeys(point.job for point in followed(recording, "broker").points))
    assert jobs == ["shop.start", "shop.part", "shop.part #3"]
    assert alike(recording, "broker") == ["shop.part is struck for 1 more of its task that do the same"]


def test_a_job_that_causes_none_has_points_without_a_name() -> None:
    wire = Wire(job="p").deliver().ask("db", "postgres COMMIT")
    points = followed(trial([Member("p", "shop.start")], wire), "broker").points
    assert [name(point) for point in points] == ["broker delivery", "db COMMIT"]


def test_reads_know_how_many_points_of_all_jobs_come_before() -> None:
    (read,) = followed_reads(a_group(), "broker")
    assert (read.point.job, read.place) == ("shop.part", 4)


def test_a_gap_names_the_job_once_where_both_sides_are_its_own() -> None:
    points = followed(a_group(), "broker").points
    gaps = [gap(strike, points) for strike in kills("s", points)]
    assert gaps[1] == "after shop.start: broker delivery, before db COMMIT"
    assert gaps[3] == "after shop.start: broker LPUSH celery, before shop.part: broker delivery"
