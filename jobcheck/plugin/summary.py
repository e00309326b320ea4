"""The section `jobcheck` of pytest's terminal summary: what each exploration covered, and where its report is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

_MARKS = {"good": ("✓", "green"), "bad": ("✗", "red"), "unsure": ("?", "yellow")}


def write_summary(reporter: pytest.TerminalReporter, explored: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """`explored` are the explorations by node id, as `fixtures` kept them."""
    reporter.section("jobcheck", "=")
    for node, items in explored.items():
        reporter.write_line(node)
        for item in items:
            mark, colour = _MARKS[item["tone"]]
            reporter.write_line(f"  {mark} {item['label']}: {item['coverage']}", **{colour: True})
            if item["problem"]:
                reporter.write_line(f"    unknown: {item['problem']}", yellow=True)
            for line in item["shown"]:
                reporter.write_line(f"    not failing: {line}", yellow=True)
            if item["uncontracted"]:
                # A scenario's are lines of its file already.
                named = [name if ": " in name else f'exactly_once("{name}")' for name in item["uncontracted"]]
                contracts = ", ".join(named)
                reporter.write_line(f"    effects without a contract; to paste: {contracts}")
            for line in item["warnings"]:
                reporter.write_line(f"    warning: {line}", yellow=True)
            reporter.write_line(f"    report: {os.path.relpath(item['report'], reporter.startpath)}")
