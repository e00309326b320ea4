"""The strip: the points of a job in their order, a cell for each strike, coloured by its verdict."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby

from jobcheck.history.report import StrikeReport, SubjectReport

from .junit import strike_name
from .markup import Markup, el, join
from .text import tone

_GLYPHS = {
    "ok": "✓",
    "duplicated": "2×",
    "lost": "0",
    "partial": "½",
    "unexpected": "!",
    "misfiled": "≠",
    "endless": "∞",
    "failed visibly": "†",
    "hung": "…",
}
"""A sign in each cell, so that colour is not the only one."""


def strip(subject: SubjectReport, lit: Collection[str] = ()) -> Markup:
    """All strikes of a subject as cells, those of one point close together. `lit`: only these are in full colour."""
    points = subject.struck
    findings = {strike: finding.id for finding in subject.findings for strike in finding.strikes}
    groups = []
    for _, group in groupby(subject.strikes, key=lambda strike: strike.point):
        cells = []
        for strike in group:
            said = f"{strike_name(strike, points.get(strike.point))}: {_said(strike)}"
            kind = f"cell {_colour(strike)}" + (" dim" if lit and strike.id not in lit else "")
            glyph = _GLYPHS.get(strike.verdict, "?")
            finding = findings.get(strike.id)
            if finding:
                cells.append(el("a", glyph, class_=kind, title=said, aria_label=said, href=f"#f-{finding}"))
            else:
                cells.append(el("span", glyph, class_=kind, title=said, aria_label=said, role="img"))
        groups.append(el("span", *cells, class_="point"))
    return el("div", *groups, class_="strip")


def strikes_table(subject: SubjectReport) -> Markup:
    """Every strike of a subject with its verdict, for those who want to read and not to hover."""
    points = subject.struck
    findings = {strike: finding.id for finding in subject.findings for strike in finding.strikes}
    rows = []
    for strike in subject.strikes:
        point = points.get(strike.point)
        finding = findings.get(strike.id)
        link = el("a", finding, href=f"#f-{finding}") if finding else Markup("")
        verdict = el("span", strike.verdict, class_=f"badge {_colour(strike)}")
        where = join([strike_name(strike, point), el("div", point.code, class_="muted")]) if point else strike.point
        layer = f" {strike.layer}" if strike.layer else ""
        said = join([verdict, layer, el("div", "; ".join(strike.effects), class_="muted")])
        again = "yes" if strike.redelivered else "no"
        took = f"{strike.seconds:.2f} s"
        cells = (el("code", strike.id), where, said, again, took, link)
        rows.append(el("tr", *(el("td", cell) for cell in cells)))
    heads = ("strike", "where", "verdict", "redelivered", "took", "finding")
    head = el("thead", el("tr", *(el("th", name, scope="col") for name in heads)))
    return el("div", el("table", head, el("tbody", *rows)), class_="scroll")


def _colour(strike: StrikeReport) -> str:
    kind = tone(strike.verdict)
    return "transport" if kind == "bad" and strike.layer == "transport" else kind


def _said(strike: StrikeReport) -> str:
    facts = [strike.verdict]
    if strike.layer:
        facts.append(f"laid at the {strike.layer}")
    facts.extend(strike.effects)
    return "; ".join(facts)
