"""What `jobcheck payloads` prints: what was recorded, and a table of tasks by direction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from ..report.screen import STYLES, Screen
from ..report.text import plural
from .screens import shown

if TYPE_CHECKING:
    from ..payloads.facade import Answer, Checked, Concern, Payload, Recorded, Row

TONES = {"ok": "good", "broken": "bad", "lost": "bad", "unknown": "unsure"}
ORDER = ("ok", "lost", "broken", "unknown")


def tell_recorded(recorded: Recorded, screen: Screen) -> None:
    """The files by task, what could not be recorded, and what speaks against the payloads."""
    screen.line()
    for kept in recorded.kept:
        how = "recorded" if kept.fresh else "kept as it was"
        screen.whole(f"{screen.symbol('good')} {shown(kept.path)}  {screen.safe(_call(kept.payload))}  {how}")
        if kept.payload.unfit:
            screen.hanging(Text("    "), f"cannot be sent again: {kept.payload.unfit}", STYLES["unsure"])
    for recording in recorded.recordings:
        for text in filter(None, (recording.problem, *recording.notes)):
            screen.hanging(Text(f"{screen.symbol('note')} "), f"{recording.function}: {text}")
    _tell_concerns(recorded.concerns, screen)
    screen.line()
    fresh = sum(kept.fresh for kept in recorded.kept)
    words = f"version {recorded.version}: {plural(len(recorded.kept), 'payload')}, {fresh} new"
    screen.whole(screen.safe(f"{words}, in {recorded.seconds:.1f} s"))


def _call(payload: Payload) -> str:
    """`charge_card(700001, notify=True)`, at most 80 characters."""
    if payload.args is None:
        return f"{_end(payload.task)}({payload.content_type})"
    parts = [repr(value) for value in payload.args]
    parts += [f"{name}={value!r}" for name, value in (payload.kwargs or {}).items()]
    text = f"{_end(payload.task)}({', '.join(parts)})"
    return text if len(text) <= 80 else text[:77] + "..."


def tell_checked(checked: Checked, screen: Screen) -> None:
    """The table, then each failure with its reason and an advice."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("\ntask", overflow="fold")
    table.add_column("old payload,\nnew worker", no_wrap=True)
    table.add_column("new payload,\nold worker", no_wrap=True)
    table.add_column("\ndifference", overflow="fold")
    names = _short_names(checked.rows)
    for row in checked.rows:
        differences = "; ".join(row.differences)
        if row.renamed:
            differences = differences.replace(row.renamed, names.get(row.renamed, row.renamed))
        cells = _cell(row.forward, screen), _cell(row.backward, screen)
        table.add_row(Text(screen.safe(names[row.task])), *cells, Text(screen.safe(differences)))
    screen.line()
    screen.console.print(table)
    for row in checked.rows:
        _tell_row(row, screen)
    for note in checked.notes:
        screen.line()
        screen.hanging(Text(f"{screen.symbol('note')} "), note)
    _tell_concerns(checked.concerns, screen)
    screen.line()
    counts = Counter(str(answer.judgement.verdict) for row in checked.rows for answer in row.answers)
    words = ", ".join(f"{counts[word]} {word}" for word in ORDER if counts[word])
    replays = plural(sum(counts.values()), "replay")
    screen.whole(screen.safe(f"old {checked.old}, new {checked.new}: {replays}: {words}"))
    screen.whole(screen.safe(f"{checked.seconds:.1f} s, {checked.boot:.1f} s of it to boot; {shown(checked.folder)}"))


def _short_names(rows: Iterable[Row]) -> dict[str, str]:
    """The last part of each task's name, or all of it where two of them would be the same."""
    tasks = [row.task for row in rows]
    ends = Counter(map(_end, tasks))
    return {task: _end(task) if ends[_end(task)] == 1 else task for task in tasks}


def _end(task: str) -> str:
    return task.rpartition(".")[2]


def _cell(answers: Iterable[Answer], screen: Screen) -> Text:
    from ..payloads.facade import verdict_of

    verdict = verdict_of(tuple(answers))
    if verdict is None:
        return Text("-")
    return Text(f"{screen.symbol(TONES[verdict])} {verdict}", STYLES[TONES[verdict]])


def _tell_row(row: Row, screen: Screen) -> None:
    """Every different failure of the task, once."""
    seen = set()
    for direction, answers in (("old payload -> new worker", row.forward), ("new payload -> old worker", row.backward)):
        for answer in answers:
            judgement = answer.judgement
            if judgement.verdict == "ok" or (direction, judgement.reason) in seen:
                continue
            seen.add((direction, judgement.reason))
            screen.line()
            head = f"{row.task}, {direction}: {judgement.verdict}"
            screen.line(Text(screen.safe(head), STYLES[TONES[judgement.verdict]]))
            where = f" ({judgement.line})" if judgement.line else ""
            screen.hanging(Text("  "), judgement.reason + where)
            if answer.advice:
                screen.hanging(Text("  do: "), answer.advice)


def _tell_concerns(concerns: Iterable[tuple[Payload, Concern]], screen: Screen) -> None:
    told = list(concerns)
    if not told:
        return
    screen.line()
    screen.line("payloads should carry ids, not records (rule 2, a warning):")
    for payload, concern in told:
        head = Text(f"  {screen.symbol('note')} ")
        screen.hanging(head, f"{payload.task} {concern.where}: {concern.kind}: {concern.evidence}", STYLES["unsure"])
