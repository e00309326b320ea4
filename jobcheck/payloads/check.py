"""The check: payloads of one version against workers of the other, in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import CaseError, WorkerError
from ..seeds import token
from .advice import NEW_TO_OLD, OLD_TO_NEW, advice, renames
from .floor import Floor
from .judge import WORST_FIRST, Fault, Judgement, Verdict, judge, with_control
from .messages import NotAMessage, renewed
from .payload import Payload
from .rebind import occurs, rebind
from .shape import arguments, difference
from .words import Said


@dataclass(frozen=True, slots=True)
class Answer:
    """How one payload fared with the workers of the other version."""

    payload: Payload
    judgement: Judgement
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One task in both directions. A direction without answers was not checked."""

    task: str
    forward: tuple[Answer, ...]
    """Old payload, new worker."""
    backward: tuple[Answer, ...]
    """New payload, old worker."""
    differences: tuple[str, ...] = ()
    renamed: str = ""
    """The name that the task seems to have in the other version."""

    @property
    def answers(self) -> tuple[Answer, ...]:
        return (*self.forward, *self.backward)


@dataclass(frozen=True, slots=True)
class Asked:
    """What holds for every replay of a check."""

    prepare: str = ""
    """The rig's function that makes new arguments; empty: the enqueue function makes new ids."""
    within: float = 10.0
    """Seconds that one job may take."""


async def replay_all(
    payloads: Sequence[Payload], floor: Floor, control: Floor | None, asked: Asked
) -> list[tuple[Payload, Judgement, str]]:
    """Each payload on this floor; with its own version's floor as control. The third part is what the worker said."""
    return [(payload, *await _judged(payload, floor, control, asked)) for payload in payloads]


async def _judged(payload: Payload, floor: Floor, control: Floor | None, asked: Asked) -> tuple[Judgement, str]:
    if payload.unfit:
        return Judgement(Verdict.UNKNOWN, Fault.UNFIT, f"{Fault.UNFIT}: {payload.unfit}"), ""
    try:
        said, judgement = await _replay(payload, floor, asked)
        if said is not None and control is not None and judgement.fault in (Fault.READING, Fault.DATA):
            other, _ = await _replay(payload, control, asked)
            judgement = with_control(judgement, said, other) if other is not None else judgement
        return judgement, said.message if said is not None else ""
    except (CaseError, NotAMessage, WorkerError) as error:
        text = error.message if isinstance(error, CaseError | WorkerError) else str(error)
        return Judgement(Verdict.UNKNOWN, Fault.UNFIT, f"it could not be sent: {text}"), ""


async def _replay(payload: Payload, floor: Floor, asked: Asked) -> tuple[Said | None, Judgement]:
    """Sends the payload once more, under an id of its own and with arguments that name rows of today."""
    async with floor.busy:
        if not floor.reads(payload):
            reason = f"{Fault.UNSENT}: no worker of {floor.version.name} takes jobs from {payload.queue!r}"
            return None, Judgement(Verdict.UNKNOWN, Fault.UNSENT, reason)
        args, kwargs, live = await _arguments(payload, floor, asked.prepare)
        job = f"{token(8)}-{token(4)}-4{token(3)}-8{token(3)}-{token(12)}"
        changed = (args, kwargs) != (payload.args, payload.kwargs)
        raw = renewed(
            payload.raw, job=job, tag=token(32), args=args if changed else None, kwargs=kwargs if changed else None
        )
        said = await floor.run(payload.queue, raw, job, payload.task, asked.within)
        if said is None:
            reason = f"{Fault.TOO_LONG}: nothing was heard of it in {asked.within:g} s"
            return None, Judgement(Verdict.UNKNOWN, Fault.TOO_LONG, reason)
        task = floor.tasks.get(payload.task)
        function = task.function if task is not None else payload.task.rpartition(".")[2]
        return said, judge(said, function, floor.evidence(live=live))


