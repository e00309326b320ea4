"""`jobcheck run` as a user runs it: real servers, real kills, every file of the report, exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobcheck.cli.main import run

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "plugin" / "tiny"
FORMAT = (ROOT / "docs" / "report-format.md").read_text("utf-8")
RIGHT = """\
title: The right job survives a kill
rig: ../rig.py:tiny
workload: {enqueue: put_right, count: 6, rate: 20/s}
workers: 1
faults:
  - {kill: tree, point: before store SET, at: 0s}
expect:
  - at_least_once: mark mail
"""
NAIVE = """\
title: The naive job is red
rig: ../rig.py:tiny
workload: {enqueue: put_naive, count: 6, rate: 20/s}
workers: 1
faults:
  - {kill: tree, point: after store SET, at: 0s}
  - {toxic: latency, upstream: store, latency: 1}
expect:
  - exactly_once: mark charge
  - at_least_once: mark mail
  - none_lost
"""


TOXIC = "  - {toxic: latency, upstream: store, latency: 1}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the tiny app with two scenarios and a YAML file that is somebody else's."""
    folder = tmp_path / "project"
    shutil.copytree(TINY, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pyproject.toml").write_text("")
    (folder / "scenarios").mkdir()
    (folder / "scenarios" / "1-naive.yaml").write_text(NAIVE)
    (folder / "scenarios" / "2-right.yml").write_text(RIGHT)
    (folder / "scenarios" / "compose.yaml").write_text("services: {db: {image: postgres}}\n")
    return folder


def jobcheck(folder: Path, *words: str, code: int, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line in a folder and checks how it ended."""
    clean = {key: value for key, value in os.environ.items() if key != "GITHUB_STEP_SUMMARY"}
    done = subprocess.run(
        [sys.executable, "-m", "jobcheck", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**clean, **env},
    )
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def here(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The same in this process, for what starts nothing; gives what was printed."""
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def call(*words: str, code: int) -> str:
        ended = run(words)
        printed = capsys.readouterr()
        text = printed.out + printed.err
        assert ended == code, text
        assert "Traceback" not in text
        return text

    return call


def keys_of(section: str) -> set[str]:
    """The keys that docs/report-format.md tells of a part of a scenario."""
    body = re.split(r"^##+ ", FORMAT.split(f" {section}\n", 1)[1], flags=re.MULTILINE)[0]
    return {row.split("`")[1] for row in body.splitlines() if row.startswith("| `")}


def test_a_folder_of_scenarios_is_run_told_and_written_down(project: Path) -> None:
    """One run of a red and a green scenario: terminal, JUnit, step summary, HTML, and every key of report.json."""
    words = ("run", "scenarios", "--seed", "7", "--junit", "out.xml")
    done = jobcheck(project, *words, code=1, GITHUB_STEP_SUMMARY=str(project / "step.md"))

    said = done.stderr.splitlines()
    assert "· The naive job is red: 6 cases in 0.3 s, seed 7" in said
    assert any(line.startswith("✓ The right job survives a kill: ok: 6 attempted") for line in said)
    assert sum(line.startswith("· broker: ") for line in said) == 1
    lines = done.stdout.splitlines()
    assert "jobcheck run scenarios/1-naive.yaml --seed 7" in lines
    assert "jobcheck run scenarios/2-right.yml --seed 7" in lines
    assert any("✗ w1: killed after store SET" in line for line in lines)
    assert any("mark charge (2nd time)" in line for line in lines)
    assert "✗ 1 of 2 scenarios is broken" in lines

    red, green = ET.parse(project / "out.xml").getroot()
    assert (red.get("name"), red.get("tests"), red.get("failures")) == ("The naive job is red", "4", "2")
    assert (green.get("tests"), green.get("failures"), green.get("errors")) == ("2", "0", "0")
    step = (project / "step.md").read_text()
    assert step.startswith("## ❌ jobcheck: 1 of 2 scenarios is broken")
    assert "jobcheck run scenarios/1-naive.yaml --seed 7" in step

    folder = project / "reports" / "latest"
    assert {"journal.jsonl", "report.json", "junit.xml", "report.html", "summary.md"} <= {
        path.name for path in folder.iterdir()
    }
    assert 'class="timeline"' in (folder / "report.html").read_text()
    assert "1 of 2 scenarios" in jobcheck(project, "report", "--format", "terminal", code=0).stdout
    _every_key_is_described(json.loads((folder / "report.json").read_text())["scenarios"])


def _every_key_is_described(scenarios: list[dict[str, Any]]) -> None:
    """What the page does not tell is not promised, and what it tells is there."""
    naive = scenarios[0]
    bad = naive["bad"][0]
    parts = {
        "Scenario": naive,
        "Workload": naive["workload"],
        "Action": naive["actions"][0],
        "Expectation": naive["expectations"][0],
        "Fault": naive["faults"][0],
        "Counts": naive["counts"],
        "Series": naive["series"],
        "Bad case": bad,
        "Delivery": bad["jobs"][0]["deliveries"][0],
    }
    for section, part in parts.items():
        assert set(part) == keys_of(section), section


def test_a_file_that_turns_out_wrong_takes_no_report_of_another_one_away(project: Path) -> None:
    """Its contract speaks of what only its clean case can show."""
    (project / "scenarios" / "1-naive.yaml").write_text(RIGHT.replace("mark mail", "mark nothing"))
    (project / "scenarios" / "3-right.yaml").write_text(RIGHT.replace("The right job", "It"))
    done = jobcheck(project, "run", "scenarios", "--seed", "7", "--keep-bodies", code=3)
    words = " ".join(done.stdout.split())
    assert "at least once: mark nothing: the clean run never showed it" in words
    report = json.loads((project / "reports" / "latest" / "report.json").read_text())
    assert (report["environment"]["bodies"], report["ruleset"]) == ("kept as they are", 1)
    assert [(one["verdict"], one.get("usage", False)) for one in report["scenarios"]] == [
        ("unknown", True),
        ("ok", False),
        ("ok", False),
    ]


def test_the_mistakes_of_all_files_are_told_before_anything_starts(here: Callable[..., str], project: Path) -> None:
    (project / "scenarios" / "1-naive.yaml").write_text(NAIVE.replace("put_naive", "put_nave"))
    (project / "scenarios" / "2-right.yml").write_text(RIGHT.replace("title", "titel"))
    said = here("run", "scenarios", code=3)
    assert "scenarios/1-naive.yaml:3: " in said
    assert "did you mean put_naive?" in said
    assert "scenarios/2-right.yml:1: " in said
    assert not (project / "reports").exists()


def test_a_fault_that_met_nobody_ends_with_2_whatever_engine_does_the_toxics(project: Path) -> None:
    text = RIGHT.replace("before store SET", "before store GETDEL").replace("faults:\n", "faults:\n" + TOXIC)
    (project / "scenarios" / "3-idle.yaml").write_text(text)
    done = jobcheck(project, "run", "scenarios/3-idle.yaml", "--engine", "toxiproxy", "--seed", "3", code=2)
    assert "── not exercised ──" in done.stdout
    assert "? kill tree before store GETDEL: the point was never reached" in " ".join(done.stdout.split())
    assert "✓ toxic latency latency=1" in " ".join(done.stdout.split())
    assert "jobcheck run scenarios/3-idle.yaml --seed 3 --engine toxiproxy" in done.stdout.splitlines()


def test_dry_prints_the_plan_and_starts_nothing(here: Callable[..., str], project: Path) -> None:
    (project / "scenarios" / "1-naive.yaml").write_text(NAIVE.replace(", at: 0s}", ", times: 2}"))
    first, again, other = (here("run", "scenarios", "--dry", "--seed", seed, code=0) for seed in ("7", "7", "8"))
    assert first == again != other
    assert first.splitlines()[:3] == [
        "The naive job is red (scenarios/1-naive.yaml)",
        "seed 7, workers w1, 0.3 s",
        "  0.00 s  enqueue 6 cases at 20/s",
    ]
    assert "The right job survives a kill (scenarios/2-right.yml)" in first
    assert not (project / "reports").exists()


def test_the_seed_of_the_file_goes_before_that_of_the_project(here: Callable[..., str], project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.jobcheck]\nseed = 5\n")
    file = project / "scenarios" / "2-right.yml"
    assert "seed 5, " in here("run", str(file), "--dry", code=0)
    file.write_text(RIGHT + "seed: 6\n")
    assert "seed 6, " in here("run", str(file), "--dry", code=0)
    assert "seed 7, " in here("run", str(file), "--dry", "--seed", "7", code=0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("kill:", "kil:"), "scenarios/2-right.yml:6: unknown fault 'kil'; did you mean 'kill'?"),
        (("before store", "before stroe"), "scenarios/2-right.yml:6: unknown upstream 'stroe'; did you mean 'store'?"),
        (("rig.py:tiny", "rig.py:tni"), "scenarios/2-right.yml:2: ../rig.py has no rig 'tni'; it has tiny"),
        (("20/s", "20"), "scenarios/2-right.yml:3: expected a rate such as 20/s or 90/m, got '20'; did you mean 20/s?"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_line_before_anything_starts(
    here: Callable[..., str], project: Path, change: tuple[str, str], said: str
) -> None:
    (project / "scenarios" / "2-right.yml").write_text(RIGHT.replace(*change))
    assert said in here("run", "scenarios", code=3)
    assert not (project / "reports").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Missing argument 'FILES...'"),
        (("nowhere.yaml",), "error: cannot read the scenario nowhere.yaml: No such file or directory"),
        (("tinyapp",), "error: no scenario in the folder tinyapp: expected *.yaml with title, rig and workload"),
        (("scenarios", "--engine", "tc"), "Invalid value for '--engine'"),
        (("scenarios", "--junit", "no/where.xml"), "error: --junit: no folder no\ntry: mkdir -p no"),
        (("scenarios/compose.yaml",), "scenarios/compose.yaml:1: unknown field 'services'"),
    ],
)
def test_a_wrong_command_line_is_told_in_words(
    here: Callable[..., str], project: Path, words: tuple[str, ...], said: str
) -> None:
    assert said in here("run", *words, code=3)
    assert not (project / "reports").exists()


def test_ctrl_c_reports_what_there_is(project: Path) -> None:
    (project / "scenarios" / "long.yaml").write_text(RIGHT.replace("count: 6, rate: 20/s", "duration: 90s, rate: 5/s"))
    process = subprocess.Popen(
        [sys.executable, "-m", "jobcheck", "run", "scenarios/long.yaml", "scenarios/2-right.yml"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "450 cases in 90 s" not in (line := process.stderr.readline()):
        assert line, "it ended before its workload began"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, f"{out}\n{err}"
    assert "Traceback" not in err
    assert "── stopped ──" in out
    assert "stopped after " in out
    (scenario,) = json.loads((project / "reports" / "latest" / "report.json").read_text())["scenarios"]
    assert scenario["aborted"] is True
