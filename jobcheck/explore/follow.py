"""The points of a job and of all that it causes, job after job, from one trial that followed them. Pure.

Within a job its order counts. Jobs of one task with one parent that do the same are alike (a group): the first is
struck for all of them, and the report says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..history.records import Member, Operation, Point, TrialRecord
from .points import Recorded, reads, recorded
from .search import Read

Steps = tuple[tuple[str, str, int], ...]


def followed(trial: TrialRecord, broker: str, others: Sequence[str] = ()) -> Recorded:
    """The points of every job that is not like another one, in the order in which the jobs were handed out. What
    `others` sent, such as a relay, is no point of a job."""
    points: list[Point] = []
    links: list[int] = []
    for members in _alike(trial, broker, others):
        one = _of(trial, members[0], broker, others)
        points += one.points
        links += one.links
    return Recorded(tuple(points), tuple(links))


def followed_reads(trial: TrialRecord, broker: str, others: Sequence[str] = ()) -> list[Read]:
    """What changes nothing, of the same jobs; each with how many points of all come before it."""
    found: list[Read] = []
    passed = 0
    for members in _alike(trial, broker, others):
        one, label = members[0], _label(trial, members[0])
        mine = reads(trial.operations, broker=broker, job=one.id, label=label, others=others)
        found += [replace(read, place=passed + read.place) for read in mine]
        passed += len(_of(trial, members[0], broker, others).points)
    return found


def alike(trial: TrialRecord, broker: str, others: Sequence[str] = ()) -> list[str]:
    """One sentence for each job that is struck for others that do the same."""
    return [
        f"{members[0].label} is struck for {len(members) - 1} more of its task that do the same"
        for members in _alike(trial, broker, others)
        if len(members) > 1
    ]


def _of(trial: TrialRecord, member: Member, broker: str, others: Sequence[str]) -> Recorded:
    return recorded(trial.operations, broker=broker, job=member.id, label=_label(trial, member), others=others)


def _label(trial: TrialRecord, member: Member) -> str:
    """Where a job causes no other one, its points need no name."""
    return member.label if len(trial.tree) > 1 else ""


def _alike(trial: TrialRecord, broker: str, others: Sequence[str]) -> list[list[Member]]:
    """The jobs of the trial in groups that do the same."""
    groups: dict[tuple[str, str, Steps], list[Member]] = {}
    for member in sorted(trial.tree, key=lambda one: _first(trial.operations, one.id)):
        steps = tuple((point.upstream, point.shape, point.nth) for point in _of(trial, member, broker, others).points)
        if steps:
            groups.setdefault((member.task, member.parent, steps), []).append(member)
    return list(groups.values())


def _first(operations: Sequence[Operation], job: str) -> int:
    """When it was handed out first."""
    return next((op.seq for op in operations if op.job == job and op.role == "delivery"), 1 << 60)
