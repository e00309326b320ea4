"""The story of a run as a spacetime diagram: one lane for each worker and upstream, time downwards, a row per line.

Each row is a slice of SVG beside its text. Lanes are drawn over the whole height of their row, so that a text may wrap
and the diagram stays whole; the text can be read aloud, searched and copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobcheck.history.report import StoryLine

from .markup import Markup, el, join
from .stories import again

STEP = 28
"""Pixels between two lanes."""
MARGIN = 14
MIDDLE = 13
"""Pixels from the top of a row to its arrow: the middle of its first line of text."""
_NAMES = 64
"""Height of the slanted lane names."""


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Where the lanes are, and in which rows a worker is alive."""

    names: tuple[str, ...]
    workers: frozenset[str]
    born: dict[str, int]
    died: dict[str, int]

    def x(self, name: str) -> int | None:
        return MARGIN + STEP * self.names.index(name) if name in self.names else None

    @property
    def width(self) -> int:
        return MARGIN * 2 + STEP * max(0, len(self.names) - 1)


def diagram(story: Sequence[StoryLine], title: str) -> Markup:
    """The whole story, headed by the names of its lanes."""
    story = _struck(story)
    lanes = _lanes(story)
    rows = []
    code = ""
    times = again(story)
    for number, line in enumerate(story):
        # A line of code is named where it begins to speak, not again at each of its messages.
        told = line.kind != "strike" and (line.code == code or line.way == "in")
        rows.append(_row(lanes, number, line, "" if told else line.code, times.get(number, "")))
        code = "" if line.kind in ("strike", "recovery") else line.code or code
    # The last name leans out of its lane to the right.
    width = lanes.width + 48
    names = [_name(lanes, name) for name in lanes.names]
    head = el("svg", *names, class_="names", width=width, height=_NAMES, aria_hidden="true")
    return el("figure", el("figcaption", title), head, el("ol", *rows, class_="story"), class_="run")


def _struck(story: Sequence[StoryLine]) -> list[StoryLine]:
    """The story with each strike on the lane that it hit: where jobcheck struck, the last that spoke or was given."""
    out: list[StoryLine] = []
    last = ""
    for line in story:
        if line.kind in ("message", "delivery"):
            last = line.lane
        hit = line.kind == "strike" and line.lane in ("", "jobcheck") and last
        out.append(replace(line, lane=last) if hit else line)
    return out


def _lanes(story: Sequence[StoryLine]) -> _Lanes:
    workers: dict[str, None] = {}
    upstreams: dict[str, None] = {}
    born: dict[str, int] = {}
    died: dict[str, int] = {}
    for number, line in enumerate(story):
        if line.upstream and line.kind != "recovery":
            upstreams.setdefault(line.upstream)
        if line.lane and line.kind in ("message", "delivery", "strike"):
            workers.setdefault(line.lane)
            born.setdefault(line.lane, number)
        if line.kind == "strike":
            died.setdefault(line.lane, number)
    # A worker that speaks after its strike was not killed (a reset, a SIGSTOP): its lane goes on.
    for number, line in enumerate(story):
        if line.kind in ("message", "delivery") and number > died.get(line.lane, number):
            died.pop(line.lane)
    names = (*workers, *(name for name in upstreams if name not in workers))
    return _Lanes(names, frozenset(workers), born, died)


def _name(lanes: _Lanes, name: str) -> Markup:
    x, y = lanes.x(name) or 0, _NAMES - 6
    shown = name if len(name) <= 12 else f"{name[:11]}…"
    kind = "worker" if name in lanes.workers else "upstream"
    return el("text", shown, x=x + 3, y=y, transform=f"rotate(-52 {x + 3} {y})", class_=f"name {kind}")


def _row(lanes: _Lanes, number: int, line: StoryLine, code: str, times: str) -> Markup:
    shapes = [_lane(lanes, name, number) for name in lanes.names]
    shapes.append(_drawn(lanes, line))
    picture = el("svg", *shapes, width=lanes.width, height="100%", aria_hidden="true")
    kind = line.kind if line.kind in ("message", "strike", "recovery", "delivery", "effect") else "note"
    words = [_who(line), el("span", line.text, class_="what")]
    if code:
        words.append(el("span", f" {code}", class_="code"))
    if times:
        words.append(el("span", f" {times}", class_="times"))
    body = el("div", *words, class_="text", title=f"at {line.at * 1000:.1f} ms")
    return el("li", el("div", picture, class_="lanes", style=f"width:{lanes.width}px"), body, class_=f"row {kind}")


def _who(line: StoryLine) -> Markup:
    """Between whom it went. The worker's own name is for those who hear the page; others see its lane."""
    worker = el("span", f"{line.lane} ", class_="heard") if line.lane else Markup("")
    other = line.upstream or line.lane
    if line.kind == "message":
        return join([worker, el("span", f"{'←' if line.way == 'in' else '→'} {other} ", class_="who")])
    if line.kind == "delivery":
        return el("span", f"to {line.lane} ", class_="who")
    if line.kind == "effect":
        return el("span", "effect " if line.text.startswith(other) else f"effect at {other} ", class_="who")
    return Markup("")


def _lane(lanes: _Lanes, name: str, number: int) -> Markup:
    """One lane's line in this row: from top to bottom for an upstream, from birth to death for a worker."""
    x = lanes.x(name)
    if name not in lanes.workers:
        return el("line", x1=x, x2=x, y1=0, y2="100%", class_="lane")
    first, last = lanes.born.get(name, 0), lanes.died.get(name)
    if number < first or (last is not None and number > last):
        return Markup("")
    top, bottom = MIDDLE if number == first else 0, MIDDLE if number == last else "100%"
    return el("line", x1=x, x2=x, y1=top, y2=bottom, class_="lane alive")


def _drawn(lanes: _Lanes, line: StoryLine) -> Markup:
    here, there = lanes.x(line.lane), lanes.x(line.upstream)
    if line.kind == "message" and here is not None and there is not None:
        return _arrow(there, here, "reply") if line.way == "in" else _arrow(here, there, "request")
    if line.kind == "delivery" and here is not None:
        return _arrow(here if there is None else there, here, "delivery")
    if line.kind == "strike" and here is not None:
        reach = [] if there is None else [el("line", x1=here, x2=there, y1=MIDDLE, y2=MIDDLE, class_="cut")]
        arms = f"M{here - 6} {MIDDLE - 6}l12 12m0 -12l-12 12"
        return join([*reach, el("path", d=arms, class_="kill")])
    if line.kind == "recovery":
        across = el("line", x1=4, x2=lanes.width - 4, y1=MIDDLE, y2=MIDDLE, class_="heal")
        return join([across, el("circle", cx=4, cy=MIDDLE, r=3, class_="heal-dot")])
    if line.kind == "effect":
        x = there if there is not None else here
        return el("path", d=f"M{x} {MIDDLE - 6}l6 6l-6 6l-6 -6z", class_="mark") if x is not None else Markup("")
    return Markup("")


def _arrow(start: int, end: int, kind: str) -> Markup:
    """A line with a head. Start and end in one lane (a lane that is both) are a dot."""
    if start == end:
        return el("circle", cx=start, cy=MIDDLE, r=3, class_=f"dot {kind}")
    back = -5 if end > start else 5
    head = f"M{end + back} {MIDDLE - 4}L{end} {MIDDLE}L{end + back} {MIDDLE + 4}"
    shaft = el("line", x1=start, x2=end, y1=MIDDLE, y2=MIDDLE, class_=f"arrow {kind}")
    return join([shaft, el("path", d=head, class_=f"head {kind}")])
