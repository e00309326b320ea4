"""The command line as a user runs it: real servers, real kills, exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TINY = Path(__file__).parents[1] / "plugin" / "tiny"
HANDLER = ("--handler", "tinyapp.jobs:naive", "--case", "number")
EXPECT = ("--expect", "exactly_once: mark charge", "--expect", "at_least_once: mark mail")
FIXED = """
    with store() as keys:
        if not keys.get(f"charged:{number}"):
            keys.set(f"charged:{number}", 1)
            mark("charge", str(number))
        mark("mail", str(number))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the tiny app, with its settings."""
    folder = tmp_path / "project"
    shutil.copytree(TINY, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pyproject.toml").write_text('[tool.jobcheck]\nrig = "rig.py:tiny"\n')
    return folder


def jobcheck(folder: Path, *words: str, code: int) -> subprocess.CompletedProcess[str]:
    """Runs the command line in a folder and checks how it ended."""
    done = subprocess.run(
        [sys.executable, "-m", "jobcheck", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def test_a_finding_is_explored_replayed_judged_mended_and_forgotten(project):
    seen = jobcheck(project, "explore", *HANDLER, *EXPECT, "--seed", "7", code=1)
    assert "1 ok, 3 duplicated (1 cause)" in seen.stdout
    assert "seed 7" in seen.stdout
    (finding,) = json.loads((project / ".jobcheck" / "failures.json").read_text())["findings"]
    command = f"jobcheck replay {finding['id']}"
    assert command in seen.stdout.splitlines()

    path = jobcheck(project, "report", code=0).stdout.strip()
    assert (project / path).read_text().startswith("<!doctype html>")
    assert json.loads(jobcheck(project, "report", "--format", "json", code=0).stdout)["verdict"] == "broken"
    assert finding["id"] in jobcheck(project, "report", "--format", "terminal", code=0).stdout
    assert finding["id"] in jobcheck(project, "report", "--format", "summary", code=0).stdout

    assert "1 ok, 3 duplicated; as stored" in jobcheck(project, "judge", code=1).stdout
    other = jobcheck(project, "judge", "--expect", "at_least_once: mark", code=0)
    assert "4 ok; 3 verdicts changed" in other.stdout
    assert "kill before store redis SET charged:*: duplicated, now ok" in other.stdout

    again = jobcheck(project, "replay", finding["id"][:4], "--deadline", "40s", "--keep-bodies", code=1)
    report = json.loads(jobcheck(project, "report", "--format", "json", code=0).stdout)
    assert report["environment"]["bodies"] == "kept as they are"
    last = again.stdout.splitlines()[-1]
    assert last == f"FAILED {finding['id']}: mark charge: 2 times, expected 1 (reproduced 3 of 3)"
    assert command in again.stdout.splitlines()

    jobs = project / "tinyapp" / "jobs.py"
    before, _, rest = jobs.read_text().partition('    """Charges again whenever it runs again."""\n')
    jobs.write_text(before + FIXED + rest[rest.index("\n\n@app.task") :])
    mended = jobcheck(project, "replay", finding["id"], code=0)
    assert mended.stdout.splitlines()[-1].startswith(f"FIXED {finding['id']}: ")
    assert "none is remembered" in jobcheck(project, "replay", finding["id"], code=3).stderr


def test_a_job_goes_through_its_queue_and_the_transports_findings_are_counted(project):
    seen = jobcheck(project, "explore", "put_right", "--expect", "at_least_once: mark mail", code=0)
    assert "1 transport" in seen.stdout
    assert "5 points, 6 strikes, 6 fired: 4 ok, 2 lost (1 cause)" in seen.stdout
    assert jobcheck(project, "judge", "--fail-on", "all", code=1).stdout.startswith("✗ put_right, queue mode")


def test_without_contracts_the_options_to_paste_are_shown(project):
    seen = jobcheck(project, "explore", *HANDLER, code=3)
    assert "    --expect 'exactly_once: mark charge'\n    --expect 'exactly_once: mark mail'\n" in seen.stderr


def test_a_rig_is_found_from_below_the_project_and_reports_go_where_they_are_told(project):
    below = project / "deep" / "er"
    below.mkdir(parents=True)
    jobcheck(below, "explore", *HANDLER, *EXPECT, "--max-points", "2", "--reports", "out", "--fail-on", "none", code=0)
    assert (below / "out" / "latest" / "report.json").is_file()
    assert (project / ".jobcheck" / "failures.json").is_file()


def test_ctrl_c_is_one_line_and_leaves_nothing(project):
    process = subprocess.Popen(
        [sys.executable, "-m", "jobcheck", "explore", "put_naive", *EXPECT],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "broker: " in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert [line for line in err.splitlines() if not line.startswith("·")] == [
        "error: stopped by Ctrl-C; every worker and private server was ended"
    ]
    assert out == ""


def test_a_reader_that_goes_away_is_no_error(project):
    jobcheck(project, "explore", *HANDLER, *EXPECT, "--max-points", "2", code=1)
    for form in ("json", "terminal"):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [sys.executable, "-m", "jobcheck", "report", "--format", form],
            cwd=project,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        os.close(write)
        assert (done.returncode, done.stderr) == (2, "")


def test_the_doctor_names_every_part_and_how_to_get_it(project):
    told = json.loads(jobcheck(project, "doctor", "--json", code=0).stdout)
    names = [part["name"] for part in told["parts"]]
    assert {"python", "redis", "postgres"} <= set(names)
    assert told["project"] == {"folder": str(project), "rig": "rig.py:tiny"}
    text = jobcheck(project, "doctor", code=0).stdout
    assert [name for name in names if name not in text] == []


def test_services_say_what_is_here(project):
    lines = jobcheck(project, "services", "install", code=0).stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["Redis", "PostgreSQL"]
