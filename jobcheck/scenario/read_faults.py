"""The list of faults of a scenario file."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from ..faults.model import (
    ALL,
    ANY,
    BACK_AFTER,
    EVERYBODY,
    FAILS,
    GOES_DOWN,
    MODES,
    PRODUCERS,
    SCOPES,
    SIDES,
    STEP,
    WORKERS,
    Deploy,
    Duplicate,
    Fail,
    Fault,
    How,
    Kill,
    NamedPoint,
    Outage,
    Poison,
    Restart,
)
from . import units
from .nodes import Fields, Problem, Value, unknown
from .read_messages import read_messages
from .read_orders import read_delay, read_reorder, read_share
from .read_outages import OUTAGE_FIELDS, check_answers, read_reply
from .read_toxics import TOXIC_FIELDS, read_toxic
from .read_triggers import INSTANT, LASTING, read_trigger

KINDS = (
    "kill",
    "restart",
    "wipe",
    "read_only",
    "exhaust",
    "duplicate",
    "reorder",
    "delay",
    "toxic",
    "outage",
    "deploy",
)
POINT = ("point", "when", "nth")
FIELDS = {
    "kill": ("worker", "restart", *POINT, *INSTANT),
    "restart": (*POINT, *INSTANT),
    "wipe": (*POINT, *LASTING),
    "read_only": (*POINT, *LASTING),
    "exhaust": (*POINT, *LASTING),
    "duplicate": ("mode", "delay", "at", "for", "during", "times"),
    "reorder": ("cases", "at", "for", "during", "times"),
    "delay": ("by", "at", "for", "during", "times"),
    "toxic": ("upstream", "on", "point", "nth", "first", *TOXIC_FIELDS, *LASTING),
    "outage": (*OUTAGE_FIELDS, *LASTING),
    "deploy": ("from", "mix", "rollback", "step", *POINT, "at", "for", "after"),
}
"""What each kind may have beside its own word."""
OF_SERVICE = (*POINT, *LASTING)
"""What a kill or a restart of a broker or database may have."""
DEFAULT_BACK: float | None = BACK_AFTER


def read_faults(value: Value, workers: Sequence[str], versions: Sequence[str]) -> tuple[Fault, ...]:
    """The faults in their order; those that are wrong are noted as problems and left out."""
    reader = _Reader(workers, versions)
    return value.each("a list of faults", reader.fault)


class _Reader:
    """Reads faults; knows the workers and versions that there are."""

    def __init__(self, workers: Sequence[str], versions: Sequence[str]) -> None:
        self._workers = workers
        self._versions = versions

    def fault(self, value: Value) -> Fault:
        fields = value.fields("a fault such as {kill: tree, every: 3s}")
        kind = _kind(fields)
        read: dict[str, Callable[[Fields, Value], Fault]] = {
            "kill": self._kill,
            "restart": self._restart,
            "wipe": self._fail,
            "read_only": self._fail,
            "exhaust": self._fail,
            "duplicate": self._duplicate,
            "reorder": read_reorder,
            "delay": read_delay,
            "toxic": self._toxic,
            "outage": self._outage,
            "deploy": self._deploy,
        }
        value = fields.values[kind]
        if kind in ("kill", "restart") and self._names_service(kind, value):
            fields.only([kind, *OF_SERVICE], f"field of {_article(kind)} of a service")
            return self._fail(fields, value)
        if kind == "outage":
            check_answers(fields)
        fields.only(dict.fromkeys([kind, *FIELDS[kind], "for"]), f"field of {_article(kind)}")
        return read[kind](fields, value)

    def _names_service(self, kind: str, value: Value) -> bool:
        """Whether it is no scope and no worker, nor looks like one; which services there are, the rig knows."""
        words = SCOPES if kind == "kill" else [ANY, ALL, *self._workers]
        return value.is_text and not difflib.get_close_matches(value.text().lower(), words, n=1, cutoff=0.75)

    def _fail(self, fields: Fields, value: Value) -> Fail:
        how: How = next(name for name in FAILS if fields.values.get(name) is value)
        point = _point(fields)
        if point is not None and "every" in fields.values:
            raise Problem(fields.lines["every"], "a fault at a point comes once; leave out 'every' or 'point'")
        return Fail(
            service=_upstream(value),
            how=how,
            point=point,
            trigger=read_trigger(fields, True, _article(how).replace("_", "-"), ends=how in GOES_DOWN),
            where=fields.where,
        )

    def _kill(self, fields: Fields, value: Value) -> Kill:
        return Kill(
            scope=value.one_of(SCOPES, "scope of a kill"),  # type: ignore[arg-type]
            worker=fields.get("worker", self._worker, ANY),
            restart=fields.get("restart", _back, DEFAULT_BACK),
            point=_point(fields),
            trigger=read_trigger(fields, False, "a kill"),
            where=fields.where,
        )

    def _restart(self, fields: Fields, value: Value) -> Restart:
        worker = self._worker(value, ALL)
        point = _point(fields)
        if point is not None and worker == ALL:
            raise value.wrong("'any' or one worker: a point is reached by one of them")
        return Restart(worker, read_trigger(fields, False, "a restart"), fields.where, point)

    def _duplicate(self, fields: Fields, value: Value) -> Duplicate:
        share = read_share(value)
        mode = fields.get("mode", lambda item: item.one_of(MODES, "mode of a duplicate"), "at once")
        if "delay" in fields.values and mode != "later":
            raise Problem(fields.lines["delay"], f"'delay' is for 'mode: later', and this duplicate comes {mode}")
        return Duplicate(
            share=share,
            mode=mode,  # type: ignore[arg-type]
            delay=fields.get("delay", lambda item: item.unit(units.duration), 1.0),
            trigger=read_trigger(fields, True, "a duplicate"),
            where=fields.where,
        )

    def _toxic(self, fields: Fields, value: Value) -> Poison:
        messages = read_messages(fields)
        if messages is None:
            upstream = fields.need("upstream", _upstream, "", "whose network it is")
        else:
            upstream = messages.name.partition(" ")[0]
        return Poison(
            toxic=read_toxic(fields, value),
            upstream=upstream,
            role=fields.get("on", self._role, WORKERS),
            trigger=read_trigger(fields, True, "a toxic"),
            where=fields.where,
            messages=messages,
        )

    def _outage(self, fields: Fields, value: Value) -> Outage:
        return Outage(
            upstream=_upstream(value),
            reply=read_reply(fields),
            trigger=read_trigger(fields, True, "an outage"),
            where=fields.where,
        )

    def _deploy(self, fields: Fields, value: Value) -> Deploy:
        rollback = fields.get("rollback", Value.truth, False)
        trigger = read_trigger(fields, True, "a deploy")
        if rollback and trigger.lasts is None:
            raise Problem(fields.lines["rollback"], "a deploy with 'rollback' needs 'for': when it is taken back")
        if trigger.lasts is not None and not rollback:
            raise Problem(fields.lines["for"], "'for' of a deploy says when it is taken back; add 'rollback: true'")
        point = _point(fields)
        if point is not None and rollback:
            raise Problem(fields.lines["rollback"], "a deploy at a point is not taken back; leave out 'rollback'")
        mix = fields.get("mix", lambda item: item.unit(units.share), 1.0)
        return Deploy(
            version=self._version(value),
            origin=fields.get("from", self._version, self._versions[0] if self._versions else ""),
            mix=mix or 1.0,
            rollback=rollback,
            step=fields.get("step", lambda item: item.unit(units.duration), STEP),
            point=point,
            trigger=trigger,
            where=fields.where,
        )

    # Names

    def _worker(self, value: Value, also: str = "") -> str:
        words = [ANY, *([also] if also else []), *self._workers]
        return value.one_of(words, "worker")

    def _role(self, value: Value) -> str:
        return value.one_of([WORKERS, PRODUCERS, EVERYBODY, ANY, *self._workers], "role")

    def _version(self, value: Value) -> str:
        name = value.text("the name of a version")
        if not self._versions:
            raise Problem(value.line, f"unknown version {name!r}; name it in 'versions' with its folder")
        if name not in self._versions:
            raise unknown(value.line, "version", name, self._versions)
        return name


def _kind(fields: Fields) -> str:
    """The fault's own word. It is asked for among all fields, so that their order does not matter."""
    kinds = [name for name in fields.names if name in KINDS]
    if "kill" in kinds and "restart" in kinds:
        kinds.remove("restart")  # a kill says with `restart` when the worker comes back
    if any("delay" in FIELDS[kind] for kind in kinds) and "delay" in kinds:
        kinds.remove("delay")  # a copy and some toxics say with `delay` how much later it is
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        raise Problem(fields.lines[kinds[1]], f"one fault is {kinds[0]!r} and {kinds[1]!r}; make two items of the list")
    if not fields.names:
        raise Problem(fields.owner.line, f"expected a fault: one of {', '.join(KINDS)}")
    odd = next((name for name in fields.names if name not in LASTING), fields.names[0])
    raise unknown(fields.lines[odd], "fault", odd, KINDS)


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _upstream(value: Value) -> str:
    return value.text("the name of an upstream")


def _back(value: Value) -> float | None:
    return None if value.text() == "never" else value.unit(units.duration)


def _point(fields: Fields) -> NamedPoint | None:
    value = fields.values.get("point")
    if value is None:
        for name in ("when", "nth"):
            if name in fields.values:
                raise Problem(fields.lines[name], f"{name!r} belongs to a 'point', and there is none")
        return None
    text = value.text("a message such as payments POST /charges")
    side, _, rest = text.partition(" ")
    when = side if side in SIDES else fields.get("when", lambda item: item.one_of(SIDES, "side of a point"), "before")
    name = " ".join((rest if side in SIDES else text).split())
    if " " not in name:
        raise value.wrong("an upstream and a message, such as payments POST /charges")
    nth = fields.get("nth", lambda item: item.whole("a number such as 3"), 1)
    return NamedPoint(name, when, nth)  # type: ignore[arg-type]
