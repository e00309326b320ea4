"""Marks without an import: a line of output of a job in Python, or of its Node or Ruby child, is an effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.checks.contracts import at_least_once, exactly_once
from jobcheck.wire.marks import told

from . import tiny
from .test_faults_by_hand import SCENARIO, live, reported, scenario

PYTHON = '    print("jobcheck-mark: paid key=" + key)\n'
LOGGING = """
    import logging
    logging.getLogger("shop").warning("jobcheck-mark: paid key=%s", key)
"""
NODE = """
    import subprocess
    subprocess.run(["node", "-e", "console.log('jobcheck-mark: paid key=' + process.argv[1])", key], check=True)
"""
RUBY = """
    import subprocess
    subprocess.run(["ruby", "-e", "puts 'jobcheck-mark: paid key=' + ARGV[0]", key], check=True)
"""
BODIES = {"print": PYTHON, "logging": LOGGING, "node": NODE, "ruby": RUBY}


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        ("jobcheck-mark: paid invoice=17", ("paid", "invoice=17")),
        ("[2026-11-30 07:00:00: WARNING/Pool-1] jobcheck-mark: paid invoice 17 \r", ("paid", "invoice 17")),
        ('{"level": "info", "message": "jobcheck-mark: paid invoice=17", "pid": 4}', ("paid", "invoice=17")),
        ("\x1b[33mjobcheck-mark: paid 17\x1b[0m", ("paid", "17")),
        ('{"message": "jobcheck-mark: woken"}', ("woken", "")),
        ("jobcheck-mark: ", None),
        ("a mark was paid", None),
    ],
)
def test_a_mark_is_read_whatever_the_log_format_adds(line: str, mark: tuple[str, str] | None) -> None:
    assert told(line) == mark


@pytest.mark.parametrize("mode", ["queue", "handler"])
@pytest.mark.parametrize("body", BODIES)
def test_a_line_of_output_is_an_effect_under_contract(tmp_path: Path, body: str, mode: str) -> None:
    """Done twice by a job that is killed between the line and what follows it, and that is found."""
    reference = tiny.write(tmp_path, BODIES[body] + tiny.ONCE)
    contracts = (exactly_once("mark paid"), at_least_once("mark done"))
    subject = tiny.only(tiny.explore(reference, mode=mode, contracts=contracts, verify=1, assume="at-least-once"))
    assert subject.problem == ""
    broken = {(one.effect, one.verdict) for one in subject.findings if one.layer == "handler"}
    assert broken == {("mark paid", "duplicated")}
    assert "mark paid" not in subject.uncontracted


def test_lines_of_output_are_judged_in_a_scenario(tmp_path: Path) -> None:
    body = PYTHON + NODE.replace("paid", "shipped")
    text = SCENARIO.replace("mark done", "mark paid\n  - exactly_once: mark shipped").replace("count: 12", "count: 4")
    with live(scenario(tmp_path, body, text)) as run:
        pass
    report = reported(run)
    assert report["verdict"] == "ok", report
    assert {one["text"]: one["held"] for one in report["expectations"]} == {
        "exactly once: mark paid": True,
        "exactly once: mark shipped": True,
    }
