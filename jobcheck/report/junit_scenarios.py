"""Scenarios as JUnit: a suite for each, with a case for the whole and one for each expectation."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from jobcheck.history.report import Report

from .scenario_outcome import broken_claims, fails, unsure
from .scenario_parts import Claim
from .scenario_view import ScenarioView
from .stories import plain_line, shorten
from .text import clean

LINES = 40
"""Lines of a story in a failure."""


def scenario_suite(root: ET.Element, report: Report, view: ScenarioView, fail_on: str) -> None:
    """Adds the suite of one scenario; totals are the caller's."""
    suite = ET.SubElement(root, "testsuite", name=clean(view.title))
    if report.started:
        suite.set("timestamp", clean(report.started.removesuffix("Z")))
    _properties(suite, report, view)
    classname = f"jobcheck.{clean(view.title)}"
    seconds = view.number("seconds") or 0.0
    whole = ET.SubElement(suite, "testcase", classname=classname, name="scenario", time=f"{seconds:.3f}")
    if view.file:
        whole.set("file", clean(view.file))
    _whole(whole, view, fail_on)
    failing = broken_claims(view, fail_on)
    for claim in view.claims:
        case = ET.SubElement(suite, "testcase", classname=classname, name=f"expect {clean(claim.text)}", time="0.000")
        _claim(case, claim, failing)
    suite.set("time", f"{seconds:.3f}")


def _whole(case: ET.Element, view: ScenarioView, fail_on: str) -> None:
    text = plain_scenario(view)
    message = clean(f"{view.word}: {view.counts_line}")
    if fails(view, fail_on):
        ET.SubElement(case, "failure", type=view.word, message=message).text = text
    elif unsure(view):
        problem = clean(view.problem or "no answer")
        ET.SubElement(case, "error", type=view.word, message=problem).text = text
    else:
        ET.SubElement(case, "system-out").text = text


def _claim(case: ET.Element, claim: Claim, failing: list[Claim]) -> None:
    said = clean(claim.words)
    if claim in failing:
        ET.SubElement(case, "failure", type="broken", message=said).text = said
    elif claim.held is None:
        ET.SubElement(case, "error", type="unknown", message=said).text = said
    elif claim.held is False:
        ET.SubElement(case, "skipped", message=f"does not fail this run: {said}")
    elif claim.detail:
        ET.SubElement(case, "system-out").text = said


def _properties(suite: ET.Element, report: Report, view: ScenarioView) -> None:
    values = {
        "jobcheck.verdict": view.word,
        "jobcheck.system": view.text("system"),
        "jobcheck.guarantee": view.text("guarantee"),
        "jobcheck.counts": view.counts_line,
        "jobcheck.load": view.pace,
        "jobcheck.contracts": "; ".join(view.texts("contracts")),
        "jobcheck.seed": view.text("seed"),
        "jobcheck.reproduce": view.reproduce,
        "jobcheck.run": report.run,
        **({"jobcheck.clock": said} if (said := view.text("clock")) else {}),
    }
    values |= {f"jobcheck.{count.name.replace(' ', '_')}": str(count.number) for count in view.counts}
    box = ET.SubElement(suite, "properties")
    for name, value in values.items():
        ET.SubElement(box, "property", name=name, value=clean(value))


def plain_scenario(view: ScenarioView) -> str:
    """One scenario as plain text of several lines, for JUnit and other places without layout."""
    marks = {"good": "ok", "bad": "BROKEN", "unsure": "?"}
    lines = [view.title, ": ".join(filter(None, [view.file, view.setting])), "", view.counts_line]
    lines += [line for line in (view.layers_words, view.pace, view.rest, view.other_problem) if line]
    lines += [f"expect {marks[claim.tone]}: {claim.words}" for claim in view.claims]
    lines += [f"fault {marks[fault.tone]}: {fault.text}: {fault.words}" for fault in view.faults]
    lines += [f"provider {provider.words}" for provider in view.providers]
    for cause in view.causes:
        lines.append(f"{len(cause.cases)} x {cause.verdict}, laid at {cause.place}: {cause.what}")
    told = next((cause for cause in view.causes if cause.story), None)
    text = [clean(line) for line in lines]
    if told is not None:
        text += ["", clean(f"{told.verdict}, the smallest story: {told.example}")]
        text += [plain_line(line) for line in shorten(told.story, LINES)]
    return "\n".join([*text, "", clean(view.reproduce)])
