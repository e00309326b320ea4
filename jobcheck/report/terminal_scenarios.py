"""Scenarios on a terminal: what each claimed, what was counted, which faults fired, and the smallest story."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table
from rich.text import Text

from jobcheck.history.report import StoryLine

from .scenario_parts import BAD, TRANSPORT, Cause, Count
from .scenario_view import ScenarioView
from .screen import STYLES, Screen
from .text import plural

COLOURS = {**STYLES, TRANSPORT: "yellow", "": ""}
CAUSES = 6
"""Causes that a terminal shows; the HTML report has all."""
LABEL = 11
"""Columns of the words on the left."""

Messages = Callable[[Sequence[StoryLine], Screen], None]
"""Shows a story, as findings show theirs."""


def overview(scenarios: Sequence[ScenarioView], screen: Screen) -> None:
    """A line for each scenario."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("", width=1)
    table.add_column("scenario", overflow="fold", ratio=1)
    for name in ("attempted", "ok", "lost", "duplicated"):
        table.add_column(name, justify="right")
    table.add_column("verdict", overflow="fold")
    for view in scenarios:
        counts = {count.name: count for count in view.counts}
        cells = [_number(counts.get(name)) for name in ("attempted", "ok", "lost", "duplicated")]
        mark, word = Text(screen.symbol(view.tone), COLOURS[view.tone]), Text(view.word, COLOURS[view.tone])
        table.add_row(mark, screen.safe(view.title), *cells, word)
    screen.line()
    screen.console.print(table)


def _number(count: Count | None) -> Text:
    return Text("-", "dim") if count is None else Text(str(count.number), COLOURS[count.tone])


def scenario(view: ScenarioView, screen: Screen, number: str, messages: Messages) -> None:
    """One scenario whole."""
    screen.line()
    line = screen.symbol("line")
    head = f" {line} ".join(filter(None, [number, view.word]))
    screen.line(Text(f"{line * 2} {head} ", "dim").append(line * max(0, screen.width - len(head) - 4)))
    screen.hanging(Text(f"{screen.symbol(view.tone)} ", COLOURS[view.tone]), view.title, COLOURS[view.tone])
    screen.hanging(Text("  "), ": ".join(filter(None, [view.file, view.setting])), "dim")
    screen.line()
    _counts(view, screen)
    _claims(view, screen)
    _faults(view, screen)
    for place, provider in enumerate(view.providers):
        screen.hanging(_label("" if place else "calls"), provider.words)
    if view.other_problem:
        screen.hanging(_label("unknown"), view.other_problem, STYLES["unsure"])
    _broken(view, screen, messages)
    screen.line()
    screen.line(Text("  to run it again:", "dim"))
    screen.whole(Text(screen.safe(view.reproduce), "bold"))


def _label(name: str) -> Text:
    return Text(f"  {name:<{LABEL - 2}}", "dim")


def _counts(view: ScenarioView, screen: Screen) -> None:
    if not view.counts:
        return
    words = Text(", ").join(Text(count.text, COLOURS[count.tone]) for count in view.counts)
    for place, part in enumerate(words.wrap(screen.console, max(20, screen.width - LABEL))):
        part.rstrip()
        screen.line(_label("" if place else "counts").append_text(part))
    if view.layers_words:
        screen.hanging(_label(""), f"{view.layers_words}", "dim")
    screen.hanging(_label("load"), "; ".join(filter(None, [view.pace, view.jobs, view.rest])))


def _claims(view: ScenarioView, screen: Screen) -> None:
    for place, claim in enumerate(view.claims):
        mark = Text(f"{screen.symbol(claim.tone)} ", COLOURS[claim.tone])
        screen.hanging(_label("" if place else "expect").append_text(mark), claim.words)


def _faults(view: ScenarioView, screen: Screen) -> None:
    for place, fault in enumerate(view.faults):
        mark = Text(f"{screen.symbol(fault.tone)} ", COLOURS[fault.tone])
        style = "" if fault.met else COLOURS[fault.tone]
        screen.hanging(_label("" if place else "faults").append_text(mark), f"{fault.text}: {fault.words}", style)


def _broken(view: ScenarioView, screen: Screen, messages: Messages) -> None:
    """The failing table, and the smallest story of the worst cause."""
    causes = view.causes
    if causes:
        screen.line()
        screen.console.print(_table(causes[:CAUSES], screen))
    rest = [f"{plural(len(causes) - CAUSES, 'more cause')}" if len(causes) > CAUSES else ""]
    rest.append(f"{plural(view.left_out, 'more case')} not told one by one" if view.left_out else "")
    if any(rest):
        screen.hanging(Text("  "), f"and {', '.join(filter(None, rest))}", "dim")
    told = next((cause for cause in causes if cause.story), None)
    if told is not None and (told.tone == BAD or view.tone == BAD):
        screen.line()
        screen.hanging(Text("  "), f"{told.verdict}, the smallest story: {told.example}", "dim")
        messages(told.story, screen)


def _table(causes: Sequence[Cause], screen: Screen) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("  cases", justify="right")
    for name in ("verdict", "laid at"):
        table.add_column(name, overflow="fold")
    table.add_column("what", overflow="fold", ratio=1)
    for cause in causes:
        style = COLOURS[cause.tone]
        verdict = Text(screen.safe(cause.verdict), style)
        table.add_row(f"  {len(cause.cases)}", verdict, screen.safe(cause.place), screen.safe(cause.what))
    return table
