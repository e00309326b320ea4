"""What to tell a person about a cause: why it matters and what would mend it. Pure text from evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..history.records import NEXT_JOB, Effect, Point, Verdict
from .causes import SETTINGS, TRANSPORT, Cause
from .points import name
from .search import place_of


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the clean run and the struck run say about a cause."""

    effects: Sequence[Effect]
    """Those of the struck run."""
    honours_keys: bool = False
    """The receiver recognises repeated calls by a key."""


OCCASIONS = {
    "kill": "a crash or a deploy in this gap",
    "reset": "a network error here, which tells nobody whether the call was carried out,",
    "zombie": "a worker that stands still for too long (a paused container, a long collection, a suspended host)",
    "term": "a deploy that ends the worker here",
    "duplicate": "a message that comes twice",
    "order": "a queue that gives jobs out in another order (a retry, a second worker, a redelivery)",
    "webhook": "a provider that calls back otherwise (again, sooner, later, swapped), as they all do at times,",
    "race": "two workers with the same job",
    "deploy": "a deploy of the next version",
}


def why(cause: Cause) -> str:
    """One or two sentences: what it costs, and what else shows it."""
    families = cause.faults or ["kill"]
    others = [_OTHERS[family] for family in families[1:] if family in _OTHERS]
    also = f"; so do {', '.join(others[:-1])} and {others[-1]}" if len(others) > 1 else ""
    if len(others) == 1:
        also = f"; so does {others[0]}"
    return _why(cause, OCCASIONS.get(families[0], OCCASIONS["kill"])) + also


_OTHERS = {
    "kill-child": "a child process that dies",
    "kill-parent": "a main process that dies alone",
    "reset": "a lost reply or an error",
    "zombie": "a worker that is paused too long",
    "term": "a deploy",
    "duplicate": "a duplicate delivery",
    "order": "another order of delivery",
    "webhook": "another way of calling back",
    "race": "a second worker at the same time",
    "deploy": "a deploy of the next version",
}


def _why(cause: Cause, occasion: str) -> str:
    effect = " and ".join(cause.effects) or "the job"
    if NEXT_JOB in cause.effects:
        return "a worker that was told to end takes another job and does not see it through: each deploy costs one"
    if cause.faults == ["order"]:
        return f"{occasion} leaves {effect} otherwise than the order in which the jobs were enqueued: the last one wins"
    if cause.faults == ["webhook"]:
        what = {Verdict.DUPLICATED: "repeats", Verdict.LOST: "loses"}.get(cause.verdict, "changes")
        return f"{occasion} {what} {effect}"
    match cause.verdict:
        case Verdict.DUPLICATED:
            return f"{occasion} repeats {effect}: the queue runs the job again"
        case Verdict.LOST if cause.layer == TRANSPORT:
            return "a worker that dies in this gap takes the job with it; no log line and no record says so"
        case Verdict.LOST if cause.layer == SETTINGS:
            return "a worker that dies in this gap takes the job with it: it was acknowledged before it was done"
        case Verdict.LOST:
            return f"{occasion} loses {effect} for good: the second run takes the work for done"
        case Verdict.MISFILED:
            return "the job did its work and is filed as failed: whoever replays it does the work twice"
        case Verdict.HUNG | Verdict.ENDLESS:
            return f"the job never ends after {occasion}"
        case Verdict.FAILED_VISIBLY:
            return f"{occasion} leaves the job failed: a person must run it again"
        case _:
            return f"{effect} is not what the clean run showed"


def advice(cause: Cause, points: Sequence[Point], evidence: Evidence) -> str:
    """One or two sentences: what would mend it, for the handler layer."""
    if NEXT_JOB in cause.effects:
        return (
            "leave SIGTERM to the job system, which stops fetching and finishes what it has; a handler of your own "
            "must stop the consumer first, and a job that was taken must be done or given back, never skipped"
        )
    if cause.faults == ["order"]:
        return (
            "let each job carry the version (or the time) of what it tells, and apply it only over an older one: "
            "`update ... where version < %s`; or let it carry the id alone, and read what is true when it runs"
        )
    if cause.faults == ["webhook"]:
        return (
            "keep the id of the event where its effect is kept, under a unique constraint, and answer 2xx to one that "
            "is known; and where what it speaks of is not there yet, store the event, or refuse it so that it comes "
            "again, instead of passing over it"
        )
    match cause.verdict:
        case Verdict.DUPLICATED | Verdict.PARTIAL:
            return _against_duplicates(cause, evidence)
        case Verdict.LOST:
            return _against_loss(cause, points)
        case Verdict.MISFILED:
            return "let the job succeed when its work is already done: check the marker first and return"
        case _:
            return "make the second run able to go on from wherever the first one stopped"


def _against_duplicates(cause: Cause, evidence: Evidence) -> str:
    effect = cause.effects[0] if cause.effects else ""
    mine = [item for item in evidence.effects if item.name == effect]
    keys = {item.key for item in mine}
    if evidence.honours_keys and not any(keys):
        return (
            "send an idempotency key made from the business event with the call (`charge:{invoice_id}`, never from the "
            "attempt or the clock): the provider then answers a repeated call without doing it again"
        )
    if evidence.honours_keys and len(keys) == 1 and sum(item.applied for item in mine) > 1:
        return (
            "the key was the same each time, and the provider had forgotten it by then: let the retries end before it "
            "does (idempotency_for in the rig), or ask the provider what it has done before a late retry does it again"
        )
    if len(keys - {""}) > 1:
        return (
            f"the key differs between the attempts ({', '.join(sorted(keys - {''})[:2])}): make it from the business "
            "event alone"
        )
    if any(item.name.startswith("rows") for item in mine):
        return "give the row a unique key from the business event and insert with ON CONFLICT DO NOTHING"
    return (
        "the receiver offers no key: record the intent in the database first, and let a reconciler ask the receiver "
        "what it has done before it is done again; where a second one is harmless, say at_least_once"
    )


def _against_loss(cause: Cause, points: Sequence[Point]) -> str:
    passed = {at for outcome in cause.outcomes for at in range(place_of(outcome.strike, points))}
    commits = [point for at, point in enumerate(points) if at in passed and point.shape.startswith("postgres")]
    if commits:
        return (
            f"{name(commits[-1])} says that the work is done before it is: write the marker after the effect (with a "
            "key on the call), or write the effect to an outbox in the same transaction and let a relay carry it out"
        )
    return "acknowledge the job only when its effects are done (late ack), or write them to an outbox first"
