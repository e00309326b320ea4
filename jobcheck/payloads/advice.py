"""One sentence of advice for each fault: what lets both versions live side by side."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .judge import Fault

OLD_TO_NEW = "old payload -> new worker"
NEW_TO_OLD = "new payload -> old worker"

_QUOTED = re.compile(r"'([^']+)'")


def advice(fault: Fault, direction: str, message: str, task: str, names: Sequence[str] = (), renamed: str = "") -> str:
    """What to do about it; empty where there is nothing to advise.

    `names` are the arguments that only one of the versions sends, `renamed` is the task's name in the other version,
    if it seems to have one there.
    """
    forward = direction == OLD_TO_NEW
    if fault is Fault.UNREGISTERED:
        return _unregistered(forward, task, renamed)
    if fault is Fault.SIGNATURE:
        return _signature(forward, message, ", ".join(_QUOTED.findall(message) or names))
    if fault is Fault.READING:
        if forward:
            return "read what old payloads lack with a default, or put a version into the payload and branch on it"
        return "deploy workers before producers: send the new form only once no old worker runs any more"
    if fault is Fault.UNDECODABLE:
        return "accept both serializers for one release (accept_content), then let producers change theirs"
    if fault is Fault.DATA:
        return "make rows that its arguments name: --prepare FILE:FUNCTION gets case and payload, returns new arguments"
    if fault is Fault.TOO_LONG:
        return "give it more time with --timeout"
    return ""


def _unregistered(forward: bool, task: str, renamed: str) -> str:
    if forward and renamed:
        return f'keep the old name registered for one release: @app.task(name="{task}") that calls {_tail(renamed)}'
    if forward:
        return "keep the task, or a stub under its name, until none of its messages can be queued any more"
    first = f"register {_tail(task)}" + (f" beside {_tail(renamed)}" if renamed else "")
    return f"deploy workers before producers: {first} in one release, enqueue it in the next"


def _signature(forward: bool, message: str, names: str) -> str:
    if "missing" in message:
        if forward:
            return f"give {names} a default: messages without it are still queued while you deploy"
        return f"go on sending {names} until no old worker runs any more"
    if forward:
        return f"go on accepting {names or 'the old argument'} for one release, unused"
    what = names or "the new argument"
    return f"deploy workers before producers: accept {what} in one release, send it in the next"


def _tail(task: str) -> str:
    return task.rpartition(".")[2]


def renames(old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Tasks that seem to have another name in the other version, both ways: each name -> the other name.

    `old` and `new` are the shapes by task. Only tasks that the other version lacks are paired, each once: those that
    have the same shape, the nearest name first.
    """
    gone = [task for task in old if task not in new]
    come = [task for task in new if task not in old]
    pairs = [(_near(one, other), one, other) for one in gone for other in come if old[one] == new[other]]
    found: dict[str, str] = {}
    for _, one, other in sorted(pairs, reverse=True):
        if one not in found and other not in found:
            found[one], found[other] = other, one
    return found


def _near(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, _tail(one), _tail(other)).ratio()
