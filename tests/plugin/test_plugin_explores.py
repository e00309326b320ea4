"""The fixtures against a real app: what is green, what is red, and what a user reads then."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

TINY = Path(__file__).parent / "tiny" / "rig.py"
SHOP = Path(__file__).parents[2] / "scenarios" / "apps" / "invoices" / "rig.py"
NAIVE = """
def test_naive(jobcheck_handler):
    jobcheck_handler("tinyapp.jobs:naive", case="number").explore(expect=EXPECT)
"""
RIGHT = """
def test_right(jobcheck_handler):
    jobcheck_handler("tinyapp.jobs:right", case="number").explore(expect=EXPECT[1:])
"""
PRODUCERS = """
@pytest.mark.parametrize("function", ["create_outbox", "create_commit_then_push"])
def test_an_invoice_has_its_job(jobcheck_producer, function):
    jobcheck_producer(function).explore()
"""


def test_a_right_job_is_green_and_its_coverage_is_told(nested, pytester):
    result = nested(RIGHT)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*= jobcheck =*",
            "test_jobs.py::test_right",
            "  ✓ right, handler mode: 2 points, 3 strikes, 3 fired: 3 ok",
            "    report: reports/*-test_jobs.py-test_right/report.html",
        ]
    )
    (run,) = [folder for folder in (pytester.path / "reports").iterdir() if not folder.is_symlink()]
    assert {"journal.jsonl", "report.json", "junit.xml", "report.html"} <= {path.name for path in run.iterdir()}
    assert (pytester.path / "reports" / "latest").resolve() == run.resolve()


def test_bad_strikes_of_one_cause_are_one_red_line_that_ends_with_the_commands(nested, pytester):
    result = nested(NAIVE)
    result.assert_outcomes(failed=2)  # the finding, and the test that contains it
    (finding,) = json.loads((pytester.path / ".jobcheck" / "failures.json").read_text())["findings"]
    assert len(finding["strikes"]) == 3
    assert finding["node"] == "test_jobs.py::test_naive"
    result.stdout.fnmatch_lines(
        [
            f"*_ test_naive [[]{finding['id']} mark charge: duplicated[]] _*",
            "✗ mark charge happens again when the worker dies after marks charge, before store SET charged*",
            "  code * tinyapp/jobs.py:28 naive",
            "*SIGKILL to the whole worker*",
            "*mark charge 10* (2nd time)",
            "  verified 3/3; to run it again:",
            "pytest test_jobs.py::test_naive",
            f"jobcheck replay {finding['id']}",
            "  ✗ naive, handler mode: 3 points, 4 strikes, 4 fired: 1 ok, 3 duplicated (1 cause)",
            f"SUBFAILED[[]{finding['id']} mark charge: duplicated[]] test_jobs.py::test_naive - mark *",
        ]
    )


def test_xdist_junit_and_strict_markers_work_together(nested, pytester):
    result = nested(NAIVE + RIGHT, "-n2", "--junitxml=junit.xml", "--strict-markers", own_process=True)
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines_random(
        ["  ✗ naive, handler mode: 3 points*", "  ✓ right, handler mode: 2 points*", "jobcheck replay ??????"]
    )
    cases = {case.get("name"): case for case in ET.parse(pytester.path / "junit.xml").iter("testcase")}
    assert cases["test_right"].find("failure") is None
    story = cases["test_naive"].find("failure")
    assert story is not None
    assert story.get("message").startswith("mark charge happens again")
    assert story.text.splitlines()[-2] == "pytest test_jobs.py::test_naive"
    (coverage,) = [
        item.get("value") for item in cases["test_right"].iter("property") if item.get("name") == "jobcheck.coverage"
    ]
    assert coverage == "right, handler mode: 2 points, 3 strikes, 3 fired: 3 ok"


def test_transport_findings_are_shown_and_fail_only_when_asked(nested):
    source = """
@pytest.mark.parametrize("fail_on", [None, "all"])
def test_queue(jobcheck_rig, fail_on):
    subject = jobcheck_rig.explore("put_right", expect=["at_least_once: mark mail"], fail_on=fail_on)
    assert [finding.layer for finding in subject.findings] == ["transport"]
