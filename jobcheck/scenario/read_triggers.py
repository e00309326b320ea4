"""`at`, `every`, `for`, `during`, `after`, `times` of one fault."""

from __future__ import annotations

import re

from ..faults.triggers import UNITS, After, Span, Trigger
from . import units
from .nodes import Fields, Problem, Value, unknown

INSTANT = ("at", "every", "during", "after", "times")
"""Triggers of what happens in a moment."""
LASTING = (*INSTANT, "for")
"""Triggers of what stays for a while."""
_AFTER = re.compile(r"(\d+)\s+(\w+)")


def read_trigger(fields: Fields, lasting: bool, what: str, ends: bool = False) -> Trigger:
    """The trigger that these fields say. `what` names the fault for errors: `a kill`. `ends`: it does so by itself."""
    if not lasting and "for" in fields.values:
        meant = "how long it goes on happening is said by 'during'"
        fields.source.problems.append(Problem(fields.lines["for"], f"{what} has no 'for', it takes a moment; {meant}"))
    trigger = Trigger(
        at=fields.get("at", lambda value: value.unit(units.duration), None),
        every=fields.get("every", _positive, None),
        lasts=fields.get("for", _positive, None) if lasting else None,
        during=fields.get("during", _span, None),
        times=fields.get("times", lambda value: value.whole("a number of times such as 3"), None),
        after=fields.get("after", _after, None),
    )
    fields.source.attempt(lambda: _consistent(fields, trigger, lasting and not ends, what), None)
    if ends and trigger.every is not None and (trigger.lasts or 0.0) >= trigger.every:
        expected = f"expected 'for' to be shorter than 'every' ({trigger.every:g} s)"
        fields.source.problems.append(Problem(fields.lines["for"], expected))
    return trigger


def _positive(value: Value) -> float:
    seconds = value.unit(units.duration)
    if seconds <= 0:
        raise value.wrong(f"{units.A_DURATION}, longer than 0s")
    return seconds


def _span(value: Value) -> Span:
    text = value.text("a duration such as 20s, or a span such as 5s..20s")
    start, dots, end = text.partition("..")
    if not dots:
        return Span(0.0, _positive(value))
    try:
        span = Span(units.duration(start), units.duration(end))
    except units.NoUnit:
        raise value.wrong("a span such as 5s..20s") from None
    if span.end <= span.start:
        raise value.wrong("a span that ends after it begins, such as 5s..20s")
    return span


def _after(value: Value) -> After:
    found = _AFTER.fullmatch(value.text("an event such as '20 deliveries' or '10 cases'"))
    if not found or int(found[1]) < 1:
        raise value.wrong("an event such as '20 deliveries' or '10 cases'")
    for unit in UNITS:
        if found[2] in (unit, unit.removesuffix("s"), "delivery" if unit == "deliveries" else unit):
            return After(int(found[1]), unit)
    raise unknown(value.line, "event", found[2], UNITS)


def _consistent(fields: Fields, trigger: Trigger, lasting: bool, what: str) -> None:
    """Raises Problem where two triggers contradict each other."""
    if trigger.during is not None and trigger.at is not None and trigger.every is None:
        raise Problem(fields.lines["during"], f"{what} has 'at' and 'during'; one moment needs no span")
    if trigger.at is not None and trigger.times is not None and trigger.every is None:
        raise Problem(fields.lines["times"], f"{what} has 'at' and 'times'; say 'every' for how often it is repeated")
    if lasting and trigger.every is not None:
        if trigger.lasts is None:
            raise Problem(fields.lines["every"], f"{what} that is repeated needs 'for': how long it lasts each time")
        if trigger.lasts >= trigger.every:
            raise Problem(fields.lines["for"], f"expected 'for' to be shorter than 'every' ({trigger.every:g} s)")
