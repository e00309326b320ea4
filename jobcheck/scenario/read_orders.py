"""Faults that change when jobs are handed out: `reorder` and `delay`."""

from __future__ import annotations

import re

from ..faults.model import Delay, Fault, Reorder
from . import units
from .nodes import Fields, Value
from .read_triggers import read_trigger

_EACH = re.compile(r"each (\d+)")
_OTHERS = re.compile(r"(\d+)\s+deliver(?:y|ies)")
LATER = "how much later it comes, by: 500ms or by: 3 deliveries"
A_DELAY = "a duration such as 500ms, or a number such as 3 deliveries"


def read_share(value: Value) -> float:
    """A share above nothing. Raises Problem."""
    share = value.unit(units.share)
    if share == 0:
        raise value.wrong("a share above 0%")
    return share


def read_reorder(fields: Fields, value: Value) -> Fault:
    """`{reorder: 20%, cases: 3}`. Raises Problem."""
    return Reorder(
        share=read_share(value),
        cases=fields.get("cases", lambda item: item.whole("a number of cases such as 3"), 1),
        trigger=read_trigger(fields, True, "a reorder"),
        where=fields.where,
    )


def read_delay(fields: Fields, value: Value) -> Fault:
    """`{delay: 20%, by: 500ms}`, `{delay: each 5, by: 3 deliveries}`. Raises Problem."""
    each = _each(value)
    nothing: tuple[float | None, int] = (0.0, 0)
    seconds, others = fields.need("by", _by, nothing, LATER)
    return Delay(
        share=0.0 if each else read_share(value),
        each=each,
        seconds=seconds,
        others=others,
        trigger=read_trigger(fields, True, "a delay"),
        where=fields.where,
    )


def _each(value: Value) -> int:
    text = value.text("a share of the cases such as 20%, or each 5")
    if not text.startswith("each"):
        return 0
    found = _EACH.fullmatch(text)
    if found is None or int(found[1]) < 1:
        raise value.wrong("a share of the cases such as 20%, or each 5")
    return int(found[1])


def _by(value: Value) -> tuple[float | None, int]:
    """Seconds, or a number of other jobs."""
    text = value.text(A_DELAY)
    if found := _OTHERS.fullmatch(text):
        if int(found[1]) < 1:
            raise value.wrong("at least 1 delivery")
        return None, int(found[1])
    try:
        seconds = units.duration(text)
    except units.NoUnit as error:
        raise value.wrong(A_DELAY, error.near) from None
    if seconds <= 0:
        raise value.wrong(f"{units.A_DURATION}, longer than 0s")
    return seconds, 0
