"""The HTML report: one file without network and without scripts, that opens on the first finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from jobcheck.history.report import FindingReport, Report, SubjectReport

from .diagram import diagram
from .html_scenarios import scenario_index, scenario_sections
from .markup import Markup, el, escape, join
from .scenario_view import views
from .stories import Told, causes_by_verdict, stories
from .strips import strikes_table, strip
from .text import (
    UNSURE,
    by_name,
    count_words,
    coverage_line,
    finding_words,
    headline,
    label,
    listed,
    plural,
    title_of,
    tone,
    verdict_counts,
    verified_words,
)


def html(report: Report) -> str:
    """The whole page."""
    told = stories(report)
    templates = files("jobcheck.report").joinpath("templates")
    page = Template(templates.joinpath("page.html").read_text("utf-8"))
    return page.substitute(
        title=escape(f"{report.verdict}: {report.command}"),
        style=templates.joinpath("style.css").read_text("utf-8"),
        header=_header(report, told),
        nav=_nav(report),
        main=_main(report, told),
        jobs=_jobs(report),
    )


def _nav(report: Report) -> Markup:
    parts = []
    if report.scenarios:
        parts += [el("h2", "Scenarios"), scenario_index(views(report.scenarios))]
    if report.subjects or not parts:
        parts += [el("h2", "Points and strikes"), _index(report)]
    return el("div", *parts)


def _main(report: Report, told: Sequence[Told]) -> Markup:
    parts = []
    if report.scenarios:
        sections = scenario_sections(views(report.scenarios))
        parts.append(el("section", el("h2", "Scenarios", id="scenarios"), sections, aria_labelledby="scenarios"))
    if report.subjects or not parts:
        head = el("h2", "Findings", id="findings")
        parts.append(el("section", head, _findings(report, told), aria_labelledby="findings"))
    return join(parts)


def _jobs(report: Report) -> Markup:
    jobs = [_job(subject, number) for number, subject in enumerate(by_name(report.subjects), 1)]
    head = [el("h2", "Jobs", id="jobs")] if jobs or not report.scenarios else []
    return join([*head, *jobs, _footer(report)])


def _header(report: Report, told: Sequence[Told]) -> Markup:
    kind = "good" if report.verdict == "ok" else "unsure" if report.verdict == "unknown" else "bad"
    facts = [report.command, f"seed {report.seed}", report.started, f"{report.seconds:.1f} s" if report.seconds else ""]
    facts.append(f"{plural(report.redacted, 'secret')} redacted" if report.redacted else "")
    return join(
        [
            el("p", el("span", report.verdict, class_=f"badge {kind} big"), " jobcheck", class_="brand"),
            el("h1", headline(report)),
            el("p", _counted(report, told), class_="coverage"),
            el("p", " · ".join(filter(None, facts)), class_="muted"),
        ]
    )


def _counted(report: Report, told: Sequence[Told]) -> str:
    """The run in one line."""
    if report.subjects or not report.scenarios:
        return coverage_line(report.subjects, causes_by_verdict(told))
    seen = views(report.scenarios)
    words = Counter(view.word for view in seen)
    return seen[0].counts_line if len(seen) == 1 else ", ".join(f"{count} {word}" for word, count in words.items())


def _findings(report: Report, told: Sequence[Told]) -> Markup:
    troubled = [subject for subject in report.subjects if subject.problem or subject.verdict == "unknown"]
    parts = [
        el("div", el("strong", label(subject)), f": {subject.problem or 'no answer'}", class_="problem")
        for subject in troubled
    ]
    if not told:
        text = "Nothing was found." if not troubled else "No finding, and not every strike gave an answer."
        return join([*parts, el("p", text, class_="none")])
    return join([*parts, *(_finding(item, number == 0) for number, item in enumerate(told))])


def _finding(told: Told, opened: bool) -> Markup:
    finding = told.finding
    known = finding.accepted or finding.layer == "transport"
    badges = [
        el("span", finding.verdict, class_=f"badge {'transport' if known else 'bad'}"),
        el("span", finding.layer, class_="badge plain"),
        el("span", "accepted", class_="badge plain") if finding.accepted else Markup(""),
        el("code", finding.id, class_="muted"),
    ]
    head = el("summary", el("span", *badges, class_="badges"), el("span", title_of(finding), class_="title"))
    runs = [
        diagram(finding.story, "Struck run") if finding.story else Markup(""),
        diagram(finding.clean, "Clean run") if finding.clean else Markup(""),
    ]
    # The anchors lie inside, as a browser opens the details around the target of a link.
    anchors = [el("span", id=f"f-{item.id}") for item in (finding, *(other for _, other in told.same))]
    body = el("div", *anchors, _facts(told), _advice(finding), _replay(told), el("div", *runs, class_="runs"))
    return el("details", head, body, class_="finding", open=opened)


def _facts(told: Told) -> Markup:
    finding = told.finding
    job = label(told.subject) + (f"; {told.same_words}" if told.same else "")
    rows: list[tuple[str, str]] = [("Job", job)]
    if finding.code:
        rows.append(("Code", el("code", finding.code)))
    rows.append(("Struck", f"{finding.where or 'see the strip'} ({plural(told.strikes, 'strike')})"))
    rows.append(("Strip", strip(told.subject, finding.strikes)))
    if finding.node:
        rows.append(("Test", el("code", finding.node)))
    rows.append(("Checked", verified_words(finding)))
    return _list(rows)


def _advice(finding: FindingReport) -> Markup:
    rows = [("Why it matters", finding.why), ("What mends it", finding.advice), ("Accepted because", finding.accepted)]
    return el("div", *(el("p", el("strong", name), el("br"), text) for name, text in rows if text), class_="advice")


def _replay(told: Told) -> Markup:
    every = [(told.subject, told.finding), *told.same]
    lines = []
    for subject, finding in every:
        note = el("span", f"  # {label(subject)}", class_="muted") if told.same else ""
        lines.append(el("div", el("code", finding.replay, class_="command"), note))
    first, rest = lines[:2], lines[2:]
    more = el("details", el("summary", f"{plural(len(rest), 'more command')}"), *rest) if rest else ""
    return el("div", el("strong", "Run it again"), *first, more, class_="replay")


def _index(report: Report) -> Markup:
    """All jobs with their strips, small enough to stand beside the findings."""
    rows = []
    for number, subject in enumerate(by_name(report.subjects), 1):
        counts = verdict_counts(subject.strikes)
        mark = el("span", class_=f"lamp {_lamp(subject)}")
        name = el("a", subject.name, href=f"#j-{number}")
        head = el("div", mark, name, el("span", f" {subject.mode}", class_="muted"), class_="index-name")
        said = el("div", count_words(counts) or "not struck", class_="muted small")
        rows.append(el("li", head, strip(subject), said))
    legend = [
        el("span", el("span", glyph, class_=f"cell {kind}"), f" {word}")
        for glyph, kind, word in (
            ("✓", "good", "ok"),
            ("2×", "bad", "duplicated"),
            ("0", "bad", "lost"),
            ("0", "transport", "transport's"),
            ("?", "unsure", "no answer"),
        )
    ]
    return join([el("ul", *rows, class_="index"), el("p", *legend, class_="legend small muted")])


def _job(subject: SubjectReport, number: int) -> Markup:
    coverage = subject.coverage
    facts: list[tuple[str, str]] = [("System", subject.system)]
    facts.append(("Guarantee", subject.guarantee or "not stated"))
    facts.append(("Contracts", join((el("code", item) for item in subject.contracts), ", ") or "none"))
    effects = ", ".join(f"{name} × {count}" for name, count in subject.effects.items())
    facts.append(("Clean run", effects or "no effect seen"))
    if subject.uncontracted:
        facts.append(("Without contract", listed(subject.uncontracted)))
    space = "every strike of the space was tried" if coverage.exhausted else coverage.capped or "capped"
    facts.append(("Coverage", f"{coverage_line([subject]).split(';')[0]}; {space}"))
    facts.append(("Findings", finding_words(subject.findings)))
    if subject.expected:
        facts.append(("Demo", subject.expected))
    facts.extend(("Note", note) for note in subject.notes)
    head = el(
        "summary",
        el("span", class_=f"lamp {_lamp(subject)}"),
        el("span", label(subject), class_="title"),
        el("span", f" {count_words(verdict_counts(subject.strikes)) or 'not struck'}", class_="muted"),
    )
    anchor = el("span", id=f"j-{number}")
    body = el("div", anchor, _list(facts), strikes_table(subject) if subject.strikes else Markup(""))
    return el("details", head, body, class_="job")


def _footer(report: Report) -> Markup:
    facts = [(name, value) for name, value in _flat(report.environment)]
    if report.run:
        facts.append(("run", report.run))
    return el("details", el("summary", "Environment"), _list(facts), class_="environment")


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name} ")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{name}", ", ".join(str(item) for item in value)
        else:
            yield f"{prefix}{name}", str(value)


def _list(rows: Iterable[tuple[str, str]]) -> Markup:
    return el("dl", *(el("div", el("dt", name), el("dd", value)) for name, value in rows))


def _lamp(subject: SubjectReport) -> str:
    if subject.verdict == "ok":
        transport = any(strike.layer == "transport" and tone(strike.verdict) == "bad" for strike in subject.strikes)
        return "transport" if transport else "good"
    return "unsure" if subject.verdict in UNSURE else "bad"
