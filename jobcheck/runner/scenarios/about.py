"""How a run went, and what its report says of it beside the verdict: as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...faults.plan import Plan
from ...scenario.model import Scenario
from .. import leases
from .probes import Probe
from .world import World


@dataclass(slots=True)
class Ending:
    """How the run went on after its faults."""

    problem: str = ""
    aborted: bool = False
    healed_at: float = 0.0
    recovered: float | None = None
    notes: list[str] = field(default_factory=list)


def about(world: World, scenario: Scenario, plan: Plan, ending: Ending, probes: Sequence[Probe]) -> dict[str, Any]:
    """The scenario's part of the report without what was judged. A rate that was not reached is noted in the world."""
    lane, pace = world.lane, world.work.pace
    if pace.count and pace.achieved < 0.9 * pace.asked:
        world.note(
            f"the machine could not reach the rate: asked {pace.asked:g}/s, achieved {pace.achieved:.1f}/s, "
            f"at most {pace.late:.1f} s late"
        )
    deliveries = sum(len(job.deliveries) for job in world.book.jobs.values())
    return {
        "title": scenario.title,
        "file": scenario.file,
        "rig": scenario.rig,
        "system": lane.rig.system.name,
        "seed": plan.seed,
        "guarantee": world.settings.guarantee,
        "settings": world.settings.says,
        "workers": scenario.workers,
        "versions": dict(scenario.versions),
        "engine": lane.network.describe,
        "speed": scenario.speed,
        "leases": leases.REAL if scenario.real_clocks else leases.REWOUND,
        "clock": lane.stage.clock_words,
        "workload": {
            "enqueue": scenario.workload.enqueue,
            "count": scenario.workload.count,
            "enqueued": pace.count,
            "rate": pace.asked,
            "achieved": round(pace.achieved, 2),
            "late": round(pace.late, 3),
            "seconds": round(pace.seconds, 3),
        },
        "jobs": {"seen": len(world.book.jobs), "ended": world.book.ended, "deliveries": deliveries},
        "contracts": [contract.text for contract in scenario.contracts],
        "aborted": ending.aborted,
        "healed_at": round(ending.healed_at, 3),
        "recovered": None if ending.recovered is None else round(ending.recovered, 3),
        "probes": [probe.plain for probe in probes],
        "seconds": round(world.book.now(), 3),
        "actions": [
            {"at": done.at, "text": done.text, "outcome": done.outcome, "met": done.met, "fault": done.fault}
            for done in world.done
        ],
        "notes": [*world.notes, *ending.notes],
        "expected": "",
        "reproduce": f"jobcheck run {scenario.file} --seed {plan.seed}",
    }
