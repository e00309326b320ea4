"""The GitHub step summary: counts, what failed, the command that runs it again; the rest folded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jobcheck.history.report import Report

from . import summary_scenarios
from .scenario_view import views
from .stories import Told, causes_by_verdict, plain_story, stories
from .text import (
    by_name,
    clean,
    count_words,
    coverage_line,
    finding_words,
    headline,
    label,
    title_of,
    verdict_counts,
    verified_words,
)

_SIGNS = {"ok": "✅", "unknown": "❔"}
_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&@$#]")


def summary(report: Report) -> str:
    """The report as GitHub-flavoured Markdown, far below the 1 MiB that a step may give."""
    told = stories(report)
    seen = views(report.scenarios)
    lines = [f"## {_SIGNS.get(report.verdict, '❌')} jobcheck: {headline(report)}", ""]
    if report.subjects or not seen:
        lines += [_escape(coverage_line(report.subjects, causes_by_verdict(told))), ""]
    if seen:
        lines += summary_scenarios.scenario_lines(seen, _cells)
        lines += summary_scenarios.again(seen, _code)
        lines += summary_scenarios.folded(seen, _fold, _code)
    failing = [item for item in told if item.finding.layer != "transport" and not item.finding.accepted]
    rest = [item for item in told if item not in failing]
    if failing:
        lines += ["| finding | job | verdict | what | code | checked |", "|---|---|---|---|---|---|"]
        lines += [_row(item) for item in failing]
        lines += ["", "Run it again:", "", *_code([item.finding.replay for item in failing]), ""]
    for subject in report.subjects:
        if subject.problem:
            lines += [f"- ❔ {_escape(label(subject))}: {_escape(subject.problem)}"]
    for item in failing[:20]:
        lines += _fold(f"{item.finding.id} {title_of(item.finding)}", _code(plain_story(item, limit=24).split("\n")))
    if rest:
        table = ["| finding | layer | job | what | accepted because |", "|---|---|---|---|---|"]
        table += [_other(item) for item in rest]
        lines += _fold("Transport findings and accepted ones: shown, not failing", table)
    if report.subjects or not seen:
        lines += _fold("All jobs", _jobs(report))
    return "\n".join(lines) + "\n"


def _row(told: Told) -> str:
    finding = told.finding
    job = label(told.subject) + (f"; {told.same_words}" if told.same else "")
    cells = (finding.id, job, finding.verdict, title_of(finding), finding.code, verified_words(finding))
    return _cells(cells)


def _other(told: Told) -> str:
    finding = told.finding
    job = label(told.subject) + (f"; {told.same_words}" if told.same else "")
    return _cells((finding.id, finding.layer, job, title_of(finding), finding.accepted))


def _jobs(report: Report) -> list[str]:
    lines = ["| job | mode | points | strikes | outcome | findings |", "|---|---|--:|--:|---|---|"]
    for subject in by_name(report.subjects):
        outcome = count_words(verdict_counts(subject.strikes)) or "not struck"
        counts = (str(subject.coverage.points), str(subject.coverage.strikes))
        lines.append(_cells((subject.name, subject.mode, *counts, outcome, finding_words(subject.findings))))
    return lines


def _cells(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_escape(cell) for cell in cells) + " |"


def _fold(title: str, body: list[str]) -> list[str]:
    return ["", f"<details><summary>{_escape(title)}</summary>", "", *body, "", "</details>"]


def _code(lines: Sequence[str]) -> list[str]:
    """A fenced block whose fence is longer than any run of backticks in it."""
    text = [clean(line) for line in lines]
    longest = max((len(run) for line in text for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *text, fence]


def _escape(text: str) -> str:
    """Text that Markdown shows as it is, in a paragraph, a table or a summary: entities work in all three."""
    return _SPECIAL.sub(lambda match: f"&#{ord(match.group())};", clean(text))
