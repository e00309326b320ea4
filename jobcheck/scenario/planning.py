"""From a scenario and a seed to its plan."""

from __future__ import annotations

from ..faults.plan import Plan, make_plan
from ..seeds import Seeds
from .model import Scenario


def plan(scenario: Scenario, seed: int) -> Plan:
    """The same scenario and the same seed give the same plan."""
    work = scenario.workload
    return make_plan(
        scenario.faults, count=work.count, rate=work.rate, workers=scenario.worker_names, seeds=Seeds(seed)
    )
