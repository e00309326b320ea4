"""JUnit XML: valid whatever the texts are, and a case for each strike."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from jobcheck.history.report import Report
from jobcheck.report.junit import junit

from . import samples


def parsed(report: Report, **options: bool) -> ET.Element:
    return ET.fromstring(junit(report, **options))


def test_each_job_and_mode_is_a_suite_and_each_strike_a_case() -> None:
    root = parsed(samples.demo())
    assert [suite.get("name") for suite in root][:2] == ["naive [handler]", "naive [queue]"]
    cases = [case.get("name") for case in root[1].findall("testcase")]
    assert len(cases) == len(set(cases)) == 7
    assert cases[2] == "kill before payments http POST /charges"
    assert cases[6] == "kill after broker redis EXEC ZREM unacked_index HDEL unacked"


def test_bad_verdicts_fail_with_their_story_and_transport_ones_do_not_fail() -> None:
    queue = parsed(samples.demo())[1]
    assert (queue.get("tests"), queue.get("failures"), queue.get("skipped"), queue.get("errors")) == (
        "7",
        "3",
        "2",
        "0",
    )
    failure = queue.find("testcase/failure")
    assert failure is not None
    assert failure.get("type") == "duplicated"
    assert failure.get("message", "").startswith("a41c9e: payments POST /charges happens twice")
    assert "w1 is killed here" in (failure.text or "")
    skipped = queue.find("testcase/skipped")
    assert skipped is not None
    assert "laid at the transport" in skipped.get("message", "")


def test_transport_findings_fail_when_all_are_to_fail() -> None:
    queue = parsed(samples.demo(), fail_transport=True)[1]
    assert (queue.get("failures"), queue.get("skipped")) == ("5", "0")


def test_an_accepted_finding_does_not_fail_and_says_why() -> None:
    subject = samples.naive(False)
    findings = tuple(replace(item, accepted="provider bug 17") for item in subject.findings)
    suite = parsed(replace(samples.demo(), subjects=(replace(subject, findings=findings),)))[0]
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "3")
    skipped = suite.find("testcase/skipped")
    assert skipped is not None
    assert "provider bug 17" in skipped.get("message", "")


def test_no_answer_is_an_error_and_never_a_pass() -> None:
    nothing, half = parsed(samples.unknown())
    assert (nothing.get("tests"), nothing.get("errors")) == ("1", "1")
    error = nothing.find("testcase/error")
    assert error is not None
    assert "task_always_eager" in error.get("message", "")
    assert (half.get("tests"), half.get("errors")) == ("5", "3")


def test_the_totals_are_the_sums_of_the_suites() -> None:
    root = parsed(samples.demo())
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("33", "6", "6")


def test_the_coverage_is_a_property_of_its_suite() -> None:
    properties = {item.get("name"): item.get("value") for item in parsed(samples.demo())[1].iter("property")}
    assert properties["jobcheck.points"] == "6"
    assert properties["jobcheck.exhausted"] == "yes"
    assert properties["jobcheck.coverage"] == (
        "6 points, 7 strikes, 7 fired: 2 ok, 3 duplicated (2 causes), 2 lost (1 cause)"
    )


@pytest.mark.parametrize("fail", [True, False])
def test_hostile_texts_leave_the_xml_valid(fail: bool) -> None:
    text = junit(samples.hostile(), fail_transport=fail)
    text.encode("utf-8")
    root = ET.fromstring(text)
    assert {item.tag for item in root.iter()} <= {
        *("testsuites", "testsuite", "testcase", "properties", "property", "failure", "error", "skipped", "system-out"),
    }
