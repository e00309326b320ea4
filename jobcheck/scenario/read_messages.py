"""Which messages a toxic acts on: `point`, `nth` and `first` of a toxic in a scenario file."""

from __future__ import annotations

from ..faults.model import EVERYBODY, PRODUCERS, SIDES, Messages
from ..faults.outages import KEY
from ..faults.toxics import Down
from .nodes import Fields, Problem, Value
from .read_outages import read_first


def read_messages(fields: Fields) -> Messages | None:
    """None for a toxic on everything. Raises Problem for what goes only with a point, or not with one."""
    value = fields.values.get("point")
    if value is None:
        for name in ("nth", "first"):
            if name in fields.values:
                raise Problem(fields.lines[name], f"{name!r} belongs to a 'point', and there is none")
        return None
    name = _name(value)
    if (upstream := fields.values.get("upstream")) is not None and upstream.text() != name.partition(" ")[0]:
        raise Problem(fields.lines["upstream"], f"the point is on {name.partition(' ')[0]!r}; leave 'upstream' out")
    if fields.values["toxic"].text() == Down.kind:
        raise Problem(fields.lines["toxic"], "'down' takes a whole upstream away; at a point take reset_peer")
    if "on" in fields.values and fields.values["on"].text() in (PRODUCERS, EVERYBODY):
        raise Problem(fields.lines["on"], "a toxic at a point acts on the messages of jobs, which are the workers'")
    if "nth" in fields.values and "first" in fields.values:
        raise Problem(fields.lines["nth"], "'nth' is one message and 'first' are several; say one of them")
    first, each = fields.get("first", read_first, (0, ""))
    if each == KEY:
        raise Problem(fields.lines["first"], "the keys of messages are not known; say 'of each case'")
    return Messages(name, fields.get("nth", lambda item: item.whole("a number such as 3"), 0), first, each)


def _name(value: Value) -> str:
    text = " ".join(value.text("a message such as payments POST /charges").split())
    side, _, rest = text.partition(" ")
    if side in SIDES:
        way = "upstream: the request is lost" if side == "before" else "downstream: the answer is"
        raise Problem(value.line, f"a toxic acts on a way, not {side} a point; write point: {rest}, and stream: {way}")
    if not rest:
        raise value.wrong("an upstream and a message, such as payments POST /charges")
    return text
