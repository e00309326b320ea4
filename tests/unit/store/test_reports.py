"""report.json: complete, tolerant of what it does not know, clear about what it cannot read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobcheck.errors import UsageError
from jobcheck.history.report import FindingReport, Report, StoryLine, SubjectReport
from jobcheck.store.reports import read_report, report_text, write_report

REPORT = Report(
    command="jobcheck demo",
    seed=7,
    verdict="broken",
    environment={"redis": "Valkey 9.0.1"},
    subjects=(
        SubjectReport(
            name="naive",
            system="celery-redis",
            mode="queue",
            findings=(
                FindingReport(
                    id="c07e11",
                    layer="handler",
                    effect="mail",
                    verdict="lost",
                    strikes=("s1",),
                    verified={"reproduced": 3, "of": 3},
                    story=(StoryLine("w1", 'POST \u2028 "é" \ud800'),),
                ),
            ),
        ),
    ),
)


def test_a_report_comes_back_as_it_went_in(tmp_path: Path) -> None:
    path = write_report(tmp_path, REPORT)
    assert path == tmp_path / "report.json"
    assert read_report(tmp_path) == read_report(path) == REPORT


def test_every_key_is_written_so_that_a_reader_needs_no_defaults() -> None:
    data = json.loads(report_text(Report("x", 1, "ok", subjects=(SubjectReport("a", "handler", "handler"),))))
    assert data["format"] == 1
    assert data["scenarios"] == []
    assert data["subjects"][0]["coverage"] == {"points": 0, "strikes": 0, "fired": 0, "exhausted": True, "capped": ""}


def test_unknown_keys_are_ignored(tmp_path: Path) -> None:
    data = json.loads(report_text(REPORT))
    data["mood"] = data["subjects"][0]["weather"] = "fine"
    path = tmp_path / "report.json"
    path.write_text(json.dumps(data))
    assert read_report(path) == REPORT


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[]", "is no jobcheck report"),
        ("{}", "is no jobcheck report"),
        ('{"format": 99}', "has format 99, this jobcheck reads up to 1"),
        ('{"command": "x", "seed": 1, "verdict": "ok", "subjects": 5}', "is no jobcheck report"),
    ],
)
def test_what_is_no_report_is_a_usage_error(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_report(path)


def test_a_missing_report_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the report"):
        read_report(tmp_path)
