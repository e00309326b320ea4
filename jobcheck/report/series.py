"""Jobs over time: what the events of progress said, put into the report of each scenario for its time axis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jobcheck.events import Bus, Event, ScenarioFinished, ScenarioProgress, ScenarioStarted
from jobcheck.history.report import Report

MOST = 500
"""Moments that are kept of a scenario; of a longer one every second, fourth ... of them."""


class Series:
    """Listens to a run of scenarios; `into` gives each scenario of its report a key `series`."""

    def __init__(self, bus: Bus) -> None:
        self._now: list[tuple[float, int, int, int]] = []
        self._done: list[list[tuple[float, int, int, int]]] = []
        bus.subscribe(self._heard)

    def _heard(self, event: Event) -> None:
        if isinstance(event, ScenarioStarted):
            self._now = []
        elif isinstance(event, ScenarioProgress):
            self._now.append((event.seconds, event.enqueued, event.jobs_seen, event.jobs_ended))
        elif isinstance(event, ScenarioFinished):
            self._done.append(self._now)
            self._now = []

    def into(self, report: Report) -> Report:
        """The report with `series`: seconds, and cases enqueued, jobs seen and jobs ended up to then."""
        known = [*self._done, *([] for _ in report.scenarios)]
        scenarios = [
            {**scenario, "series": _columns(moments)}
            for scenario, moments in zip(report.scenarios, known, strict=False)
        ]
        return replace(report, scenarios=tuple(scenarios))


def _columns(moments: list[tuple[float, int, int, int]]) -> dict[str, list[Any]]:
    step = -(-len(moments) // MOST) or 1
    kept = moments[::step]
    return {
        "at": [round(moment[0], 3) for moment in kept],
        "cases": [moment[1] for moment in kept],
        "jobs": [moment[2] for moment in kept],
        "ended": [moment[3] for moment in kept],
    }
