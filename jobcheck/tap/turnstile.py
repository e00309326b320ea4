"""A turnstile: one job at a time in a worker, so that each of its messages belongs to a known job.

A worker may take its next job while one runs (prefetching): the messages of the two could not be told apart. Its next
request for a job waits at the tap until the running one has ended; where the broker pushes, the delivery waits. A job
that is held until it is due does not run: others may come meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from .gate import Gate
from .sight import IN, OUT, Sight


class Turnstile:
    """Of one slot. `waits` says of a job whether its time has not come yet; with `late`, an ack is the end of a job."""

    def __init__(self, waits: Callable[[str], bool], *, late: bool) -> None:
        self.late = late
        self._waits = waits
        self._open: dict[str, None] = {}
        """Jobs that are in the worker, in the order in which they came."""
        self._last = ""
        self._held: list[Sight] = []

    @property
    def job(self) -> str:
        """The job that runs; between two jobs, the one that ran last."""
        self._look()
        return self._last

    def _look(self) -> None:
        """Notes which job runs. A worker may say that a job has ended before its last message was seen, so this must
        be known before."""
        if self._last not in self._open or self._waits(self._last):
            self._last = next((job for job in self._open if not self._waits(job)), self._last)

    @property
    def busy(self) -> bool:
        return self.job in self._open and not self._waits(self.job)

    def holds(self, sight: Sight) -> bool:
        """Asked about each message before the gate is."""
        if sight.role == "delivery" and sight.way == IN:
            if sight.request is None and self.busy and sight.job != self.job:
                self._held.append(sight)
                return True
            self._open[sight.job] = None
            self._look()
        elif sight.role == "poll" and sight.way == OUT and sight.link.listener.slot.polls and self.busy:
            self._held.append(sight)
            return True
        return False

    def ended(self, job: str, gate: Gate | None) -> None:
        """A job has ended: the next one may come. `gate` has not seen what waited."""
        self._look()
        self._open.pop(job, None)
        waiting, self._held = self._held, []
        for at, sight in enumerate(waiting):
            if sight.link not in sight.link.listener.links:
                continue  # the connection is gone, and what it held with it
            if self.busy:
                self._held += waiting[at:]
                return
            if sight.role == "delivery":
                self._open[sight.job] = None
                sight.link.listener.slot.trace.later(sight)
            if gate is None or not gate.holds(sight):
                sight.link.release(sight.way)

    def clear(self) -> None:
        """The worker is gone."""
        self._open.clear()
        self._held.clear()
        self._last = ""
