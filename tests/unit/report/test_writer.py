"""The step summary, and the writer of all files."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

from jobcheck.clock import ManualClock
from jobcheck.report.summary import summary
from jobcheck.report.writer import write_all
from jobcheck.store.folder import RunFolder
from jobcheck.store.reports import read_report

from . import samples


def test_the_summary_has_counts_the_failing_table_and_the_command() -> None:
    text = summary(samples.demo())
    lines = text.splitlines()
    assert lines[0] == "## ✅ jobcheck: Found exactly what is planted"
    assert lines[2].startswith("27 points, 33 strikes, 33 fired: 21 ok, 6 duplicated (2 causes)")
    row = "| 5be072 | naive, handler mode; the same in queue mode | duplicated |"
    assert any(line.startswith(row) for line in lines)
    assert "jobcheck replay 5be072" in lines
    assert text.count("<details>") == text.count("</details>") == 4


def test_transport_findings_are_folded_below_the_failing_ones() -> None:
    text = summary(samples.demo())
    assert text.index("| 5be072") < text.index("<details>") < text.index("| 7c0de1")


def test_a_green_summary_has_no_failing_table() -> None:
    text = summary(samples.green())
    assert text.startswith("## ✅ jobcheck: ")
    assert "Run it again" not in text


def test_an_unknown_summary_says_why() -> None:
    assert "task&#95;always&#95;eager is on" in summary(samples.unknown())


def test_hostile_texts_are_no_markup_in_the_summary() -> None:
    text = summary(samples.hostile())
    outside = "".join(text.split("```")[::2])
    assert "<img" not in outside
    assert "</script" not in outside
    assert "\x1b" not in text


def test_all_files_are_written_and_latest_names_them(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "demo", ManualClock(1796000000.0))
    path = write_all(samples.demo(), folder)
    assert path == folder.path / "report.html"
    names = sorted(item.name for item in folder.path.iterdir())
    assert names == ["junit.xml", "report.html", "report.json", "summary.md"]
    assert read_report(tmp_path / "latest") == samples.demo()
    ET.parse(folder.junit)


def test_a_hostile_report_is_written_and_read_again(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "demo", ManualClock(1796000000.0))
    write_all(samples.hostile(), folder)
    assert read_report(folder.path) == samples.hostile()
    json.loads(folder.report.read_text("utf-8"))
