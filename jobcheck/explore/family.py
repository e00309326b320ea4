"""Which jobs belong to a case: those that were enqueued for it, and those that these cause, however far down. Pure.

A job is named by its task and by how many of that task came before it, so that its points have the same address in
every run: `shop.jobs.send_mail`, `shop.jobs.send_mail #2`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..checks.normalise import Ids
from ..history.records import Member


@dataclass(frozen=True, slots=True)
class Seen:
    """What a message says of a job: that it was enqueued or handed out."""

    job: str
    task: str = ""
    sender: str = ""
    """The job that was running where it was enqueued; empty: none."""
    parent: str = ""
    """The job that caused it, by the message's own word."""
    root: str = ""
    """The first job of its tree, by the message's own word."""
    text: str = ""
    """Its arguments as a text: the case's ids may occur in it, where the message names no root."""


class Family:
    """The jobs of one case. `see` is told of every job that is seen, in the order of sight."""

    def __init__(self, named: Sequence[str] = ()) -> None:
        """`named`: the jobs that the case itself put on the broker."""
        self.members: dict[str, Member] = {}
        self._named = set(named)
        self._ids = Ids()
        self._tasks: Counter[str] = Counter()

    def owns(self, ids: Mapping[str, str]) -> None:
        """The business ids of the case, by name."""
        self._ids = Ids.of(ids)

    def name(self, *jobs: str) -> None:
        """These jobs were put on the broker for the case."""
        self._named.update(jobs)

    def see(self, seen: Seen) -> bool:
        """Takes the job in where it belongs to the case: by its name, by who sent it, by its root, or by an id."""
        if not seen.job or seen.job in self.members:
            return seen.job in self.members
        cause = next((job for job in (seen.parent, seen.sender, seen.root) if job and job in self.members), "")
        if not cause and seen.job not in self._named and not (seen.root and seen.root in self._named):
            strange = bool(seen.root) and seen.root != seen.job  # it belongs to another tree by its own word
            if strange or not self._ids.find(seen.text):
                return False
        self._tasks[seen.task] += 1
        self.members[seen.job] = Member(seen.job, seen.task, self._tasks[seen.task], cause)
        return True

    def label(self, job: str) -> str:
        """How the job is called; empty for one that is not of this case."""
        return self.members[job].label if job in self.members else ""

    @property
    def tree(self) -> tuple[Member, ...]:
        """All of them, in the order in which they came."""
        return tuple(self.members.values())


def labels(tree: Iterable[Member]) -> dict[str, str]:
    """The names of jobs by their ids."""
    return {member.id: member.label for member in tree}
