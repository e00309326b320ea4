"""Scenarios in every report: read from hand-built dicts, against texts that were read and approved."""

from __future__ import annotations

import io
import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from jobcheck.events import Bus, ScenarioFinished, ScenarioProgress, ScenarioStarted, ScenarioStep
from jobcheck.history.report import Report
from jobcheck.report.html import html
from jobcheck.report.junit import junit
from jobcheck.report.scenario_outcome import exit_code
from jobcheck.report.scenario_view import ScenarioView, views
from jobcheck.report.series import MOST, Series
from jobcheck.report.summary import summary
from jobcheck.report.terminal import Progress, render
from jobcheck.report.timeline import Axis
from jobcheck.report.writer import append_summary

from . import scenario_samples as samples
from .samples import demo
from .test_html import Page

SNAPSHOTS = Path(__file__).with_name("snapshots")
ALL = ("broken", "held", "idle", "failed", "stopped", "hostile", "crooked")


def some(*names: str) -> Report:
    return samples.report(*(getattr(samples, name)() for name in names))


def shown(report: Report, width: int = 100, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    render(report, Console(file=file, width=width, color_system=None), path=Path("reports/x/report.html"))
    file.flush()
    file.seek(0)
    return file.read()


def approved(name: str, text: str) -> None:
    """`JOBCHECK_UPDATE_SNAPSHOTS=1` writes it anew; read the difference."""
    file = SNAPSHOTS / name
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    if os.environ.get("JOBCHECK_UPDATE_SNAPSHOTS"):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


# What is read


def test_the_seven_counts_are_always_told_and_the_others_where_there_is_something() -> None:
    view = ScenarioView(samples.broken())
    assert view.counts_line == ("attempted 16, acknowledged 16, ok 13, lost 1, duplicated 2, unexpected 0, recovered 0")
    assert ScenarioView(samples.stopped()).counts_line.endswith("recovered 0, unfinished 3")


def test_asked_and_achieved_rate_stand_side_by_side() -> None:
    assert ScenarioView(samples.broken()).pace == (
        "asked 8/s, achieved 5.3/s: 16 of 16 cases in 3.0 s, at most 1.0 s late"
    )


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("broken", "broken"),
        ("held", "ok"),
        ("idle", "not exercised"),
        ("failed", "unknown"),
        ("stopped", "stopped"),
    ],
)
def test_a_verdict_is_one_word(name: str, word: str) -> None:
    assert ScenarioView(getattr(samples, name)()).word == word


def test_each_fault_says_how_often_it_began_and_whether_a_job_met_it() -> None:
    assert [fault.words for fault in ScenarioView(samples.broken()).faults] == [
        "once",
        "2 times, with a job running 1 of them",  # one more was of a worker that was down already
        "once",
        "once, 7 messages met it",
        "once, and never met a running job",
        "the point was never reached",
    ]


def test_a_lasting_fault_has_its_spells_and_a_deploy_lasts_until_it_is_taken_back() -> None:
    assert [fault.spells for fault in ScenarioView(samples.broken()).faults] == [
        (),
        (),
        (),
        ((0.502, 1.301),),
        ((1.001, 1.301),),
        (),
    ]
    assert ScenarioView(samples.held()).faults[1].spells == ((1.5, 2.5),)


def test_bad_cases_of_one_cause_are_one_row_with_the_smallest_story() -> None:
    handler, transport = ScenarioView(samples.broken()).causes
    assert (handler.verdict, handler.layer, handler.cases) == ("duplicated", "handler", ("case-100010", "case-100006"))
    assert handler.example == "case-100006 (invoice 10020020)"
    assert (transport.verdict, transport.layer) == ("lost", "transport")


def test_a_story_has_its_effects_its_kills_and_no_message_twice() -> None:
    handler, transport = ScenarioView(samples.broken()).causes
    assert [line.kind for line in handler.story] == [
        *("delivery", "message", "message", "effect", "strike"),
        *("delivery", "message", "effect", "message", "effect"),
    ]
    assert handler.story[1].text.startswith("EXEC ZADD unacked_index")
    assert [(line.kind, line.text) for line in transport.story] == [
        ("delivery", "delivery of job 583b4b48"),
        ("strike", "kill w2 (tree), back after 0.5 s"),
    ]


# Exit codes


@pytest.mark.parametrize(
    ("names", "fail_on", "code"),
    [
        (("held",), "settings", 0),
        (("held",), "all", 1),
        (("held",), "none", 0),
        (("held", "broken"), "settings", 1),
        (("broken",), "handler", 1),
        (("broken",), "none", 2),
        (("held", "idle"), "settings", 2),
        (("stopped",), "settings", 2),
        (("failed",), "none", 2),
        ((), "settings", 2),
    ],
)
def test_the_exit_code_follows_the_verdicts_and_fail_on(names: tuple[str, ...], fail_on: str, code: int) -> None:
    assert exit_code(views(some(*names).scenarios), fail_on) == code


