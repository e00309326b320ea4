"""Scenarios in the HTML report: a section for each with its counts, its time axis, and the story of what broke."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .diagram import diagram
from .markup import Markup, el, join
from .scenario_parts import Cause, Claim, FaultRow
from .scenario_view import ScenarioView
from .text import plural
from .timeline import timeline

SIGNS = {"good": "✓", "bad": "✗", "unsure": "?", "transport": "✗", "": ""}


def scenario_sections(scenarios: Sequence[ScenarioView]) -> Markup:
    """All of them in their order; those that are not ok are open, and the first one where all are."""
    calm = all(view.tone == "good" for view in scenarios)
    return join(
        _section(view, number, view.tone != "good" or (calm and number == 1))
        for number, view in enumerate(scenarios, 1)
    )


def scenario_index(scenarios: Sequence[ScenarioView]) -> Markup:
    """Small enough to stand beside them."""
    rows = []
    for number, view in enumerate(scenarios, 1):
        name = el("a", view.title, href=f"#s-{number}")
        said = [count.text for count in view.counts if count.number and count.name not in ("attempted", "acknowledged")]
        head = el("div", el("span", class_=f"lamp {view.tone}"), name, class_="index-name")
        words = ", ".join([view.word, *said])
        rows.append(el("li", head, el("div", words, class_="muted small")))
    return el("ul", *rows, class_="index")


def _section(view: ScenarioView, number: int, opened: bool) -> Markup:
    head = el(
        "summary",
        el("span", el("span", view.word, class_=f"badge {view.tone}"), class_="badges"),
        el("span", view.title, class_="title"),
    )
    body = el(
        "div",
        el("span", id=f"s-{number}"),
        el("p", ": ".join(filter(None, [view.file, view.setting])), class_="muted"),
        _problem(view),
        _counts(view),
        timeline(view),
        el("div", _claims(view.claims), _faults(view.faults), class_="pair"),
        _causes(view),
        _replay(view),
        _facts(view),
        _acts(view),
    )
    return el("details", head, body, class_="finding scenario", open=opened)


def _problem(view: ScenarioView) -> Markup:
    idle = [f"{fault.text}: {fault.words}" for fault in view.idle_faults]
    lines = [*([view.other_problem] if view.other_problem else []), *(f"not exercised: {text}" for text in idle)]
    return el("div", *(el("div", line) for line in lines), class_="problem") if lines else Markup("")


def _counts(view: ScenarioView) -> Markup:
    if not view.counts:
        return Markup("")
    tiles = [
        el(
            "div",
            el("dt", count.name),
            el("dd", str(count.number), class_=f"{count.tone or 'plain'}-text"),
            class_="tile",
        )
        for count in view.counts
    ]
    said = "; ".join(filter(None, [view.layers_words, view.pace, view.jobs, view.rest]))
    return join([el("dl", *tiles, class_="tiles"), el("p", said, class_="muted")])


def _claims(claims: Iterable[Claim]) -> Markup:
    rows = [
        _signed(claim.tone, claim.text, claim.words.removeprefix(claim.text).removeprefix(": ")) for claim in claims
    ]
    return el("div", el("h3", "Expected"), el("ul", *rows, class_="signs")) if rows else Markup("")


def _faults(faults: Iterable[FaultRow]) -> Markup:
    rows = [
        _signed(fault.tone, fault.text, fault.words + (f", line {fault.line}" if fault.line else ""))
        for fault in faults
    ]
    return el("div", el("h3", "Faults"), el("ul", *rows, class_="signs")) if rows else Markup("")


def _signed(tone: str, text: str, said: str) -> Markup:
    words = el("span", el("strong", text), el("div", said, class_="muted small") if said else "")
    return el("li", el("span", SIGNS[tone], class_=f"sign {tone}"), words)


def _causes(view: ScenarioView) -> Markup:
    causes = view.causes
    if not causes:
        return Markup("")
    rows = [
        el(
            "tr",
            el("td", str(len(cause.cases))),
            el("td", el("span", cause.verdict, class_=f"badge {cause.tone}")),
            el("td", cause.place),
            el("td", *(el("div", phrase) for phrase in cause.broken)),
            el("td", ", ".join(cause.cases[:5]) + (" ..." if len(cause.cases) > 5 else ""), class_="muted"),
        )
        for cause in causes
    ]
    heads = ("cases", "verdict", "laid at", "what", "such as")
    head = el("thead", el("tr", *(el("th", name, scope="col") for name in heads)))
    table = el("div", el("table", head, el("tbody", *rows)), class_="scroll")
    more = f"{plural(view.left_out, 'more case')} not told one by one" if view.left_out else ""
    stories = [_story(cause, number == 0) for number, cause in enumerate(causes) if cause.story]
    return join([el("h3", "Bad cases"), table, el("p", more, class_="muted") if more else "", *stories])


def _story(cause: Cause, opened: bool) -> Markup:
    head = el(
        "summary",
        el("span", cause.verdict, class_=f"badge {cause.tone}"),
        f" the smallest story: {cause.example}",
    )
    return el("details", head, diagram(cause.story, cause.what), class_="told", open=opened)


def _replay(view: ScenarioView) -> Markup:
    if not view.reproduce:
        return Markup("")
    line = el("div", el("code", view.reproduce, class_="command"))
    return el("div", el("strong", "Run it again"), line, class_="replay")


def _facts(view: ScenarioView) -> Markup:
    work = view.table("workload")
    rows: list[tuple[str, str]] = [
        ("Rig", view.text("rig")),
        ("Enqueues", str(work.get("enqueue", ""))),
        ("Settings", view.text("settings")),
        ("Toxics", view.text("engine")),
        ("Versions", ", ".join(f"{name}: {where}" for name, where in view.table("versions").items())),
        *(("Provider", provider.words) for provider in view.providers),
        *(("Note", remark) for remark in view.remarks),
    ]
    return el("dl", *(el("div", el("dt", name), el("dd", value)) for name, value in rows if value))


def _acts(view: ScenarioView) -> Markup:
    """Everything that was done, as a list to read."""
    if not view.acts:
        return Markup("")
    rows = [
        el("tr", el("td", f"{act.at:.2f} s"), el("td", act.text), el("td", act.outcome, class_="muted"))
        for act in sorted(view.acts, key=lambda act: act.at)
    ]
    table = el("div", el("table", el("tbody", *rows)), class_="scroll")
    return el("details", el("summary", f"{plural(len(rows), 'action')}, one by one"), table, class_="told")
