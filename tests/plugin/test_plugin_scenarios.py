"""Scenario files as test items: which files are collected, what is green, what is red, and what a user reads then."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

# Loaded before any nested run, as in conftest.py.
import jobcheck.plugin.live
import jobcheck.plugin.scenarios
import jobcheck.report.scenario_outcome
import jobcheck.report.series
import jobcheck.report.terminal
import jobcheck.report.writer
import jobcheck.runner.scenarios.campaign  # noqa: F401

TINY = Path(__file__).parent / "tiny" / "rig.py"
RIGHT = f"""\
title: The right job survives a kill
rig: {TINY}:tiny
workload: {{enqueue: put_right, count: 6, rate: 20/s}}
workers: 1
faults:
  - {{kill: tree, point: before store SET, at: 0s}}
expect:
  - at_least_once: mark mail
"""
NAIVE = (
    RIGHT.replace("right job survives a kill", "naive job is red")
    .replace("put_right", "put_naive")
    .replace("before store", "after store")
    .replace("at_least_once: mark mail", "exactly_once: mark charge")
)
FOREIGN = "services:\n  db:\n    image: postgres\n"
COLLECTED = "scenarios/right.yaml::The right job survives a kill"

Put = Callable[..., Path]


@pytest.fixture
def put(pytester: pytest.Pytester) -> Put:
    """`put(right=RIGHT, ...)`: writes `scenarios/right.yaml` and the others; gives the folder."""

    def write(**files: str) -> Path:
        folder = pytester.path / "scenarios"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / f"{name}.yaml").write_text(text)
        return folder

    return write


def items(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (("scenarios",), True),
        (("scenarios/right.yaml",), True),
        (("scenarios/right.yaml::The right job survives a kill",), True),
        (("-o", "jobcheck_scenarios=scenarios/*.yaml"), True),
        (("-o", "testpaths=scenarios"), True),
        (("-n1", "scenarios"), True),
        ((), False),
        ((".",), False),
    ],
)
def test_scenarios_are_collected_where_somebody_asks_for_them(nested, put, options, asked):
    put(right=RIGHT, foreign=FOREIGN)
    result = nested("", "--collect-only", "-q", *options, own_process="-n1" in options)
    assert items(result) == ([COLLECTED] if asked else []), result.outlines


def test_yaml_of_others_is_left_alone_and_costs_nothing(nested, put, pytester):
    folder = put(foreign=FOREIGN, odd="title: a poem\n", no_yaml="a: b: c", none="")
    (folder / "binary.yaml").write_bytes(b"\x00\xff" * 100)
    (folder / "folder.yaml").mkdir()
    (folder / "test_it.py").write_text(
        "import sys\n\ndef test_modules():\n    assert not {'yaml', 'redis', 'rich'} & set(sys.modules)\n"
    )
    result = nested("", "scenarios", own_process=True)
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("titel:", "title:"), "scenarios/right.yaml:1: unknown field 'titel'; did you mean 'title'?"),
        (("kil:", "kill:"), "scenarios/right.yaml:6: unknown fault 'kil'; did you mean 'kill'?"),
        (("before stroe", "before store"), "scenarios/right.yaml:6: unknown upstream 'stroe'; did you mean 'store'?"),
        (("mark_mail", "mark mail"), "scenarios/right.yaml:8: "),
    ],
)
def test_a_mistake_is_an_error_of_the_collection_with_its_line(nested, put, change, said):
    wrong, right = change
    put(right=RIGHT.replace(right, wrong))
    result = nested("", "scenarios")
    result.assert_outcomes(errors=1)
    assert any(said in line for line in result.outlines), result.outlines
    assert "Traceback" not in result.stdout.str()


def test_a_right_job_is_green_and_a_naive_one_is_red_with_counts_and_commands(nested, put, pytester):
    """One of them on each worker of xdist, as it is in CI."""
    put(right=RIGHT, naive=NAIVE)
    result = nested("", "scenarios", "-n2", "--junitxml=junit.xml", "--strict-markers", own_process=True)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ The naive job is red _*",
            "✗ The naive job is red",
            "  scenarios/naive.yaml: celery-redis, at-least-once, 1 worker, seed 0",
            "  counts   attempted 6, acknowledged 6, ok 5, lost 0, duplicated 1, *",
            "*duplicated  handler  mark charge: 2 times, expected 1*",
            "*w1: killed after store SET",
            "*mark charge (2nd time)",
            "  report: reports/*-naive/report.html",
            "  to run it again:",
            "pytest scenarios/naive.yaml --jobcheck-seed 0",
            "jobcheck run scenarios/naive.yaml --seed 0",
        ]
    )
    result.stdout.fnmatch_lines_random(
        [
            "  ✓ ok: attempted 6, acknowledged 6, ok 6, lost 0, duplicated 0, unexpected 0, recovered 0",
            "  ✗ broken: attempted 6, acknowledged 6, ok 5, lost 0, duplicated 1, unexpected 0, recovered 0",
            "FAILED scenarios/naive.yaml::The naive job is red - broken: attempted 6*",
        ]
    )
    cases = {case.get("name"): case for case in ET.parse(pytester.path / "junit.xml").iter("testcase")}
    failure = cases["The naive job is red"].find("failure")
    assert failure is not None
    assert failure.get("message").startswith("broken: attempted 6, acknowledged 6, ok 5")
    assert failure.text.splitlines()[-1] == "jobcheck run scenarios/naive.yaml --seed 0"
    properties = {item.get("name"): item.get("value") for item in cases[RIGHT.splitlines()[0][7:]].iter("property")}
    assert properties["jobcheck.verdict"] == "ok"


def test_a_fault_that_met_nobody_fails_the_item(nested, put, pytester):
    put(idle=RIGHT.replace("before store SET", "before store GETDEL") + "seed: 5\n")
    result = nested("", "scenarios", "--jobcheck-reports", "out")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "  [?] not exercised: attempted 6, acknowledged 6, ok 6, *",
            "    unknown: not exercised: kill tree before store GETDEL never met a running job",
            "    report: out/*-idle/report.html",
            "FAILED scenarios/idle.yaml::The right job survives a kill - not exercised: *",
        ]
    )
    assert "pytest scenarios/idle.yaml --jobcheck-seed 5" in result.outlines
    assert (pytester.path / "out" / "latest" / "report.json").is_file()


def test_it_can_be_chosen_by_its_title_and_by_the_marker(nested, put):
    put(right=RIGHT, naive=NAIVE)
    assert items(nested("", "--collect-only", "-q", "scenarios", "-k", "right")) == [COLLECTED]
    assert items(nested("", "--collect-only", "-q", "scenarios", "-m", "not jobcheck")) == []


def test_a_test_spoils_the_network_of_a_scenario_with_its_own_toxiproxy_client(
    pytester: pytest.Pytester, put: Put
) -> None:
    """Right jobs stand it; the naive ones are red where the block ends, and so is what the test itself asserts."""
    put(right=RIGHT.replace("faults:\n  - {kill: tree, point: before store SET, at: 0s}\n", ""), naive=NAIVE)
    pytester.makepyfile(
        client="""
        import sys
        from urllib.parse import urlsplit
        from toxiproxy import Toxiproxy
        at = urlsplit(sys.argv[1])
        server = Toxiproxy()
        server.update_api_consumer(at.hostname, at.port)
        server.get_proxy("broker").add_toxic(type="latency", attributes={"latency": 20})
        """,
        test_network="""
        import subprocess, sys

        def test_right(jobcheck_scenario):
            with jobcheck_scenario("scenarios/right.yaml") as run:
                subprocess.run([sys.executable, "client.py", run.toxiproxy_url], check=True)
            assert any("set by hand" in note for note in run.result.report.scenarios[0]["notes"])

        def test_naive(jobcheck_scenario):
            with jobcheck_scenario("scenarios/naive.yaml"):
                pass

        def test_own_assertion(jobcheck_scenario):
            with jobcheck_scenario("scenarios/right.yaml"):
                assert 1 == 2
        """,
    )
    result = pytester.runpytest("-q", "test_network.py")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*test_naive*broken: *", "*test_own_assertion*assert 1 == 2*"])