def test_what_only_the_settings_break_passes_for_the_handler() -> None:
    scenario = samples.broken()
    scenario |= {"losses": {"handler": 0, "settings": 2, "transport": 0}, "problem": ""}
    scenario["expectations"] = scenario["expectations"][:2]
    assert exit_code([ScenarioView(scenario)], "handler") == 0
    assert exit_code([ScenarioView(scenario)], "settings") == 1


# The terminal


@pytest.mark.parametrize("width", [80, 120])
def test_the_text_is_the_approved_one(width: int) -> None:
    approved(f"scenarios-{width}.txt", shown(some("broken", "held", "idle", "failed", "stopped"), width))


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
@pytest.mark.parametrize("name", ALL)
def test_every_scenario_can_be_shown_in_every_encoding(name: str, encoding: str) -> None:
    text = shown(some(name), encoding=encoding)
    assert "report.html" in text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)


@pytest.mark.parametrize("width", [60, 80, 120, 300])
def test_only_what_is_to_be_copied_may_be_wider_than_the_screen(width: int) -> None:
    for line in shown(some("broken", "held", "stopped"), width).splitlines():
        if not line.startswith(("jobcheck run", "report ")):
            assert cell_len(line.rstrip()) <= width


def test_the_command_stands_whole_at_the_beginning_of_its_line() -> None:
    assert samples.held()["reproduce"] in shown(some("held"), 60).splitlines()


# Progress


EVENTS: list[Any] = [
    ScenarioStarted("naive", "naive.yaml", 7, 16, 2.0),
    ScenarioStep("naive", 0.0, "enqueue 16 cases at 8/s"),
    ScenarioStep("naive", 0.3, "kill w2 (tree), back after 0.5 s", "1 job(s) were running"),
    ScenarioProgress("naive", "workload", 4, 16, 2, 4, 0.5),
    ScenarioStep("naive", 0.6, "payments is out of order (503)"),
    ScenarioStep("naive", 0.9, "payments works again", "no job met it"),
    ScenarioStep("naive", 1.0, "kill any (tree) before a b", "the point was never reached"),
    ScenarioProgress("naive", "drain", 16, 16, 13, 16, 12.5),
    ScenarioStep("naive", 12.6, "all faults ended, all workers started"),
    ScenarioProgress("naive", "drain", 16, 16, 15, 16, 13.0),
    ScenarioFinished("naive", "broken", "16 attempted, 16 acknowledged: 13 ok, 3 lost", 14.0),
    ScenarioFinished("none", "unknown", "", 0.2),
]


def played(*, terminal: bool) -> str:
    file = io.StringIO()
    bus = Bus()
    with Progress(bus, Console(file=file, width=120, force_terminal=terminal)):
        for event in EVENTS:
            bus.emit(event)
    return file.getvalue()


def test_without_a_terminal_a_scenario_is_a_few_lines() -> None:
    assert played(terminal=False).splitlines() == [
        "· naive: 16 cases in 2 s, seed 7",
        "· naive: drain, 12 s: 16 of 16 cases, 13 of 16 jobs ended, 2 faults",
        "✗ naive: broken: 16 attempted, 16 acknowledged: 13 ok, 3 lost, 14.0 s",
        "? none: unknown: nothing was counted, 0.2 s",
    ]


def test_a_terminal_gets_one_line_that_is_written_over() -> None:
    text = played(terminal=True)
    assert "4 of 16 cases, 2 of 4 jobs ended, 1 fault: kill w2" in text
    assert "drain: 16 of 16 cases" in text
    assert "✗ " in text


def test_jobs_over_time_come_from_the_progress() -> None:
    bus = Bus()
    series = Series(bus)
    for event in EVENTS:
        bus.emit(event)
    first, second = series.into(some("broken", "failed")).scenarios
    assert first["series"] == {"at": [0.5, 12.5, 13.0], "cases": [4, 16, 16], "jobs": [4, 16, 16], "ended": [2, 13, 15]}
    assert second["series"] == {"at": [], "cases": [], "jobs": [], "ended": []}


def test_a_long_run_keeps_some_of_its_moments() -> None:
    bus = Bus()
    series = Series(bus)
    for number in range(3 * MOST):
        bus.emit(ScenarioProgress("x", "workload", number, 9999, 0, 0, number / 2))
    bus.emit(ScenarioFinished("x", "ok", "", 1.0))
    assert len(series.into(some("held")).scenarios[0]["series"]["at"]) == MOST


# JUnit and the step summary


def suites(report: Report, **options: Any) -> list[ET.Element]:
    return list(ET.fromstring(junit(report, **options)))


