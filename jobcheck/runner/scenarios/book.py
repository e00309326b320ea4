"""The book of a scenario: every job that was seen, to which case it belongs, and what became of each delivery.

It is filled from the wire (`scribe`) and from the workers' own output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...clock import Clock, left_of
from ...faults.actions import Happening, JobDelivered, JobEnded
from ...systems.contract import ORPHANED, THROWN
from ...tap.link import Link
from ...wire.unit import Unit

RUNNING, ENDED, DIED = "running", "ended", "died"
RETRYING = "retrying"
"""How a run ended that its job asked to be made again."""
MESSAGES_KEPT = 80
"""Messages of one job that are kept for its story."""
STORIES_KEPT = 10_000
"""Jobs whose stories are kept; of those after them only the deliveries are."""


@dataclass(slots=True)
class Delivery:
    """One hand-over of a job to a worker."""

    worker: str
    generation: int
    version: str
    at: float
    tag: str = ""
    reserved: bool = False
    """The broker has noted that this worker has it."""
    acked: bool = False
    orphaned: bool = False
    """It was acknowledged after the process that ran it had been killed: by the worker's parent, which lives on."""
    held: float = 0.0
    """Seconds that the worker is to keep it until it is due."""
    over: float | None = None
    """When it was over."""
    fate: str = RUNNING
    how: str = ""
    """How it ended by the worker's own word."""
    link: Link | None = None
    """The connection that it came on."""

    @property
    def work(self) -> float | None:
        """Seconds that it kept its worker busy; None: its end was not seen."""
        return max(0.0, self.over - self.at - self.held) if self.over is not None and self.fate == ENDED else None

    @property
    def passed(self) -> tuple[str, ...]:
        """The roles of what was through of it."""
        said = {"reserve": self.reserved, "ack": self.acked, ORPHANED: self.orphaned}
        return ("delivery", *(role for role, passed in said.items() if passed))

    @property
    def stranded(self) -> bool:
        """Its connection is gone, so the worker can not settle it any more."""
        return self.link is not None and self.link.dead


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a job, for its story."""

    at: float
    worker: str
    upstream: str
    way: str
    text: str
    kind: str = "message"


@dataclass(slots=True)
class Job:
    """One job, however often it was handed out."""

    id: str
    case: str = ""
    """Id of the case that it belongs to; empty: nobody's that is known."""
    parent: str = ""
    """The job that enqueued it."""
    version: str = ""
    """The version of the app that enqueued it."""
    deliveries: list[Delivery] = field(default_factory=list)
    unit: Unit | None = None
    """Its first delivery as it came, to be doubled."""
    copies: int = 0
    asked: bool = False
    """The broker was asked to take it."""
    untaken: bool = False
    """It would have said that it did, and has not."""
    messages: list[Message] = field(default_factory=list)
    lives: list[tuple[str, bytes, float]] = field(default_factory=list)
    """Keys that it set with a time to live: upstream, key, seconds."""

    @property
    def last(self) -> Delivery | None:
        return self.deliveries[-1] if self.deliveries else None


