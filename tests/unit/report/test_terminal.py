"""The terminal report against texts that were read and approved, at two widths, without colour and without Unicode.

`JOBCHECK_UPDATE_SNAPSHOTS=1 pytest tests/unit/report/test_terminal.py` writes them anew; read the difference.
"""

from __future__ import annotations

import io
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from jobcheck.history.report import Report
from jobcheck.report.terminal import render, render_finding

from . import samples

SNAPSHOTS = Path(__file__).with_name("snapshots")
HTML = Path("reports/20261129-221804-demo/report.html")


def shown(report: Report, width: int = 80, *, encoding: str = "utf-8", color: bool = False) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="")
    console = Console(file=file, width=width, force_terminal=color, color_system="truecolor" if color else None)
    render(report, console, path=HTML)
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["demo", "green", "unknown"])
def test_the_text_is_the_approved_one(name: str, width: int) -> None:
    text = "".join(f"{line.rstrip()}\n" for line in shown(getattr(samples, name)(), width).splitlines())
    file = SNAPSHOTS / f"{name}-{width}.txt"
    if os.environ.get("JOBCHECK_UPDATE_SNAPSHOTS"):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


@pytest.mark.parametrize("width", [40, 80, 120, 300])
def test_only_what_is_to_be_copied_may_be_wider_than_the_screen(width: int) -> None:
    for line in shown(samples.demo(), width).splitlines():
        if not line.startswith(("jobcheck replay", "expect=", "report ")):
            assert cell_len(line.rstrip()) <= width


def test_a_replay_command_stands_whole_at_the_beginning_of_its_line() -> None:
    long = "pytest 'tests/test_jobs.py::test_invoice_survives_every_crash[a-long-parameter]' --jobcheck-replay a41c9e"
    naive = samples.naive(True)
    finding = replace(naive.findings[0], replay=long)
    report = replace(samples.demo(), subjects=(replace(naive, findings=(finding,)),))
    assert long in shown(report, 80).splitlines()


def test_colour_adds_codes_and_changes_no_text() -> None:
    plain = shown(samples.demo())
    coloured = shown(samples.demo(), color=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert "\x1b" not in plain


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@pytest.mark.parametrize("name", ["demo", "green", "unknown", "hostile"])
def test_every_report_can_be_shown_in_every_encoding(name: str, encoding: str) -> None:
    assert "report.html" in shown(getattr(samples, name)(), encoding=encoding)


def test_a_hostile_text_reaches_the_terminal_as_its_escapes() -> None:
    text = shown(samples.hostile())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "\\x1b[31mred" in text


def test_transport_findings_of_all_variants_are_told_once() -> None:
    text = shown(samples.demo(), 120)
    assert text.count("the job is lost when the worker dies") == 1
    assert "the same for 2 more variants: idempotent and locked" in text


def test_the_coverage_is_the_last_word_but_for_the_seed() -> None:
    lines = shown(samples.demo(), 120).splitlines()
    assert lines[-2] == "  27 points, 33 strikes, 33 fired: 21 ok, 6 duplicated (2 causes), 6 lost (1 cause)"
    assert lines[-3] == "✓ Found exactly what is planted"
    assert lines[-4] == f"report  {HTML}"


def test_one_finding_can_be_shown_alone() -> None:
    file = io.StringIO()
    subject = samples.naive(True)
    render_finding(subject, subject.findings[0], Console(file=file, width=80))
    text = file.getvalue()
    assert "a41c9e" in text
    assert "w1 is killed here: COMMIT never leaves it" in text
    assert "\njobcheck replay a41c9e\n" in text


def test_a_report_without_subjects_is_no_error() -> None:
    text = shown(Report(command="jobcheck explore", seed=1, verdict="unknown"))
    assert "0 points, 0 strikes, 0 fired" in text
