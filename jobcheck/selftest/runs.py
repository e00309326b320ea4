"""The scenarios of one round of the self-test: each pair of handlers in its own, on servers of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..history.report import Report
from ..runner.samples import sample
from ..runner.scenarios.campaign import Loaded, ScenarioRequest, load
from .compare import Compared
from .compare_runs import compare_run
from .kinds import Planted

LANES = 4
"""Scenarios side by side: most of one is waiting."""


def runs_request(
    planted: Sequence[Planted], seed: int, *, reports: Path = Path("reports"), lanes: int = LANES
) -> ScenarioRequest:
    """The scenarios of these handlers as a run; its report says of each whether it came out as planted."""
    return ScenarioRequest(
        loaded=[loaded(one, seed) for one in planted],
        command="jobcheck selftest",
        reports=reports,
        name="selftest",
        lanes=lanes,
        finish=lambda report: finish(planted, report),
    )


def loaded(planted: Planted, seed: int, scenario: str = "") -> Loaded:
    """A handler in its scenario, or in another one. The file has the wrong one of its pair; the title says whose run it
    is."""
    file = sample("apps", "selftest", "faults", f"{scenario or planted.scenario}.yaml")
    read = load(file, seed)
    workload = replace(read.scenario.workload, enqueue=f"enqueue_{planted.kind}_{planted.name}")
    title = f"{planted.name}: {read.scenario.title}"
    return replace(read, scenario=replace(read.scenario, title=title, workload=workload))


def played_runs(planted: Sequence[Planted], report: Report) -> list[Compared]:
    """Each scenario of a round beside what is planted."""
    return [compare_run(one, run) for one, run in zip(planted, report.scenarios, strict=True)]


def finish(planted: Sequence[Planted], report: Report) -> Report:
    """The report of a round: each scenario says what came out, and all is well when nothing differs."""
    results = played_runs(planted, report)
    scenarios = tuple(_said(run, item) for run, item in zip(report.scenarios, results, strict=True))
    return replace(report, scenarios=scenarios, verdict="ok" if all(item.good for item in results) else "broken")


def _said(run: dict[str, Any], item: Compared) -> dict[str, Any]:
    again = f"jobcheck selftest {item.planted.name} --mode {item.mode} --seed {run.get('seed')}"
    return {**run, "expected": "as planted" if item.good else "; ".join(item.differences), "reproduce": again}
