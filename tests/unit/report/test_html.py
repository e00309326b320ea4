"""The HTML report: whole, self-contained, escaped, and open on the first finding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from jobcheck.history.report import Report, StoryLine
from jobcheck.report.diagram import diagram
from jobcheck.report.html import html
from jobcheck.report.markup import el, escape

from . import samples

VOID = {"meta", "br", "hr"}
SAMPLES = ["demo", "green", "unknown", "hostile"]


class Page(HTMLParser):
    """Checks that elements nest, and keeps them with their attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str, class_: str = "") -> Iterator[dict[str, str | None]]:
        return (a for t, a in self.elements if t == tag and class_ in [*(a.get("class") or "").split(), ""])


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_is_well_formed_and_needs_neither_network_nor_scripts(name: str) -> None:
    text = html(getattr(samples, name)())
    page = Page(text)
    tags = {tag for tag, _ in page.elements}
    assert tags <= {
        *("html", "head", "meta", "title", "style", "body", "header", "main", "nav", "section", "div", "p", "span"),
        *("h1", "h2", "details", "summary", "strong", "br", "code", "a", "dl", "dt", "dd", "ul", "ol", "li", "figure"),
        *("figcaption", "svg", "text", "line", "path", "circle", "table", "thead", "tbody", "tr", "th", "td"),
    }
    for _, attributes in page.elements:
        assert not any(key.startswith("on") or key == "src" for key in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in text
    assert "@import" not in text
    assert "$" not in "".join(page.texts)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_link_has_one_target(name: str) -> None:
    page = Page(html(getattr(samples, name)()))
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    links = {(attributes["href"] or "")[1:] for attributes in page.all("a")}
    assert links <= set(ids)


def test_the_first_finding_is_open_and_the_others_are_not() -> None:
    page = Page(html(samples.demo()))
    assert ["open" in attributes for attributes in page.all("details", "finding")] == [True, False, False]


def test_hostile_texts_are_shown_and_not_obeyed() -> None:
    text = html(samples.hostile())
    assert "<img" not in text
    assert "</script" not in text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\ud800-\udfff]", text)
    assert any("<img src=x onerror=alert(1)>" in part for part in Page(text).texts)


def test_the_strip_has_a_cell_for_each_strike_that_tells_message_and_verdict() -> None:
    report = samples.green()
    page = Page(html(report))
    cells = [attributes for attributes in page.all("span", "cell") if attributes.get("title")]
    assert len(cells) == len(report.subjects[0].strikes)
    assert cells[0]["title"] == "kill before payments http POST /charges: ok"


def test_a_finding_shows_both_runs_the_cross_and_the_replay_command() -> None:
    page = Page(html(samples.demo()))
    text = "".join(page.texts)
    assert len(list(page.all("figure", "run"))) == 6
    assert len(list(page.all("path", "kill"))) == 3
    assert "jobcheck replay 5be072" in text
    assert "Struck run" in text
    assert "Clean run" in text


def test_an_empty_report_is_a_page_too() -> None:
    assert "Nothing was found." in "".join(Page(html(Report("jobcheck explore", 1, "ok"))).texts)


def test_a_dead_worker_has_no_lane_after_its_death_and_a_living_one_has() -> None:
    dead = [
        StoryLine("w1", "a", "db", way="out"),
        StoryLine("w1", "killed", "db", "strike"),
        StoryLine("w2", "b", "db", way="out"),
    ]
    lives = [*dead[:2], StoryLine("w1", "goes on after a reset", "db", way="out")]
    assert str(diagram(dead, "x")).count("lane alive") == 3
    assert str(diagram(lives, "x")).count("lane alive") == 3
    last = str(diagram(lives, "x")).split("<li ")[3]
    assert "lane alive" in last


def test_a_strike_of_jobchecks_is_drawn_on_the_worker_that_it_hit() -> None:
    story = [StoryLine("w1", "a", "db", way="out"), StoryLine("jobcheck", "SIGKILL", "db", "strike")]
    text = str(diagram([*story, StoryLine("w2", "b", "db", way="out")], "x"))
    assert ">jobcheck<" not in text
    assert "lane alive" not in text.split("<li ")[3].split("lane alive", 1)[1]
    assert 'class="kill"' in text


def test_lanes_that_nobody_named_draw_nothing_and_do_not_fail() -> None:
    Page(str(diagram([StoryLine("", "", "", kind) for kind in ("message", "strike", "effect", "delivery")], "x")))


def test_attributes_and_children_are_escaped_by_construction() -> None:
    assert el("p", "<b>", title='"', hidden=True, lang=None) == '<p title="&quot;" hidden>&lt;b&gt;</p>'
    assert el("p", el("b", "&")) == "<p><b>&amp;</b></p>"
    assert escape("'") == "&#x27;"
