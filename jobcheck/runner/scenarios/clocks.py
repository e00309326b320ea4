"""A scenario on a faster clock: who owns the due times, what stays in real time, and whether the load can be met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...errors import UsageError
from ...faults.model import Outage, Poison
from ...scenario.model import Scenario
from ...systems.contract import DueTimes
from ..rig import Rig
from ..stage import Stage


def wrong_with(scenario: Scenario, rig: Rig) -> Iterable[str]:
    """A line for each thing that cannot go faster with the rest: all clocks that a due time depends on, or none."""
    if scenario.speed == 1:
        return
    due = rig.system.due_times
    if due.real:
        yield (
            f"{scenario.where.lead('clock')}{rig.system.name} cannot be sped up: {due.real}; leave the clock out: "
            "the scenario then runs in real time"
        )
    for name, spec in rig.upstreams.items():
        if getattr(spec, "url", None):
            yield (
                f"{scenario.where.lead('clock')}{name!r} is given by its url and lives in real time: all clocks go "
                "faster, or none; leave the url out of the rig, or the clock out of the scenario"
            )
    for fault in scenario.faults:
        if isinstance(fault, Poison):
            what = "a toxic's times are"
        elif isinstance(fault, Outage) and fault.reply.slow:
            what = "how slow an outage answers is"
        else:
            continue
        yield f"{fault.where.lead()}{what} real time, and the jobs' clock is faster; leave out the one or the other"


async def told(scenario: Scenario, rigs: Mapping[str, Rig], stage: Stage) -> list[str]:
    """What the report says of the clock. Raises ServiceError when an interpreter of the app does not follow it."""
    if scenario.speed == 1:
        return []
    rig = next(iter(rigs.values()))
    due: DueTimes = rig.system.due_times
    notes = [
        f"clock: workers and producers live {scenario.speed:g} times as fast (libfaketime), and all times here are "
        f"theirs; due times of retries are owned by {due.owner}; brokers and databases go along with them"
    ]
    for python in dict.fromkeys(one.system.interpreter for one in rigs.values()):
        notes += await stage.check_pace(python)
    return notes


def arithmetic(scenario: Scenario, seconds: float) -> str:
    """Whether the workers can do the load at that speed, with the numbers. `seconds` of real time took a clean case.

    Raises UsageError when they cannot: then jobs would be late by the speed, and not by their own doing.
    """
    if scenario.speed == 1:
        return ""
    work = scenario.workload
    asked, can = work.rate * scenario.speed, scenario.workers / seconds
    sums = (
        f"{work.rate:g}/s at {scenario.speed:g} times the speed are {asked:g}/s of real time; a clean case took "
        f"{seconds:.2f} s of it, so {scenario.workers} worker(s) do about {can:.1f}/s"
    )
    if asked > can and work.count > 2 * scenario.workers:
        raise UsageError(
            f"{scenario.where.lead('clock')}the load cannot be met at that speed: {sums}",
            hint=f"a rate of at most {can / scenario.speed * 60:.2g}/m, or a speed of at most {can / work.rate:.2g}",
        )
    return (
        f"clock: {sums}; so a clean case took {seconds * scenario.speed:.0f} s of its own time: shorter timeouts fire"
    )
