"""How a failure of jobcheck's looks in pytest: one line for summaries and JUnit's message, a text for the rest."""

from __future__ import annotations

import io
import os
import shlex
import shutil
from dataclasses import replace

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprEntryNative, ReprFileLocation, ReprTraceback

from ..history.report import FindingReport, SubjectReport

EXPLORED: pytest.StashKey[list[dict[str, object]]] = pytest.StashKey()
"""On an item: what its explorations came to, as plain values that xdist can send."""


class Told(AssertionError):
    """A failure that is told in words, without a traceback."""

    __module__ = "jobcheck"

    def __init__(self, title: str, text: str) -> None:
        super().__init__(title)
        self.title = title
        self.text = text


def complete(report: pytest.TestReport, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Puts our words in place of a traceback, and what was explored onto the last report of the test."""
    if call.excinfo is not None and isinstance(call.excinfo.value, Told):
        report.longrepr = _representation(call.excinfo.value, item)
    # On the teardown's report, because subtests make reports of the call phase too.
    if call.when == "teardown" and (explored := item.stash.get(EXPLORED, None)):
        report.__dict__["jobcheck"] = explored  # TestReport takes what it does not know, and xdist sends it


def _representation(error: Told, item: pytest.Item) -> ExceptionChainRepr:
    """What pytest prints, sends from a worker of xdist and puts into JUnit."""
    path, line, _ = item.location
    lines = [] if item.config.getoption("tbstyle") == "line" else [error.text.rstrip() + "\n"]
    traceback = ReprTraceback([ReprEntryNative(lines)], None, style="native")
    return ExceptionChainRepr([(traceback, ReprFileLocation(path, (line or 0) + 1, error.title), None)])


def finding_text(subject: SubjectReport, finding: FindingReport, command: str) -> str:
    """The story of a finding; its last two lines run it again: the test, and the strike alone."""
    from rich.console import Console

    from ..report.terminal import render_finding

    paper = io.StringIO()
    width = min(120, max(80, shutil.get_terminal_size((100, 24)).columns))
    # No colours: the same text goes to JUnit. The renderer ends with the command it is given, ours come as two lines.
    console = Console(file=paper, width=width, color_system=None, force_terminal=False)
    render_finding(subject, replace(finding, replay=command, node=""), console)
    return f"{paper.getvalue().strip()}\n{finding.replay}\n"


def command_of(item: pytest.Item, seed: int) -> str:
    """The exact command that runs this test again, from where pytest was called."""
    file, colons, names = item.nodeid.partition("::")
    here = os.path.relpath(item.config.rootpath / file, item.config.invocation_params.dir)
    given = item.config.getoption("jobcheck_seed") is not None
    return f"pytest {shlex.quote(here + colons + names)}" + (f" --jobcheck-seed {seed}" if given else "")
