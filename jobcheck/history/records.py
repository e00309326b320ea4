"""The values a history is made of.

A *trial* is one run of a case under one plan. Its record is complete: the judge needs nothing else, so that a stored
history can be judged again offline. All of these are plain JSON by `to_json` and `from_json` in `codec`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Operation:
    """One unit that a tap saw, after redaction."""

    seq: int
    """Order of sight within the trial, from 1, over all taps of the trial."""
    at: float
    """Seconds since the trial began."""
    worker: str
    """Which process tree: `w1`, `w2`, `producer`, `handler`."""
    upstream: str
    link: int
    """Connection, unique within the run."""
    way: str
    """`out` (from the worker) or `in` (to the worker)."""
    kind: str
    """A `wire.unit.Kind` value."""
    shape: str
    number: int = 0
    change: str = "no"
    summary: str = ""
    failed: bool = False
    role: str = ""
    """What the job system's dialect says it is: `delivery`, `ack`, `enqueue`, `poll`, `noise`, or empty."""
    job: str = ""
    """Id of the job that it carries or settles, where the dialect can tell."""
    fate: str = "passed"
    """`passed`, `struck` (the fault hit here), `dropped` (held and never delivered), `answered` (by the tap)."""
    code: str = ""
    """Innermost line of the user's own code when it was sent: `jobs.py:31 charge_card`. Only where it was taken."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A change in the world outside the worker, or a call that was made to cause one."""

    seq: int
    at: float
    name: str
    """What contracts name: `payments POST /charges`, `mail`, `rows ledger`, `mark sent`."""
    body: str
    """Canonical text of what was asked for, in which the case's ids occur (JSON with sorted keys where it is JSON)."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Named parts that contracts may use as key, e.g. `json`, `headers`, `to`, `subject`, `row`."""
    key: str = ""
    """Idempotency key that the receiver saw, empty when there was none."""
    applied: bool = True
    """False: a call without effect (a replayed, refused or conflicting one)."""
    case: str = ""
    """The case that owns it by its ids; empty when nobody does."""
    note: str = ""
    """Why it was not applied: `replayed`, `409 in flight`, `422 same key, another body`, `503`."""


class Verdict(enum.StrEnum):
    """How a trial ended. DESIGN section 2; the order in `WORST_FIRST` decides which one names a trial."""

    OK = "ok"
    LOST = "lost"
    DUPLICATED = "duplicated"
    PARTIAL = "partial"
    UNEXPECTED = "unexpected"
    MISFILED = "misfiled"
    ENDLESS = "endless"
    FAILED_VISIBLY = "failed visibly"
    HUNG = "hung"
    UNKNOWN = "unknown"
    NOT_EXERCISED = "not exercised"
    DIVERGED = "diverged"


NEVER_PASS = frozenset({Verdict.UNKNOWN, Verdict.NOT_EXERCISED, Verdict.DIVERGED})
"""Verdicts that are neither a pass nor a breach: the tool cannot tell, and says so."""

WORST_FIRST = (
    Verdict.DUPLICATED,
    Verdict.LOST,
    Verdict.PARTIAL,
    Verdict.UNEXPECTED,
    Verdict.MISFILED,
    Verdict.ENDLESS,
    Verdict.HUNG,
    Verdict.FAILED_VISIBLY,
    Verdict.DIVERGED,
    Verdict.NOT_EXERCISED,
    Verdict.UNKNOWN,
    Verdict.OK,
)


@dataclass(frozen=True, slots=True)
class Point:
    """The address of a state change of a job: upstream, shape, n-th occurrence in the job."""

    id: str
    upstream: str
    shape: str
    nth: int
    side: str = "request"
    """`request`: struck before it reaches the upstream. `delivery`: struck before it reaches the worker."""
    code: str = ""
    summary: str = ""
    broker: bool = False
    """The point is on the job system's own broker."""
    role: str = ""
    """What the message is to the job system: `delivery`, `reserve`, `ack`, `enqueue`, `result`, or empty."""
    ordered: bool = True
    """False: it may come before or after its neighbours, so both its sides are struck."""
    job: str = ""
    """The name of its job where jobs are followed: `shop.jobs.send_mail #2`; empty where there is one job only."""


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault at one point."""

    id: str
    point: str
    """Point id."""
    fault: str = "kill"
    """One of `faults.strikes`, with its detail: `kill`, `error-reply 40001`."""
    when: str = "before"
    """`before` or `after` the point."""
    place: int = -1
    """How many points are through when it falls; -1: the point itself tells."""


@dataclass(frozen=True, slots=True)
class Member:
    """One job of a case, in a trial that follows the jobs that a job causes."""

    id: str
    task: str
    nth: int = 1
    """Which job of this task it is, in the order of sight."""
    parent: str = ""
    """The job that caused it, where that is known; empty for one that the case itself enqueued."""

    @property
    def label(self) -> str:
        """`shop.jobs.send_mail #2`: the same in every run."""
        return self.task + (f" #{self.nth}" if self.nth > 1 else "")


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One instance of the work under test and the business ids by which effects are given to it."""

    id: str
    number: int
    ids: dict[str, str] = field(default_factory=dict)
    """Owned ids by name, as text: `{"invoice": "1000017"}`."""
    jobs: tuple[str, ...] = ()
    """Ids of the jobs that were enqueued for it, where they could be seen."""


FINISHED = "finished"
"""What became of a job, where the worker that was told to end says that it did it."""
NEXT_JOB = "the next job"
"""In place of an effect: the job that waited on the broker while a worker was told to end."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a worker ended that was told to (SIGTERM), in the middle of a job and while another one waited."""

    seconds: float = 0.0
    """From SIGTERM to its end."""
    killed: bool = False
    """It did not end in time."""
    code: int | None = None
    """Its exit code, which says nothing of the job: it is told and never judged by. None: killed, or not known."""
    job: str = ""
    """What became of the job in its hands: `finished`, `given back`, or `left` (neither)."""
    took: bool = False
    """It did the job that waited, which it was given after it was told to end; or says that it did."""
    runs: int = 0
    """How often the job that waited was done in all, by whomever."""


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One run of a case under one plan."""

    id: str
    subject: str
    purpose: str
    """`warm-up`, `recording`, `strike`, `verify`, `canary`, `replay`."""
    case: CaseRecord
    strike: Strike | None = None
    fired: bool = False
    """The planned strike happened."""
    diverged: str = ""
    """Why the run is not the recorded one, if it is not."""
    deliveries: int = 0
    """How often the job was handed to a worker."""
    deliveries_after: int = 0
    """How often it was handed over after the strike."""
    settled: bool = True
    """The system became quiet before the deadline."""
    unsettled: str = ""
    """What was still going on when it did not."""
    beyond: str = ""
    """Why the deadline says nothing of the job: it was to wait on a faster clock, and there was none; or its lease was
    to run out by itself, and is longer."""
    filed: str = ""
    """What the job system holds at the end: empty, `failed: ...`, `dead: ...`."""
    tree: tuple[Member, ...] = ()
    """All jobs of the case, where the jobs that a job causes are followed."""
    operations: tuple[Operation, ...] = ()
    effects: tuple[Effect, ...] = ()
    problems: tuple[str, ...] = ()
    """What makes this trial unusable, each a sentence: an effect with two owners, a worker that crashed by itself."""
    notes: tuple[str, ...] = ()
    """What a reader should know: a lease was rewound, keys were expired."""
    ending: Ending | None = None
    """Where the strike told the worker to end."""
    seconds: float = 0.0
