"""Scenarios in the GitHub step summary: counts, what failed, and the command that runs it again; the rest folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .junit_scenarios import plain_scenario
from .scenario_view import ScenarioView

STORIES = 10
"""Scenarios whose whole text is folded in."""

Code = Callable[[Sequence[str]], list[str]]
Fold = Callable[[str, list[str]], list[str]]
_SIGNS = {"good": "✅", "bad": "❌", "unsure": "❔"}


def scenario_lines(scenarios: Sequence[ScenarioView], row: Callable[[tuple[str, ...]], str]) -> list[str]:
    """A table of all scenarios with their counts, and one of what failed."""
    names = ("attempted", "acknowledged", "ok", "lost", "duplicated", "unexpected", "recovered")
    lines = [
        row(("", "scenario", *names, "asked / achieved per s", "verdict")),
        "|---|---|" + "--:|" * len(names) + "---|---|",
    ]
    for view in scenarios:
        counts = {count.name: str(count.number) for count in view.counts}
        cells = (_SIGNS[view.tone], view.title, *(counts.get(name, "-") for name in names), view.rates, view.word)
        lines.append(row(cells))
    failing = [cells for view in scenarios for cells in _failing(view)]
    if failing:
        lines += ["", row(("scenario", "what failed", "verdict", "cases", "laid at")), "|---|---|---|--:|---|"]
        lines += [row(cells) for cells in failing]
    return [*lines, ""]


def _failing(view: ScenarioView) -> list[tuple[str, ...]]:
    """What a person has to look at: claims that do not hold, bad cases behind them, faults that met nobody."""
    rows: list[tuple[str, ...]] = [
        (view.title, claim.words, "broken" if claim.held is False else "unknown", "", "")
        for claim in view.claims
        if claim.held is not True
    ]
    if view.tone == "bad":
        rows += [(view.title, cause.what, cause.verdict, str(len(cause.cases)), cause.place) for cause in view.causes]
    rows += [(view.title, f"{fault.text}: {fault.words}", "not exercised", "", "") for fault in view.idle_faults]
    if view.other_problem:
        rows.append((view.title, view.other_problem, "unknown", "", ""))
    return rows


def again(scenarios: Sequence[ScenarioView], code: Code) -> list[str]:
    """The commands that run what is not ok again."""
    commands = [view.reproduce for view in scenarios if view.tone != "good" and view.reproduce]
    return ["Run it again:", "", *code(commands), ""] if commands else []


def folded(scenarios: Sequence[ScenarioView], fold: Fold, code: Code) -> list[str]:
    """Each scenario whole, those that failed first."""
    order = sorted(scenarios, key=lambda view: ("bad", "unsure", "good").index(view.tone))
    lines: list[str] = []
    for view in order[:STORIES]:
        lines += fold(f"{view.title}: {view.word}", code(plain_scenario(view).split("\n")))
    return lines
