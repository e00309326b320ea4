"""Recording: each enqueue function runs once, its jobs run to the end, and every payload on the wire is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..clock import REAL, iso
from ..errors import CaseError
from .broker import CUT_AT, Sent
from .content import Concern, concerns
from .floor import Floor
from .messages import NotAMessage, decode
from .payload import Payload, from_message


@dataclass(frozen=True, slots=True)
class Recording:
    """What one enqueue function and its jobs sent."""

    function: str
    payloads: tuple[Payload, ...] = ()
    """One for each task and shape, in the order in which they were first seen."""
    notes: tuple[str, ...] = ()
    """What a reader should know: the chain did not end in time, a message was too large to be kept."""
    problem: str = ""
    """Why nothing was recorded."""


async def record(floor: Floor, function: str, *, within: float) -> Recording:
    """Runs the function, then its jobs and theirs, for at most `within` seconds."""
    async with floor.busy:
        try:
            made = await floor.make(function)
        except CaseError as error:
            return Recording(function, problem=error.message)
        if not made.sent:
            return Recording(function, problem=_nothing_sent(floor))
        sights, left = await floor.run_all(made.sent, within)
        failed = [how for how in floor.seat.ends.values() if how.startswith("failed")]
    notes = [f"its jobs did not end: {left}"] if left else []
    notes += [f"one of its jobs failed, and what would follow it was not sent: {how}" for how in failed]
    kept: dict[tuple[str, str], Payload] = {}
    for one in [*made.sent, *floor.wire.sent(sights)]:
        payload = _payload(floor, function, one, made.ids, notes)
        if payload is not None:
            kept.setdefault((payload.task, payload.id), payload)
    return Recording(function, tuple(kept.values()), tuple(notes))


def _payload(floor: Floor, function: str, sent: Sent, ids: Mapping[str, str], notes: list[str]) -> Payload | None:
    if not sent.whole:
        notes.append(f"a message of more than {CUT_AT // 1024} KiB in {sent.queue} was not kept")
        return None
    try:
        message = decode(sent.raw)
    except NotAMessage as error:
        notes.append(f"something in {sent.queue} is no job: {error}")
        return None
    if message.retries:
        return None  # a retry of a job that was seen before
    task = floor.tasks.get(message.task)
    return from_message(
        sent.raw,
        message,
        version=floor.version.name,
        recorded=iso(REAL.wall()),
        function=function,
        system=floor.rig.system.name,
        queue=sent.queue,
        ids=ids,
        parameters=task.parameters if task is not None else (),
    )


def _nothing_sent(floor: Floor) -> str:
    if floor.settings.eager:
        return "it ran its jobs itself: the app is set to task_always_eager, so nothing is ever enqueued"
    return "it enqueued nothing"


def concerns_of(payloads: Iterable[Payload]) -> list[tuple[Payload, Concern]]:
    """Rule 2 for all of them: each warning once for a task, with the first payload that shows it."""
    found: dict[tuple[str, str, str], tuple[Payload, Concern]] = {}
    for payload in payloads:
        told = [Concern("secret", where, "a secret, taken out of the recorded file") for where in payload.redacted]
        told += concerns(payload.args, payload.kwargs, payload.content_type, payload.size)
        for concern in told:
            found.setdefault((payload.task, concern.kind, concern.where), (payload, concern))
    return list(found.values())


def payloads_of(recordings: Sequence[Recording]) -> list[Payload]:
    """The payloads of all recordings, one for each task and shape."""
    kept: dict[tuple[str, str], Payload] = {}
    for recording in recordings:
        for payload in recording.payloads:
            kept.setdefault((payload.task, payload.id), payload)
    return list(kept.values())