async def _arguments(
    payload: Payload, floor: Floor, prepare: str
) -> tuple[Sequence[Any] | None, Mapping[str, Any] | None, bool]:
    """Arguments for today, and whether the rows that they name exist."""
    if payload.args is None:
        return None, None, False
    args, kwargs = payload.args, payload.kwargs or {}
    if prepare:
        ids, value = await floor.prepare(prepare, payload)
        if value is None:
            return rebind(args, payload.ids, ids), rebind(kwargs, payload.ids, ids), True
        return (*_given(value, kwargs, prepare), True)
    if not occurs([args, kwargs], payload.ids):
        return args, kwargs, not args and not kwargs
    try:
        made = await floor.make(payload.function)
    except CaseError:
        return args, kwargs, False  # the enqueue function is of the other version: its rows cannot be made here
    live = all(name in made.ids for name in payload.ids)
    return rebind(args, payload.ids, made.ids), rebind(kwargs, payload.ids, made.ids), live


def _given(value: Any, kwargs: Mapping[str, Any], prepare: str) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """What a `prepare` function returned: new positional arguments, or both kinds. Raises CaseError."""
    if isinstance(value, list):
        return value, kwargs
    if isinstance(value, dict) and set(value) <= {"args", "kwargs"} and isinstance(value.get("args", []), list):
        return value.get("args", []), value.get("kwargs", kwargs)
    raise CaseError(
        f"{prepare} returned {value!r}; expected None, a list of arguments, or {{'args': [...], 'kwargs': {{...}}}}"
    )


async def both_ways(
    old_payloads: Sequence[Payload],
    new_payloads: Sequence[Payload],
    new: Floor,
    old: Floor | None,
    asked: Asked,
) -> list[Row]:
    """Both directions side by side, and a row for each task."""

    async def backward() -> list[tuple[Payload, Judgement, str]]:
        return await replay_all(new_payloads, old, new, asked) if old is not None else []

    forth, back = await asyncio.gather(replay_all(old_payloads, new, old, asked), backward())
    return rows(forth, back, old_payloads, new_payloads)


def rows(
    forth: Sequence[tuple[Payload, Judgement, str]],
    back: Sequence[tuple[Payload, Judgement, str]],
    old_payloads: Sequence[Payload],
    new_payloads: Sequence[Payload],
) -> list[Row]:
    """The answers by task, in the order of the old payloads, then of those that only the new version sends."""
    before = _first_by_task(old_payloads)
    after = _first_by_task(new_payloads)
    other_names = renames(
        {task: one.shape for task, one in before.items()}, {task: one.shape for task, one in after.items()}
    )
    found = []
    for task in dict.fromkeys([*before, *after]):
        renamed = other_names.get(task, "")
        names = _changed(before.get(task), after.get(task))
        found.append(
            Row(
                task=task,
                forward=_answers(forth, task, OLD_TO_NEW, names, renamed),
                backward=_answers(back, task, NEW_TO_OLD, names, renamed),
                differences=_differences(task, before, after, renamed),
                renamed=renamed,
            )
        )
    return found


def _first_by_task(payloads: Sequence[Payload]) -> dict[str, Payload]:
    found: dict[str, Payload] = {}
    for payload in payloads:
        found.setdefault(payload.task, payload)
    return found


def _answers(
    told: Sequence[tuple[Payload, Judgement, str]], task: str, direction: str, names: Sequence[str], renamed: str
) -> tuple[Answer, ...]:
    return tuple(
        Answer(payload, judgement, advice(judgement.fault, direction, message, task, names, renamed))
        for payload, judgement, message in told
        if payload.task == task
    )


def _changed(before: Payload | None, after: Payload | None) -> list[str]:
    """Names of arguments that only one of the two carries."""
    if before is None or after is None:
        return []
    one, other = (
        {argument.name for argument in arguments(payload.shape, payload.parameters)} for payload in (before, after)
    )
    return sorted(one ^ other)


def _differences(
    task: str, before: Mapping[str, Payload], after: Mapping[str, Payload], renamed: str
) -> tuple[str, ...]:
    if task in before and task in after:
        one, other = before[task], after[task]
        return difference(one.shape, other.shape, one.parameters, other.parameters)
    if renamed:
        return (f"renamed to {renamed}" if task in before else f"was {renamed}",)
    return ("not sent any more",) if task in before else ("new",)


def verdict_of(answers: Sequence[Answer]) -> Verdict | None:
    """The worst of them; None where there is none: that direction was not checked."""
    verdicts = {answer.judgement.verdict for answer in answers}
    return next((verdict for verdict in WORST_FIRST if verdict in verdicts), None)
