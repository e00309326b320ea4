"""A scenario on a faster clock: who owns the due times, what stays in real time, and whether the load can be met."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import UsageError
from ...faults.model import Outage, Poison
from ...scenario.model import Scenario
from .. import clocks
from ..rig import Rig


def wrong_with(scenario: Scenario, rig: Rig) -> Iterable[str]:
    """A line for each thing that cannot go faster with the rest: all clocks that a due time depends on, or none."""
    if scenario.speed == 1:
        return
    for sentence in clocks.kept_back(rig):
        yield f"{scenario.where.lead('clock')}{sentence}"
    for fault in scenario.faults:
        if isinstance(fault, Poison):
            what = "a toxic's times are"
        elif isinstance(fault, Outage) and fault.reply.slow:
            what = "how slow an outage answers is"
        else:
            continue
        yield f"{fault.where.lead()}{what} real time, and the jobs' clock is faster; leave out the one or the other"


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
