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
        return f"{payload.task.rpartition('.')[2]}({payload.content_type})"
    parts = [repr(value) for value in payload.args]
    parts += [f"{name}={value!r}" for name, value in (payload.kwargs or {}).items()]
    text = f"{payload.task.rpartition('.')[2]}({', '.join(parts)})"
    return text if len(text) <= 80 else text[:77] + "..."


def tell_checked(checked: Checked, screen: Screen) -> None:
    """The table, then each failure with its reason and an advice."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("task", overflow="fold")
    table.add_column("old payload -> new worker")
    table.add_column("new payload -> old worker")
    table.add_column("difference", overflow="fold")
    for row in checked.rows:
        differences = Text(screen.safe("; ".join(row.differences)))
        table.add_row(Text(screen.safe(row.task)), _cell(row.forward, screen), _cell(row.backward, screen), differences)
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
