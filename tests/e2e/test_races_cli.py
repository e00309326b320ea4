"""Races and producers as a user asks for them: on the command line, replayed, judged again, and in pytest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jobcheck.runner.samples import sample

RIG = f"{sample('apps', 'invoices', 'rig.py')}"
EXPECT = ("--expect", "exactly_once: payments POST /charges", "--expect", "at_least_once: mail")


def jobcheck(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jobcheck", *words], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(f'[tool.jobcheck]\nrig = "{RIG}:shop"\n')
    return folder


def findings(folder: Path) -> dict[str, str]:
    """Title by id of what is remembered."""
    stored = json.loads((folder / ".jobcheck" / "failures.json").read_text())
    return {item["id"]: item["title"] for item in stored["findings"]}


def test_a_race_is_found_told_and_run_again(project: Path) -> None:
    handler = ("--handler", "shop.at_once:charge_and_mail_check_then_act", "--case", "invoice_row")
    found = jobcheck(project, "explore", *handler, "--faults", "race", *EXPECT)
    assert found.returncode == 1, found.stdout + found.stderr
    for text in (
        "payments POST /charges happens again when two workers have the job at once",
        "A is held here, before db INSERT charge_keys; B goes on",
        "B has ended; A goes on",
        "verified 3/3",
    ):
        assert text in " ".join(found.stdout.split())
    ((number, title),) = findings(project).items()
    assert title.endswith("when two workers have the job at once")
    again = jobcheck(project, "replay", number)
    assert again.returncode == 1, again.stdout + again.stderr
    assert f"FAILED {number}: payments POST /charges: 2 times, expected 1 (reproduced 3 of 3)" in again.stdout
    report = json.loads((project / "reports" / "latest" / "report.json").read_text())
    (strike,) = report["subjects"][0]["strikes"]
    assert (strike["fault"], strike["when"]) == ("race", "A held before db INSERT charge_keys")


def test_a_run_with_races_is_judged_again_from_its_journal(project: Path) -> None:
    handler = ("--handler", "shop.at_once:charge_and_mail_drawn_once", "--case", "invoice_row")
    right = jobcheck(project, "explore", *handler, "--faults", "kill,race", "--max-points", "5", *EXPECT)
    assert right.returncode == 0, right.stdout + right.stderr
    assert "; capped at 5 of " in " ".join(right.stdout.split())
    judged = jobcheck(project, "judge", str(project / "reports" / "latest"))
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "as stored" in judged.stdout


def test_a_producer_is_struck_told_and_run_again(project: Path) -> None:
    found = jobcheck(project, "explore", "--producer", "create_commit_then_push")
    assert found.returncode == 1, found.stdout + found.stderr
    said = " ".join(found.stdout.split())
    assert "job shop.jobs.render_invoice_pdf is never enqueued when the producer dies after db COMMIT" in said
    assert "what is left: db INSERT invoices" in said
    assert "2 points, 3 strikes, 3 fired: 2 ok, 1 lost" in said
    number = next(number for number, title in findings(project).items() if "never enqueued" in title)
    again = jobcheck(project, "replay", number)
    assert again.returncode == 1, again.stdout + again.stderr
    assert "reproduced 3 of 3" in again.stdout
    judged = jobcheck(project, "judge", str(project / "reports" / "latest"))
    assert judged.returncode == 1, judged.stdout + judged.stderr
    assert "as stored" in judged.stdout
