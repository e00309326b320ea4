"""A scenario file from text to values. No file is opened here: the caller reads it and says what it is called."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..errors import UsageError
from . import units
from .model import EMBEDDED, ENGINES, Provided, Scenario, Timeouts, Workload
from .nodes import Fields, Problem, Source, Value, compose
from .read_expect import plain, read_expect
from .read_faults import read_faults

FIELDS = (
    *("title", "rig", "workload", "faults", "settle", "expect"),
    *("workers", "timeouts", "seed", "versions", "engine", "toxiproxy", "clock"),
)
MOST_WORKERS = 32
MOST_SPEED = 1000


def parse(text: str, file: str) -> Scenario:
    """The scenario that `text` says; `file` leads every error.

    Raises UsageError with one line for each thing that is wrong: `file:line: what was expected, what is there`.
    """
    source = Source(file)
    root = compose(text, source)
    try:
        fields = root.fields("a mapping with title, rig and workload")
    except Problem as problem:
        raise UsageError(f"{file}:{problem.line}: {problem.text}") from None
    scenario = _scenario(fields, file)
    source.check()
    return scenario


def _scenario(fields: Fields, file: str) -> Scenario:
    fields.only(FIELDS, "field")
    workers = fields.get("workers", _workers, 2)
    names = [f"w{number}" for number in range(1, workers + 1)]
    versions: Mapping[str, str] = fields.get("versions", _versions, {})
    speed, real = fields.get("clock", _clock, (1.0, False))
    return Scenario(
        title=fields.need("title", partial(Value.text, expected="a title"), "", "one line that says what is claimed"),
        rig=fields.need("rig", _rig, "", "the app under test, such as apps/invoices/rig.py:shop"),
        workload=fields.need("workload", _workload, Workload("", 1, 1.0), "what is enqueued, and how fast"),
        faults=fields.get("faults", lambda value: read_faults(value, names, list(versions)), ()),
        settle=fields.get("settle", _settle, ()),
        expect=fields.need("expect", read_expect, (), "what must hold, such as exactly_once: payments POST /charges"),
        workers=workers,
        timeouts=fields.get("timeouts", _timeouts, Timeouts()),
        seed=fields.get("seed", lambda value: value.whole("a whole number", least=0), None),
        versions=versions,
        engine=fields.get("engine", lambda value: value.one_of(ENGINES, "engine"), EMBEDDED),
        toxiproxy=fields.get("toxiproxy", Value.truth, False),
        speed=speed,
        real_clocks=real,
        file=file,
        where=fields.where,
    )


def _clock(value: Value) -> tuple[float, bool]:
    """How fast it goes, and whether leases run out by themselves."""
    fields = value.fields("a clock such as {speed: 100}")
    fields.only(("speed", "real"), "field of the clock")
    real = fields.get("real", Value.truth, False)
    times = partial(Value.whole, expected="how many times as fast, such as 100")
    speed = fields.get("speed", times, 1) if real else fields.need("speed", times, 1, "how fast it goes")
    if speed > MOST_SPEED:
        raise value.wrong(f"a speed of at most {MOST_SPEED}")
    return float(speed), real


def _rig(value: Value) -> str:
    text = value.text("a rig such as apps/invoices/rig.py:shop")
    where, colon, name = text.rpartition(":")
    if not colon or not where.strip() or not name.isidentifier():
        raise value.wrong("a rig such as apps/invoices/rig.py:shop")
    return text


def _workers(value: Value) -> int:
    number = value.whole("a number of workers such as 2")
    if number > MOST_WORKERS:
        raise value.wrong(f"at most {MOST_WORKERS} workers")
    return number


def _workload(value: Value) -> Workload:
    fields = value.fields("a workload such as {enqueue: new_invoice, count: 300, rate: 20/s}")
    fields.only(("enqueue", "count", "duration", "rate", "values"), "field of the workload")
    enqueue = fields.need("enqueue", partial(Value.text, expected="a function"), "", "the function that makes a case")
    rate = fields.need("rate", lambda item: item.unit(units.rate), 1.0, "how fast cases come, such as 20/s")
    count = fields.get("count", lambda item: item.whole("a number of cases such as 300"), None)
    seconds = fields.get("duration", lambda item: item.unit(units.duration), None)
    given = {"count", "duration"} & set(fields.names)
    if not given:
        raise Problem(value.line, "expected 'count' or 'duration': how many cases, or for how long")
    if len(given) == 2:
        raise Problem(
            fields.lines["duration"], "expected 'count' or 'duration', got both; the rate gives the other one"
        )
    if seconds is not None:
        count = max(1, round(seconds * rate))
    return Workload(enqueue, count or 1, rate, fields.get("values", _values, {}), fields.where)


def _values(value: Value) -> Mapping[str, Provided]:
    fields = value.fields("values such as {customer: name, amount: {pyint: {max_value: 500}}}")
    return {name: provided for name in fields.names if (provided := fields.get(name, _provided, None)) is not None}


def _provided(value: Value) -> Provided:
    """`name`, or `{pyint: {max_value: 500}}`."""
    if value.is_text:
        return Provided(_provider(value.text(), value))
    fields = value.fields("a Faker provider such as name, or {pyint: {max_value: 500}}")
    if len(fields.names) != 1:
        raise value.wrong("one Faker provider such as {pyint: {max_value: 500}}")
    ((name, item),) = fields.values.items()
    if not item.is_mapping:
        raise item.wrong(f"the arguments of {name} by name, such as {{max_value: 500}}")
    return Provided(_provider(name, value), plain(item))


def _provider(name: str, value: Value) -> str:
    if not name.isidentifier() or name.startswith("_"):
        raise value.wrong("the name of a Faker provider such as name or pyint")
    return name


def _settle(value: Value) -> tuple[str, ...]:
    return tuple(item.text("the name of a function") for item in value.items("a list of functions"))


def _versions(value: Value) -> Mapping[str, str]:
    fields = value.fields("versions such as {v1: apps/v1, v2: apps/v2}")
    what = "a folder, a Python interpreter or a git revision"
    return {name: fields.get(name, partial(Value.text, expected=what), "") for name in fields.names}


def _timeouts(value: Value) -> Timeouts:
    fields = value.fields("timeouts such as {ready: 30s, drain: 60s}")
    fields.only(("ready", "drain", "trial"), "timeout")
    given = Timeouts()
    return Timeouts(
        ready=fields.get("ready", lambda item: item.unit(units.duration), given.ready),
        drain=fields.get("drain", lambda item: item.unit(units.duration), given.drain),
        trial=fields.get("trial", lambda item: item.unit(units.duration), given.trial),
    )