"""
    result = nested(source)
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_queue[[]all[]] [[]?????? *: lost[]] _*",
            "  ✓ put_right, queue mode: 5 points, 6 strikes, 6 fired: 4 ok, 2 lost (1 cause)",
            "    not failing: transport: the job is lost when the worker dies*; jobcheck replay *",
        ]
    )


def test_settings_are_told_from_the_handler_and_can_be_assumed_safe(nested):
    source = """
@pytest.mark.jobcheck(fail_on="handler")
def test_early(jobcheck_rig):
    subject = jobcheck_rig.explore("put_right", expect=EXPECT[1:])
    assert subject.guarantee == "at-most-once"
    assert {finding.layer for finding in subject.findings} == {"settings", "transport"}

def test_assumed(jobcheck_rig):
    subject = jobcheck_rig.explore("put_right", expect=EXPECT[1:], assume="at-least-once")
    assert subject.guarantee == "at-least-once"
    assert {finding.layer for finding in subject.findings} == {"transport"}
"""
    nested(source, rig=f"{TINY}:tiny_early_acks").assert_outcomes(passed=2)


def test_what_is_unknown_fails_the_test_with_the_reason(nested):
    source = """
def test_wobbly(jobcheck_handler):
    jobcheck_handler("tinyapp.jobs:wobbly", case="number").explore(expect=EXPECT[1:])
"""
    result = nested(source, "--jobcheck-fail-on", "none")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*two clean runs of this job differ*SET odd:*", "FAILED *test_wobbly - unknown: two clean*"]
    )


def test_without_contracts_the_lines_to_paste_are_shown(nested):
    source = """
def test_bare(jobcheck_handler):
    jobcheck_handler("tinyapp.jobs:naive", case="number").explore()
"""
    result = nested(source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no contract says how often*", '    exactly_once("mark charge"),'])


def test_an_exploration_works_inside_a_running_event_loop(nested):
    source = """
import asyncio

def test_in_a_loop(jobcheck_handler):
    async def main():
        return jobcheck_handler("tinyapp.jobs:right", case="number").explore(expect=EXPECT[1:], max_points=1)
    assert asyncio.run(main()).coverage.capped == "capped at 1 of 3"
"""
    nested(source, "-W", "error").assert_outcomes(passed=1)


def test_without_a_terminal_reporter_the_exit_code_tells(nested, pytester):
    result = nested(NAIVE, "-p", "no:terminal", "--junitxml=junit.xml", own_process=True)
    junit = pytester.path / "junit.xml"
    assert result.ret is pytest.ExitCode.TESTS_FAILED, junit.read_text()
    assert "mark charge happens again" in junit.read_text()


@pytest.mark.parametrize(("variant", "outcomes"), [("naive", {"failed": 2}), ("idempotent", {"passed": 1})])
def test_the_three_line_example_on_the_sample_shop(nested, variant, outcomes):
    source = f"""
def test_charge(jobcheck_handler):
    job = jobcheck_handler("shop.variants:charge_and_mail_{variant}", case="invoice_row")
    job.explore(expect=[exactly_once("payments POST /charges"), at_least_once("mail")])
"""
    result = nested(source, rig=f"{SHOP}:shop")
    result.assert_outcomes(**outcomes)
    result.stdout.fnmatch_lines(["*3 points, 4 strikes, 4 fired: *"])


def test_a_race_is_asked_for_by_name(nested):
    result = nested(NAIVE.replace("expect=EXPECT", 'expect=EXPECT, faults=["race"]'))
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "✗ mark charge happens again when the job is delivered twice",
            "*the handler runs twice at once: A and B",
            "*A has ended; B goes on",
            "  verified 3/3; to run it again:",
            "  ✗ naive, handler mode: 3 points, 1 strike, 1 fired: 1 duplicated*",
        ]
    )


def test_a_producer_needs_no_contract(nested):
    result = nested(PRODUCERS, rig=f"{SHOP}:shop_with_relay")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "✗ job shop.jobs.render_invoice_pdf is never enqueued when the producer dies after db COMMIT*",
            "  · what is left: db INSERT invoices",
            "  ✓ create_outbox, producer mode: 1 point, 2 strikes, 2 fired: 2 ok",
            "  ✗ create_commit_then_push, producer mode: 2 points, 3 strikes, 3 fired: 2 ok, 1 lost",
        ]
    )
