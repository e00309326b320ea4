"""A scenario on a faster clock: who owns the due times, what stays in real time, and whether the load can be met."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...clock import span
from ...errors import CaseError
from ...faults.model import Outage, Poison
from ...faults.plan import Plan
from ...scenario.model import Scenario
from .. import clocks
from ..rig import Rig
from ..stage import Stage
from ..versions import interpreter_of
from .book import Job

FEW = 2
"""Cases for each job that can run at once: so few may be late without any harm to what is measured."""


def wrong_with(scenario: Scenario) -> Iterable[str]:
    """A line for each fault of the file whose own times are real ones."""
    if scenario.speed == 1:
        return
    for fault in scenario.faults:
        if isinstance(fault, Poison):
            what = "a toxic's times are"
        elif isinstance(fault, Outage) and fault.reply.slow:
            what = "how slow an outage answers is"
        else:
            continue
        yield f"{fault.where.lead()}{what} real time, and the jobs' clock is faster; leave out the one or the other"


async def agree(scenario: Scenario, rig: Rig, base: Path, stage: Stage) -> None:
    """Asks the rig, and each version's interpreter (paths count from `base`), whether they follow the clock."""
    versions = dict(scenario.versions).values()
    await clocks.agree([rig], filter(None, (interpreter_of(said, base) for said in versions)), stage)


def check_length(scenario: Scenario, plan: Plan, stage: Stage) -> None:
    """Raises CaseError for a plan that was meant for a faster clock, and is too long for the time there is without."""
    if stage.kept and plan.ends > scenario.timeouts.trial:
        raise CaseError(
            f"the plan takes {span(plan.ends)}, a trial at most {span(scenario.timeouts.trial)} of real time, and the "
            f"clock could not be sped up: {stage.kept}"
        )


@dataclass(frozen=True, slots=True)
class Load:
    """What one case asks of the workers of one role."""

    role: str
    """Empty: the first workers."""
    work: float
    """Seconds of real time that a case keeps them busy."""
    slots: int
    """Jobs that they can do at once."""


def loads(jobs: Sequence[Job], scenario: Scenario, rig: Rig, took: float) -> list[Load]:
    """What a clean case asked, by the deliveries of its jobs; where an end was not seen, all that the case `took`."""
    found: dict[str, float] = {}
    for job in jobs:
        for one in job.deliveries:
            role = one.worker if one.worker in rig.crews else ""
            found[role] = found.get(role, 0.0) + (took if one.work is None else one.work / scenario.speed)
    alone = rig.system.launch("w", safe=False, alone=False).at_once * scenario.workers
    return [
        Load(role, work, rig.system.launch("w", safe=False, role=role, alone=False).at_once if role else alone)
        for role, work in found.items()
    ]


def fastest(*cases: Sequence[Load]) -> list[Load]:
    """The least that each role was asked for: what cannot be met then cannot be met, however busy the machine was."""
    roles = dict.fromkeys(load.role for found in cases for load in found)
    return [min((one for found in cases for one in found if one.role == role), key=_work) for role in roles]


def _work(load: Load) -> float:
    return load.work


def sums(load: Load, rate: float, speed: float) -> str:
    """`20/s x 0.08 s of work x 100 = 160 workers busy, and there are 2`."""
    who = f"{load.role} workers" if load.role else "workers"
    busy = rate * load.work * speed
    return f"{rate:.4g}/s x {load.work:.3g} s of work x {speed:g} = {busy:.3g} {who} busy, and there are {load.slots}"


def too_much(load: Load, rate: float, speed: float) -> str:
    """What is to be done where the load cannot be met; empty where it can."""
    if rate * load.work * speed <= load.slots:
        return ""
    speed_for_it, rate_for_it = int(load.slots / (rate * load.work)), load.slots / (load.work * speed)
    at_most = f"at most speed {speed_for_it}" if speed_for_it >= 1 else "it cannot be met in real time either"
    return f"{at_most}, or a rate of at most {rate_for_it:.3g}/s ({rate_for_it * 60:.3g}/m)"


def arithmetic(scenario: Scenario, found: Sequence[Load]) -> list[str]:
    """Whether the workers can do the load at that speed, with the numbers, one sentence for each role.

    Raises CaseError when they cannot: then jobs would be late by the speed, and not by their own doing.
    """
    if scenario.speed == 1:
        return []
    rate, count, said = scenario.workload.rate, scenario.workload.count, []
    for load in found:
        text = f"clock: {sums(load, rate, scenario.speed)}"
        if much := too_much(load, rate, scenario.speed):
            text += f": {much}"
            if count > FEW * load.slots:
                raise CaseError(f"the load cannot be met at that speed: {text.removeprefix('clock: ')}")
            text += f"; told only, since there {'are' if count != 1 else 'is'} {count} case{'s' if count != 1 else ''}"
        said.append(text)
    return said