class Book:
    """All jobs of one scenario. `happened` hears of deliveries and ends, at once."""

    def __init__(self, clock: Clock, late_acks: Callable[[], bool]) -> None:
        self.jobs: dict[str, Job] = {}
        self.case = ""
        """The case that is being made at the moment: what the producer enqueues belongs to it."""
        self.owner: Callable[[str], str] = lambda text: ""
        """Whose job it is, by the text of its arguments: the id of a case, or empty."""
        self.happened: Callable[[Happening], None] = lambda event: None
        self.began = clock.now()
        self.put_back: set[str] = set()
        """Jobs whose lease ran out: a worker that lives has put them back into their queue."""
        self.tells = False
        """The workers' output tells when a job ends."""
        self.ended = 0
        """Jobs that have ended at least once."""
        self._clock = clock
        self._late = late_acks
        self._over: set[str] = set()
        self._open: dict[str, list[Delivery]] = {}
        self._by_case: dict[str, list[Job]] = {}

    def now(self) -> float:
        """Seconds since the workload began."""
        return self._clock.now() - self.began

    def until(self, due: str) -> float:
        """Seconds until this ISO 8601 time; 0 when it is over, or none."""
        return max(0.0, left_of(due, self._clock.wall()))

    def job(self, number: str) -> Job:
        return self.jobs.setdefault(number, Job(number))

    # What was seen

    def enqueued(self, number: str, *, parent: str, producer: bool, version: str, text: str = "") -> None:
        """A job was put on the broker; a retry of the same job changes nothing. With its arguments as `text` it may be
        that of an earlier case than the one that is made."""
        if number in self.jobs and (self.jobs[number].case or self.jobs[number].parent):
            return
        job = self.job(number)
        job.version = version
        if producer:
            job.case = (self.owner(text) if text else "") or self.case
        elif parent != number:
            job.parent = parent
            job.case = self.jobs[parent].case if parent in self.jobs else ""
        if job.case:
            self._by_case.setdefault(job.case, []).append(job)

    def delivered(self, number: str, unit: Unit, delivery: Delivery) -> None:
        job = self.job(number)
        job.deliveries.append(delivery)
        self._open.setdefault(number, []).append(delivery)
        if job.unit is None:
            job.unit = unit
        self.say(number, Message(delivery.at, delivery.worker, "", "in", f"delivery of job {number[:8]}", "delivery"))
        self.happened(JobDelivered(number, delivery.worker))

    def finished(self, number: str, worker: str, how: str) -> None:
        """The worker says that a job has ended."""
        self.tells = True
        if how.startswith(THROWN):
            self.say(number, Message(self.now(), worker, "", "in", how, "strike"))
        running = self._running(worker, number)
        if how == RETRYING and len(running) > 1:
            running.pop()  # the retry itself: a worker may be handed it before the run before it has said its last word
        for delivery in running:
            self._end(number, delivery, how)

    def settled(self, number: str, delivery: Delivery) -> None:
        """The broker took the ack of a delivery; with late acks it has ended."""
        delivery.acked = True
        delivery.orphaned = delivery.fate == DIED
        if self._late() and delivery.fate == RUNNING:
            self._end(number, delivery, delivery.how)

    def _end(self, number: str, delivery: Delivery, how: str) -> None:
        delivery.how = how
        self._close(number, delivery, ENDED)
        if how != RETRYING and number not in self._over:
            self._over.add(number)
            self.ended += 1
        self.happened(JobEnded(number))

    def died(self, worker: str) -> list[str]:
        """The worker, or the child that ran its jobs, is dead: the jobs that it was running."""
        found = self.running(worker)
        for number in found:
            for delivery in self._running(worker, number):
                self._close(number, delivery, DIED)
        return found

    def _close(self, number: str, delivery: Delivery, fate: str) -> None:
        delivery.fate, delivery.over = fate, self.now()
        left = [one for one in self._open.get(number, ()) if one is not delivery]
        if left:
            self._open[number] = left
        else:
            self._open.pop(number, None)

    def say(self, number: str, message: Message) -> None:
        """One more line of a job's story."""
        job = self.jobs.get(number)
        if job is not None and len(job.messages) < MESSAGES_KEPT and len(self.jobs) <= STORIES_KEPT:
            job.messages.append(message)

    # What is asked

    def _running(self, worker: str, number: str) -> list[Delivery]:
        return [one for one in self._open.get(number, ()) if one.worker == worker]

    def running(self, worker: str = "") -> list[str]:
        """Jobs that were handed out and have not ended, of one worker or of all."""
        return [number for number, found in self._open.items() if any(worker in ("", one.worker) for one in found)]

    def stranded(self, waits: Callable[[str], bool] = lambda job: False) -> list[str]:
        """Tags that a living worker took on a connection that is gone, and never settled.

        `waits` says of a job that it is held until it is due: that is no lease that must run out.
        """
        return [
            one.tag
            for job in self.jobs.values()
            for one in job.deliveries
            if one.tag and one.reserved and not one.acked and one.fate != DIED and one.stranded and not waits(job.id)
        ]

    def of_case(self, case: str) -> list[Job]:
        """The case's jobs in the order in which they were enqueued."""
        return list(self._by_case.get(case, ()))

    def begin(self, now: float) -> None:
        """The workload begins: what was seen before is forgotten, and the clock is at zero."""
        self.began = now
        self.jobs.clear()
        self._by_case.clear()
        self._open.clear()
        self._over.clear()
        self.put_back.clear()
        self.ended = 0

    def case_of(self, number: str) -> str:
        """The case of a job; empty: nobody's that is known."""
        return self.jobs[number].case if number in self.jobs else ""

    def filed(self, case: str) -> str:
        """How a job of the case ended badly, by the last word that was said of it; empty when none did."""
        for job in self.of_case(case):
            words = [one.how for one in job.deliveries if one.how]
            if words and words[-1].startswith("failed"):
                return words[-1]
        return ""
