"""The story of a trial: its messages, the strike, the recovery and the effects, in the order of time. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..faults.strikes import ORDER, WEBHOOK, detail_of, kind_of, told
from ..history.records import Effect, Operation, TrialRecord
from ..history.report import StoryLine
from .points import PRODUCER

QUIET_SHAPES = ("postgres BEGIN", "postgres SET", "postgres ROLLBACK", "postgres SHOW", "postgres DISCARD")
RAN_OUT = "ran out by itself"
"""Of a note on a lease: it is told where the job is put back."""
SAYS = {
    "delivery": "the broker hands the job out",
    "reserve": "reserves the job (it can be redelivered from here on)",
    "ack": "acknowledges the job",
    "restore": "puts a job back whose lease has run out",
    "enqueue": "enqueues a job",
    "result": "stores the job's result",
    "chord size": "says how many parts the chord has",
    "chord count": "counts itself as a part of the chord that is done",
    "chord claim": "says that it is the one to enqueue the chord's body",
    "chord end": "clears up the chord's counter",
}


def story(trial: TrialRecord) -> tuple[StoryLine, ...]:
    """Lines for a person; `strike`, `recovery` and `effect` lines stand where they happened."""
    lines: list[StoryLine] = []
    struck = told = False
    for op in trial.operations:
        if struck and not told and _goes_on(op, trial):
            lines.extend(_recovery(trial, op))
            told = True
        if _struck_elsewhere(op, trial) and not struck:
            lines.append(strike_line(trial, op))
            lines.extend(StoryLine("jobcheck", note, kind="recovery", at=op.at) for note in trial.notes)
            struck = told = True
        if struck and op.role == "restore" and op.way == "out":
            lines.append(_put_back(trial, op))
            continue
        if not shown(op) or (struck and op.worker == PRODUCER):
            continue  # after the strike the producer's child only runs the recovery, which has a line of its own
        lines.append(line_of(op))
        if op.fate == "struck":
            lines.append(strike_line(trial, op))
            struck = True
    if struck and not told:
        lines.extend(_recovery(trial, None))
    return tuple(with_effects(lines, trial.effects))


def _struck_elsewhere(op: Operation, trial: TrialRecord) -> bool:
    """The first delivery, where what was struck is no message of the job but how others come."""
    return op.role == "delivery" and trial.strike is not None and kind_of(trial.strike.fault) in (ORDER, WEBHOOK)


def _goes_on(op: Operation, trial: TrialRecord) -> bool:
    """The first message of whoever goes on after the strike."""
    if not trial.deliveries_after or op.worker == PRODUCER or op.role in ("poll", "restore"):
        return False
    return op.way == "out" or op.role == "delivery"


def shown(op: Operation) -> bool:
    """Whether a reader needs it."""
    if op.fate == "struck":
        return True
    if op.way == "in":
        return op.role == "delivery" or (op.kind == "reply" and op.failed)
    return op.kind in ("request", "opaque") and op.shape not in QUIET_SHAPES and op.role not in ("result", "poll")


def queued(op: Operation) -> bool:
    """A part of a transaction of Redis: its EXEC says it all."""
    return op.shape == "redis MULTI" or (op.shape.startswith("redis ") and op.change == "pending")


def line_of(op: Operation) -> StoryLine:
    """A message as a line."""
    text = op.summary or op.shape
    if op.role in SAYS:
        text = SAYS[op.role]
    return StoryLine(
        op.worker, text, op.upstream, "delivery" if op.role == "delivery" else "message", op.way, op.at, op.code
    )


def strike_line(trial: TrialRecord, op: Operation) -> StoryLine:
    assert trial.strike is not None
    if trial.strike.when == "after":
        where = "after it was carried out, before the worker heard of it"
    elif op.way == "in":
        where = "before the worker got it"
    else:
        where = "before it arrived"
    kind, detail = kind_of(trial.strike.fault), detail_of(trial.strike.fault)
    fault = told(trial.strike.fault).story
    if kind == "error-reply":
        text = f"{fault}: {detail}"
    elif kind in ("lose-request", "duplicate", "order", "webhook"):
        text = fault
    else:
        text = f"{fault}, {where}"
    return StoryLine("jobcheck", text, op.upstream, "strike", op.way, op.at)


def _put_back(trial: TrialRecord, op: Operation) -> StoryLine:
    """A worker found that the lease of a job is over."""
    lease = next((note for note in trial.notes if RAN_OUT in note), "")
    text = f"{lease}: {op.worker} puts the job back into its queue" if lease else f"{op.worker} {SAYS['restore']}"
    return StoryLine("jobcheck", text, op.upstream, "recovery", at=op.at)


def _recovery(trial: TrialRecord, op: Operation | None) -> list[StoryLine]:
    at = op.at if op is not None else trial.seconds
    lines = [StoryLine("jobcheck", note, kind="recovery", at=at) for note in trial.notes if RAN_OUT not in note]
    if op is None:
        lines.append(StoryLine("jobcheck", "a new worker is there, and the queue is empty", kind="recovery", at=at))
        if not trial.deliveries_after:
            lines.append(StoryLine("jobcheck", "the job was not handed out again", kind="note", at=at))
        return lines
    who = "the handler runs again" if op.worker == "handler" else f"{op.worker} takes over"
    return [*lines, StoryLine("jobcheck", who, kind="recovery", at=at)]


def with_effects(lines: list[StoryLine], effects: Sequence[Effect]) -> list[StoryLine]:
    """Puts each effect after the messages that were seen before it."""
    out = list(lines)
    for effect in effects:
        text = f"{effect.name} {effect.body}"[:160] if effect.applied else f"no new effect: {effect.name} {effect.note}"
        upstream = effect.name.split(" ", 1)[0]
        place = next((at for at, line in enumerate(out) if line.at > effect.at), len(out))
        out.insert(place, StoryLine(upstream, text, upstream, "effect" if effect.applied else "note", "", effect.at))
    return out
