"""docs/report-format.md names every key of the format and nothing else."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from jobcheck.history import report
from jobcheck.history.records import Verdict

PAGE = (Path(__file__).parents[3] / "docs" / "report-format.md").read_text("utf-8")


def keys(section: str) -> list[tuple[str, bool]]:
    """Key and whether it is required, from the first table of a section."""
    body = re.split(r"^## ", PAGE.split(f"\n## {section}\n", 1)[1], flags=re.MULTILINE)[0]
    table = body.split("|---|---|---|\n", 1)[1].split("\n\n", 1)[0]
    return [(row.split("`")[1], "required" in row.split("|")[2]) for row in table.strip().splitlines()]


@pytest.mark.parametrize(
    ("section", "record"),
    [
        ("Report", report.Report),
        ("Subject", report.SubjectReport),
        ("Point", report.PointReport),
        ("Strike", report.StrikeReport),
        ("Finding", report.FindingReport),
        ("Story line", report.StoryLine),
        ("Coverage", report.Coverage),
    ],
)
def test_every_key_is_described(section: str, record: type) -> None:
    fields = dataclasses.fields(record)
    missing = dataclasses.MISSING
    required = {item.name: item.default is missing and item.default_factory is missing for item in fields}
    assert dict(keys(section)) == required


def test_every_verdict_is_described() -> None:
    for verdict in Verdict:
        assert f"\n| `{verdict}` | " in PAGE


def test_the_version_is_the_current_one() -> None:
    assert f"`format` is {report.FORMAT}." in PAGE
