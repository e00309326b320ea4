"""Which jobs belong to the present case, kept up to date with what a lane's taps see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..explore.family import Family, Seen
from ..explore.points import PRODUCER
from ..history.records import Member
from ..tap.sight import IN, OUT, Sight, Trace

SENT = {("enqueue", OUT), ("delivery", IN)}
"""Messages that tell of a job."""


class Kin:
    """Of one trial: the jobs that its case enqueued, and all that these cause, in whichever worker."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._family = Family()
        self._seq = 0
        self._others: set[str] = set()

    def owns(self, ids: Mapping[str, str]) -> None:
        """The case is made: a job without a root is its own where one of these ids occurs in its arguments."""
        self._family.owns(ids)

    def leave_out(self, job: str) -> None:
        """This one is jobcheck's own."""
        self._others.add(job)

    def label(self, job: str) -> str:
        """The name of a job of this case: `shop.jobs.send_mail #2`; empty for any other."""
        self._catch_up()
        return self._family.label(job)

    def delivery(self, label: str) -> Sight | None:
        """The first hand-over of the job of this name."""
        self._catch_up()
        sights = (sight for sight in self._trace.sights if sight.role == "delivery" and sight.way == IN)
        return next((sight for sight in sights if self._family.label(sight.job) == label), None)

    def handed_out(self, job: str, since: int) -> int:
        """How often this job was handed out after a message."""
        return sum(
            sight.role == "delivery" and sight.way == IN and sight.job == job and sight.seq > since
            for sight in self._trace.sights
        )

    def awaited(self) -> str:
        """The name of a job that was enqueued and not handed out since; empty where there is none."""
        self._catch_up()
        sent: dict[str, None] = {}
        for sight in self._trace.sights:
            if sight.role == "enqueue" and sight.way == OUT:
                sent[sight.sends] = None
            elif sight.role == "delivery" and sight.way == IN:
                sent.pop(sight.job, None)
        return next(filter(None, (self._family.label(job) for job in sent if job not in self._others)), "")

    @property
    def tree(self) -> tuple[Member, ...]:
        self._catch_up()
        return tuple(member for member in self._family.tree if member.id not in self._others)

    @property
    def jobs(self) -> Sequence[str]:
        """The ids of all of them."""
        return [member.id for member in self.tree]

    def _catch_up(self) -> None:
        fresh: list[Sight] = []
        for sight in reversed(self._trace.sights):
            if sight.seq <= self._seq:
                break
            fresh.append(sight)
        for sight in reversed(fresh):
            self._seq = sight.seq
            if (sight.role, sight.way) not in SENT:
                continue
            job = sight.sends if sight.role == "enqueue" else sight.job
            if sight.worker == PRODUCER and job:
                self._family.name(job)
            sender = sight.job if sight.role == "enqueue" and sight.job != job else ""
            self._family.see(Seen(job, sight.task, sender, sight.parent, sight.root, sight.text))