def test_junit_has_a_case_for_the_scenario_and_one_for_each_expectation() -> None:
    broken, held, idle = suites(some("broken", "held", "idle"))
    assert [case.get("name") for case in broken.iter("testcase")] == [
        "scenario",
        "expect exactly once: payments POST /charges",
        "expect at least once: mail",
        "expect none_lost",
    ]
    assert [suite.get("failures") for suite in (broken, held, idle)] == ["3", "0", "0"]
    assert [suite.get("errors") for suite in (broken, held, idle)] == ["0", "0", "1"]
    failure = broken.find("testcase/failure")
    assert failure is not None
    assert failure.get("message", "").startswith("broken: attempted 16, acknowledged 16, ok 13, lost 1")
    assert "X w1: killed after payments POST /charges" in (failure.text or "")
    assert (failure.text or "").endswith("jobcheck run scenarios/naive.yaml --seed 7")
    properties = {item.get("name"): item.get("value") for item in broken.iter("property")}
    assert properties["jobcheck.duplicated"] == "2"


def test_junit_and_the_exit_code_agree_on_what_fails() -> None:
    assert suites(some("held"), fail_transport=True)[0].get("failures") == "1"
    (suite,) = suites(some("broken"), fail_on="none")
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("0", "1", "2")


def test_the_totals_count_jobs_and_scenarios_together() -> None:
    both = Report(**{**{key: getattr(demo(), key) for key in Report.__slots__}, "scenarios": some("broken").scenarios})
    root = ET.fromstring(junit(both))
    assert (root.get("tests"), root.get("failures")) == ("37", "9")


def test_the_summary_is_the_approved_one() -> None:
    approved("scenarios-summary.md", summary(some("broken", "held", "idle")))


def test_the_summary_of_a_step_is_appended_and_never_too_long(tmp_path: Path) -> None:
    path = tmp_path / "step.md"
    path.write_text("before\n")
    append_summary(some("held"), path)
    assert path.read_text() == "before\n" + summary(some("held"))
    path.write_text("x" * (1024 * 1024 - 100))
    append_summary(some("broken"), path)
    assert path.read_text().endswith("(this step's summary is full; the rest is in the report)\n")
    assert path.stat().st_size < 1024 * 1024 + 200


@pytest.mark.parametrize("name", ALL)
def test_hostile_and_crooked_values_break_no_file(name: str) -> None:
    report = some(name)
    junit(report).encode("utf-8")
    suites(report)
    text = summary(report)
    assert text.count("<details>") == text.count("</details>")
    outside = "".join(text.split("```")[::2])
    assert "<img" not in outside
    assert "</script" not in outside


# HTML


@pytest.mark.parametrize("name", ALL)
def test_the_page_is_well_formed_and_needs_neither_network_nor_scripts(name: str) -> None:
    text = html(some(name, "held"))
    page = Page(text)
    for tag, attributes in page.elements:
        assert tag not in ("script", "img", "iframe", "object", "link")
        assert not any(key.startswith("on") or key == "src" for key in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\ud800-\udfff]", text)
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert {(attributes["href"] or "")[1:] for attributes in page.all("a")} <= set(ids)


def test_what_is_not_ok_is_open_and_what_is_ok_is_folded() -> None:
    page = Page(html(some("held", "broken", "idle")))
    assert ["open" in attributes for attributes in page.all("details", "scenario")] == [False, True, True]
    assert ["open" in attributes for attributes in Page(html(some("held"))).all("details", "scenario")] == [True]


def test_the_time_axis_has_a_row_for_each_fault_a_band_for_what_lasts_and_a_mark_for_what_does_not() -> None:
    page = Page(html(some("broken")))
    assert len(list(page.all("div", "lane-row"))) == 1 + 6 + 1 + 1
    assert len(list(page.all("rect", "bar"))) == len(list(page.all("rect", "band"))) == 2
    assert len(list(page.all("path", "cross"))) == 4
    assert len(list(page.all("circle", "ring"))) == 2
    assert len(list(page.all("path", "diamond"))) == 3
    assert len(list(page.all("line", "phase"))) == 2
    bar = next(page.all("rect", "bar"))
    assert (bar["x"], bar["width"]) == ("14.43%", "22.97%")


def test_a_scenario_that_never_ran_has_no_time_axis() -> None:
    page = Page(html(some("failed")))
    assert list(page.all("div", "timeline")) == []
    assert any("no redis-server on this machine" in text for text in page.texts)


@pytest.mark.parametrize(("end", "ticks"), [(0.3, 4), (3.479, 7), (60, 7), (4000, 7), (10**7, 2)])
def test_an_axis_has_a_handful_of_round_numbers(end: float, ticks: int) -> None:
    found = Axis(end).ticks
    assert len(found) == ticks
    assert found[0] == 0
    assert found[-1] <= end
