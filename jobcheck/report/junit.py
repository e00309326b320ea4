"""JUnit XML: one test suite per job and mode, one test case per strike; a suite of its own for each scenario."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from jobcheck.history.report import FindingReport, PointReport, Report, StrikeReport, SubjectReport

from .junit_scenarios import scenario_suite
from .scenario_view import views
from .stories import Told, plain_story
from .text import OK, UNSURE, clean, coverage_line, finding_words, in_job, title_of


def junit(report: Report, *, fail_transport: bool = False, fail_on: str = "settings") -> str:
    """The report as JUnit XML.

    A bad verdict is a failure with its story; one that is neither a pass nor a breach is an error. What is laid at the
    transport, or accepted, is skipped with a message, as it does not fail the run either (`fail_transport`: it does).
    What makes a scenario a failure, `fail_on` says.
    """
    root = ET.Element("testsuites", name=clean(report.command))
    for subject in report.subjects:
        _suite(root, report, subject, fail_transport)
    for view in views(report.scenarios):
        scenario_suite(root, report, view, "all" if fail_transport else fail_on)
    for suite in root:
        _total(suite)
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    root.set("time", f"{sum(float(suite.get('time', 0)) for suite in root):.3f}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, report: Report, subject: SubjectReport, fail_transport: bool) -> None:
    name = f"{clean(subject.name)} [{clean(subject.mode)}]"
    suite = ET.SubElement(root, "testsuite", name=name)
    if report.started:
        suite.set("timestamp", clean(report.started.removesuffix("Z")))
    _properties(suite, report, subject)
    points = subject.struck
    findings = {strike: finding for finding in subject.findings for strike in finding.strikes}
    for strike in subject.strikes:
        case = ET.SubElement(suite, "testcase", classname=f"jobcheck.{name}", time=f"{strike.seconds:.3f}")
        case.set("name", strike_name(strike, points.get(strike.point)))
        _result(case, subject, strike, findings.get(strike.id), fail_transport)
    if subject.problem or (subject.verdict == "unknown" and not subject.strikes):
        case = ET.SubElement(suite, "testcase", classname=f"jobcheck.{name}", name="exploration", time="0.000")
        problem = clean(subject.problem or "the job was not explored")
        ET.SubElement(case, "error", type="unknown", message=problem).text = problem
    suite.set("time", f"{subject.seconds:.3f}")


def _total(suite: ET.Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(len(suite.findall(f"testcase/{tag}"))))


def _properties(suite: ET.Element, report: Report, subject: SubjectReport) -> None:
    coverage = subject.coverage
    values = {
        "jobcheck.verdict": subject.verdict,
        "jobcheck.system": subject.system,
        "jobcheck.mode": subject.mode,
        "jobcheck.guarantee": subject.guarantee,
        "jobcheck.contracts": "; ".join(subject.contracts),
        "jobcheck.points": coverage.points,
        "jobcheck.strikes": coverage.strikes,
        "jobcheck.fired": coverage.fired,
        "jobcheck.exhausted": "yes" if coverage.exhausted else coverage.capped or "no",
        "jobcheck.coverage": coverage_line([subject]),
        "jobcheck.findings": finding_words(subject.findings),
        "jobcheck.seed": report.seed,
        "jobcheck.run": report.run,
        **({"jobcheck.clock": said} if (said := report.environment.get("clock")) else {}),
    }
    box = ET.SubElement(suite, "properties")
    for name, value in values.items():
        ET.SubElement(box, "property", name=name, value=clean(str(value)))


def strike_name(strike: StrikeReport, point: PointReport | None) -> str:
    """`kill before payments http POST /charges`, with `#2` for the second of its kind in the job."""
    if point is None:
        return clean(f"{strike.fault} {strike.when} {strike.point}")
    nth = f" #{point.nth}" if point.nth > 1 else ""
    return clean(f"{strike.fault} {strike.when} {in_job(point)}{point.upstream} {point.shape}{nth}")


def _result(
    case: ET.Element,
    subject: SubjectReport,
    strike: StrikeReport,
    finding: FindingReport | None,
    fail_transport: bool,
) -> None:
    if strike.verdict == OK:
        return
    wrong = clean("; ".join(strike.effects)) or clean(strike.verdict)
    if strike.verdict in UNSURE:
        ET.SubElement(case, "error", type=strike.verdict, message=wrong).text = wrong
        return
    story = plain_story(Told(subject, finding)) if finding else wrong
    if finding and finding.accepted:
        ET.SubElement(case, "skipped", message=f"accepted finding {finding.id}: {clean(finding.accepted)}")
    elif strike.layer == "transport" and not fail_transport:
        said = title_of(finding) if finding else wrong
        ET.SubElement(case, "skipped", message=f"{clean(strike.verdict)}, laid at the transport: {said}")
    else:
        message = f"{finding.id}: {title_of(finding)}" if finding else wrong
        ET.SubElement(case, "failure", type=clean(strike.verdict), message=message).text = story
        return
    ET.SubElement(case, "system-out").text = story
