"""The time axis of a scenario: jobs over time, a band for each fault that lasts, a mark for each that takes a moment.

Every row is a label and a drawing as wide as the page; positions are shares of the width, so that it needs no script.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .markup import Markup, el, join
from .scenario_parts import NEVER_REACHED, Act, FaultRow
from .scenario_view import ScenarioView
from .text import plural

CURVE = 96
"""Height of the curve, in pixels."""
ROW = 26
MARKS = 150
"""Marks that one row shows; of more, every second, third ... is left out."""
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)


@dataclass(frozen=True, slots=True)
class Axis:
    """Seconds from 0 to `end` over the whole width."""

    end: float

    def x(self, at: float) -> str:
        return f"{min(100.0, max(0.0, 100 * at / self.end)):.2f}%"

    def width(self, begin: float, end: float) -> str:
        """At least as wide as the eye sees."""
        return f"{max(0.3, 100 * (min(end, self.end) - max(0.0, begin)) / self.end):.2f}%"

    @property
    def ticks(self) -> list[float]:
        """At most eight round numbers."""
        step = next((step for step in _STEPS if self.end / step <= 7), self.end)
        return [round(number * step, 3) for number in range(int(self.end / step + 1e-9) + 1)]


def timeline(view: ScenarioView) -> Markup:
    """The whole drawing; empty for a scenario that never ran."""
    end = view.number("seconds") or 0.0
    if end <= 0:
        return Markup("")
    axis = Axis(end)
    rows = [_row("jobs", _legend(), _curve(view, axis), "curve")]
    for fault in view.faults:
        kind = "" if fault.met else " idle"
        rows.append(_row(fault.text, fault.words, _fault(fault, axis, end), f"fault {fault.kind}{kind}"))
    if bad := list(_bad(view, axis)):
        rows.append(_row("bad cases", "the last that was seen of them", bad, "cases"))
    rows.append(_row("", "", _ticks(axis), "axis"))
    return el("div", *rows, class_="timeline", role="img", aria_label=_aloud(view))


def _aloud(view: ScenarioView) -> str:
    """The drawing in words; the tables beside it say the rest."""
    return f"time axis of {view.title}: {plural(len(view.faults), 'fault')} over {view.number('seconds') or 0:.1f} s"


def _row(name: str, said: str, shapes: Sequence[Markup], kind: str) -> Markup:
    height = CURVE if kind == "curve" else ROW
    label = el("div", el("span", name, class_="lane-name"), el("span", said, class_="muted small"), class_="lane-label")
    return el("div", label, el("svg", *shapes, width="100%", height=height), class_=f"lane-row {kind}")


def _legend() -> str:
    return "light: handed out, dark: ended"


def _curve(view: ScenarioView, axis: Axis) -> list[Markup]:
    """Jobs that were seen and jobs that ended, with the bands of what lasted behind them."""
    shapes = [
        el(
            "rect",
            _title(fault.text),
            x=axis.x(begin),
            y=0,
            width=axis.width(begin, end or axis.end),
            height=CURVE,
            class_=f"band {fault.kind}",
        )
        for fault in view.faults
        for begin, end in fault.spells
    ]
    moments = _moments(view)
    most = max((max(jobs, ended) for _, jobs, ended in moments), default=0) or 1
    paths = [
        el("path", d=_area([(at, values[number]) for at, *values in moments], axis, most), class_=kind)
        for number, kind in ((0, "jobs-area"), (1, "ended-area"))
    ]
    shapes.append(el("svg", *paths, viewBox="0 0 1000 100", preserveAspectRatio="none", width="100%", height=CURVE))
    shapes += [*_phases(view, axis, CURVE), el("text", f"{most:g}", x=4, y=13, class_="most")]
    return shapes


def _moments(view: ScenarioView) -> list[tuple[float, float, float]]:
    """Second, jobs seen, jobs ended; from the start to what the report says of the end."""
    series, jobs = view.table("series"), view.table("jobs")
    columns = [series.get(name) for name in ("at", "jobs", "ended")]
    known = [column if isinstance(column, list | tuple) else [] for column in columns]
    rows = [
        (float(at), float(seen), float(ended))
        for at, seen, ended in zip(*known, strict=False)
        if all(isinstance(item, int | float) and math.isfinite(item) for item in (at, seen, ended))
    ]
    last = [float(value) if isinstance(value := jobs.get(name), int) else 0.0 for name in ("seen", "ended")]
    return [(0.0, 0.0, 0.0), *sorted(rows), (view.number("seconds") or 0.0, last[0], last[1])]


def _area(points: Sequence[tuple[float, float]], axis: Axis, most: float) -> str:
    line = "L".join(f"{1000 * min(1.0, at / axis.end):.1f} {100 - 92 * value / most:.1f}" for at, value in points)
    return f"M0 100L{line}L1000 100Z"


def _phases(view: ScenarioView, axis: Axis, height: int) -> Iterator[Markup]:
    """When the last case was put in, and when everything was healed."""
    work, healed = view.table("workload").get("seconds"), view.number("healed_at")
    for at, said in ((work, "the last case was put in"), (healed, "all faults ended, all workers started")):
        if isinstance(at, int | float) and at:
            line = el("line", x1=axis.x(at), x2=axis.x(at), y1=0, y2=height, class_="phase")
            yield el("g", _title(f"{at:.1f} s: {said}"), line)


def _fault(fault: FaultRow, axis: Axis, end: float) -> list[Markup]:
    """A bar where it lasts, a mark where it takes a moment."""
    spells = fault.spells
    if spells:
        return [
            el(
                "rect",
                _title(f"{begin:.1f} s to {stop or end:.1f} s: {fault.text}{_came(fault)}"),
                x=axis.x(begin),
                y=5,
                width=axis.width(begin, stop or end),
                height=ROW - 10,
                rx=3,
                class_="bar",
            )
            for begin, stop in spells
        ]
    acts = [act for act in fault.acts if act.outcome != NEVER_REACHED and not act.failed]
    return [_mark(fault, act, axis) for act in acts[:: -(-len(acts) // MARKS) or 1]]


def _came(fault: FaultRow) -> str:
    outcomes = [act.outcome for act in fault.acts if act.outcome]
    return f": {outcomes[-1]}" if outcomes else ""


def _mark(fault: FaultRow, act: Act, axis: Axis) -> Markup:
    """A cross for a kill, a double ring for a copy, a dot for anything else. A shape of its own, as it can not be
    moved by a share of the width otherwise."""
    said = _title(f"{act.at:.2f} s: {act.text}" + (f": {act.outcome}" if act.outcome else ""))
    kind = "mark-act" if act.met or fault.kind == "duplicate" else "mark-act vain"
    if fault.kind == "kill":
        shape = el("path", d="M-5 -5L5 5M5 -5L-5 5", class_="cross")
    elif fault.kind == "duplicate":
        shape = join([el("circle", cx=-2, cy=0, r=4, class_="ring"), el("circle", cx=2, cy=0, r=4, class_="ring")])
    else:
        shape = el("circle", cx=0, cy=0, r=4, class_="spot")
    return el("svg", said, shape, x=axis.x(act.at), y=ROW // 2, overflow="visible", class_=kind)


def _bad(view: ScenarioView, axis: Axis) -> Iterator[Markup]:
    """A diamond for each bad case that is told in full, where it was last seen."""
    for row in view.rows("bad")[:MARKS]:
        times = [item.get("at") for key in ("effects", "story") for item in _maps(row.get(key))]
        seen = [at for at in times if isinstance(at, int | float)]
        if not seen:
            continue
        verdict, layer = str(row.get("verdict", "")), str(row.get("layer") or "")
        tone = "bad" if layer in ("handler", "settings") else "transport" if layer == "transport" else "unsure"
        said = f"{max(seen):.2f} s: {row.get('case', '')} {verdict}" + (f", laid at the {layer}" if layer else "")
        shape = el("path", d="M0 -6L6 0L0 6L-6 0Z", class_=f"diamond {tone}-mark")
        yield el("svg", _title(said), shape, x=axis.x(max(seen)), y=ROW // 2, overflow="visible")


def _maps(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list | tuple) else []


def _ticks(axis: Axis) -> list[Markup]:
    shapes = []
    for number, at in enumerate(axis.ticks):
        shapes.append(el("line", x1=axis.x(at), x2=axis.x(at), y1=0, y2=5, class_="tick"))
        late = at / axis.end > 0.96
        anchor = "start" if not number else "end" if late else "middle"
        shapes.append(el("text", f"{at:g} s", x=axis.x(at), y=18, text_anchor=anchor, class_="tick-text"))
    return shapes


def _title(text: str) -> Markup:
    """What a browser shows when the pointer rests on the shape."""
    return el("title", text)
