"""After a recovery: does a job that is enqueued *now* run? That a process is up again proves nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...aio import Tasks, wait_for
from ...errors import JobcheckError, WaitTimeout
from .book import ENDED, RETRYING, Book
from .work import Work

HEALING = "the healing"
RUNS_WITHIN = 20.0
"""Seconds of real time in which a job must have run that was enqueued after a recovery."""


@dataclass(slots=True)
class Probe:
    """One case that was enqueued to ask."""

    after: str
    """What had recovered."""
    at: float
    """When it was enqueued, in seconds since the workload began."""
    case: str = ""
    ran: float | None = None
    """Seconds until its first job had ended; None: it had not."""
    problem: str = ""

    @property
    def plain(self) -> dict[str, Any]:
        """As it stands in the report."""
        ran = None if self.ran is None else round(self.ran, 3)
        return {"after": self.after, "at": round(self.at, 3), "case": self.case, "ran": ran, "problem": self.problem}


class Probes:
    """Enqueues one more case after each recovery, and watches it."""

    def __init__(self, work: Work, book: Book) -> None:
        self.asked: list[Probe] = []
        self._work = work
        self._book = book
        self._tasks = Tasks()

    def start(self, after: str) -> None:
        """Asks, and does not wait for the answer."""
        self._tasks.start(f"probe after {after}", self.ask(after))

    async def ask(self, after: str) -> Probe:
        """Enqueues a case and waits until its first job has ended; one that fails has not run."""
        seconds = RUNS_WITHIN
        probe = Probe(after, self._book.now())
        self.asked.append(probe)
        try:
            made = await self._work.extra()
        except JobcheckError as error:
            probe.problem = f"could not be enqueued: {str(error).splitlines()[0]}"
            return probe
        probe.at = self._book.now()
        probe.case = made.record.id
        if not made.acknowledged:
            probe.problem = f"could not be enqueued: {made.error.splitlines()[0]}"
            return probe
        try:
            await wait_for(lambda: self._ended(probe.case), "the job to run", deadline=seconds, every=0.01)
        except WaitTimeout:
            seen = any(job.deliveries for job in self._book.of_case(probe.case))
            probe.problem = f"{'began and did not end' if seen else 'was not handed out'} within {seconds:g} s"
            return probe
        probe.ran = self._book.now() - probe.at
        probe.problem = self._book.filed(probe.case)
        return probe

    async def close(self) -> None:
        """No answer is waited for any more."""
        await self._tasks.close()

    def _ended(self, case: str) -> bool:
        return any(
            one.fate == ENDED and one.how != RETRYING for job in self._book.of_case(case) for one in job.deliveries
        )
