"""Bugs that need a queue and its workers: each is put under the one family of strikes that shows it, and so is what is
right in its place. That the other families do not show it is a test (`tests/quality/test_only_this_fault.py`)."""

from __future__ import annotations

from ..checks.contracts import exactly_once
from .kinds import ACK, BOOKED, COMMIT, DELIVERY, DUES, ENTRIES, QUEUE_MODE, RIGHT, WRONG, Bad, Planted, second

_LEASE = ("cache SET entry-lease:*", COMMIT, "cache DEL entry-lease:*")
_ONE_STATE = (exactly_once(DUES, key="row:dues"),)

QUEUED = (
    Planted(
        "worker_that_remembers",
        WRONG,
        "the worker's memory outlives its child: what it gets back is dropped as a repetition. A worker that dies "
        "forgets, and another one never knew",
        (COMMIT,),
        (BOOKED,),
        (Bad(COMMIT, "lost", ENTRIES, fault="kill-child"),),
        modes=(QUEUE_MODE,),
        faults=("kill-child",),
    ),
    Planted(
        "batch_cut_short",
        WRONG,
        "the child that is told to end stops after the first line and returns, and that settles the job. The main "
        "process alone, told to end, waits for it; and a kill leaves the job unsettled",
        (COMMIT, second(COMMIT)),
        (BOOKED,),
        (Bad(COMMIT, "lost", ENTRIES, fault="term-group"),),
        modes=(QUEUE_MODE,),
        faults=("term",),
        strikes=2,
    ),
    Planted(
        "redelivered_alone",
        WRONG,
        "what the broker gives out again is marked as such, whatever became of the first worker; what was sent twice "
        "is not",
        (COMMIT,),
        (BOOKED,),
        (
            Bad(COMMIT, "duplicated", ENTRIES, fault="duplicate meanwhile"),
            Bad(ACK, "duplicated", ENTRIES, fault="duplicate afterwards"),
            Bad(DELIVERY, "duplicated", ENTRIES, fault="duplicate beforehand"),
        ),
        modes=(QUEUE_MODE,),
        faults=("duplicate",),
    ),
    Planted(
        "lease_without_fence",
        WRONG,
        "paused before its commit, it commits beside the one that took the lock over when it ran out. While the lock "
        "lives, a second worker does nothing; a dead worker's lock runs out, and its own worker may take it again",
        _LEASE,
        (BOOKED,),
        (Bad(COMMIT, "duplicated", ENTRIES, fault="zombie"),),
        modes=(QUEUE_MODE,),
        faults=("zombie",),
    ),
    Planted(
        "last_one_wins",
        WRONG,
        "the first job, delivered last, takes back what the second one wrote. A job whose lease runs out comes before "
        "the one that follows it; one that Celery itself puts back when its child dies comes behind it",
        (COMMIT,),
        _ONE_STATE,
        (Bad(DELIVERY, "partial", DUES, fault="order late 1"),),
        modes=(QUEUE_MODE,),
        faults=("order",),
    ),
    Planted(
        "database_that_remembers",
        RIGHT,
        "the marker is rolled back with the entry of a child that dies",
        (COMMIT,),
        (BOOKED,),
        modes=(QUEUE_MODE,),
        faults=("kill-child",),
    ),
    Planted(
        "batch_given_back",
        RIGHT,
        "a rejected job goes to the next worker, and each line has its marker",
        (COMMIT, second(COMMIT)),
        (BOOKED,),
        modes=(QUEUE_MODE,),
        faults=("term",),
        strikes=2,
    ),
    Planted(
        "redelivered_or_not",
        RIGHT,
        "the marker is looked for under a lock, whatever the broker says",
        (COMMIT,),
        (BOOKED,),
        modes=(QUEUE_MODE,),
        faults=("duplicate",),
    ),
    Planted(
        "lease_with_fence",
        RIGHT,
        "whoever comes second waits for the marker of the first, lock or none",
        _LEASE,
        (BOOKED,),
        modes=(QUEUE_MODE,),
        faults=("zombie",),
    ),
    Planted(
        "newest_one_wins",
        RIGHT,
        "the first job, delivered last, finds a newer version",
        (COMMIT,),
        _ONE_STATE,
        modes=(QUEUE_MODE,),
        faults=("order",),
    ),
)
"""In the order of the app's modules."""
