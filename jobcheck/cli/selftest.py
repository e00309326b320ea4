"""`jobcheck selftest`: bugs are planted, and each must be found at its place; right handlers must not be accused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..config import nearest
from ..errors import EXIT_BROKEN, EXIT_OK, UsageError
from ..events import Bus, Event, ScenarioFinished, SubjectFinished
from .options import Project, reports_option, seed_option

if TYPE_CHECKING:
    from ..report.screen import Screen
    from ..selftest.rounds import Round
    from ..selftest.tally import Tally

ALL = "all"


@click.command("selftest")
@click.argument("handlers", nargs=-1)
@click.option("--rounds", type=click.IntRange(1), default=1, metavar="N", help="How often everything is played.")
@click.option(
    "--mode",
    type=click.Choice(["handler", "queue", "producer", "scenario", ALL]),
    default=ALL,
    help="The job function alone, its queue, what enqueues it, or scenarios in which something around it fails.",
)
@seed_option
@reports_option
def command(handlers: tuple[str, ...], rounds: int, mode: str, seed: int | None, reports: Path | None) -> int:
    """Plant bugs, and demand that each is found.

    Small jobs of a sample app, half of them with one bug each. What must be found, and where, was worked out by hand
    and is written down; whatever differs is a fault of jobcheck. HANDLERS names some of them; all by default.

    Ends with 0 when everything came out as planted in every round, else with 1.
    """
    from ..report.screen import Screen
    from ..seeds import fresh_seed
    from ..selftest.kinds import MODES
    from ..selftest.rounds import NO_CLOCK, clockless, planted_in, play
    from ..selftest.tally import Tally
    from .screens import out

    modes = MODES if mode == ALL else (mode,)
    known = list(dict.fromkeys(planted.name for planted, _ in planted_in(modes)))
    if missing := [name for name in handlers if name not in known]:
        where = "any" if mode == ALL else mode
        raise UsageError(f"no handler {missing[0]!r} is planted in {where} mode", hint=nearest(missing[0], known))
    folder = Project().reports(reports)
    first = fresh_seed() if seed is None else seed
    screen, tally = Screen(out()), Tally()
    for number in range(1, rounds + 1):
        with _Progress(f"round {number} of {rounds}", len(planted_in(modes, handlers))) as bus:
            played = play(number, modes, seed=first + number - 1, reports=folder, bus=bus, only=handlers)
        tally.add(played)
        _tell_round(played, rounds, screen)
    if left := clockless(handlers):
        screen.line(f"  not played: {', '.join(left)}: {NO_CLOCK}")
    _tell_end(tally, screen, first)
    return EXIT_OK if tally.good else EXIT_BROKEN


class _Progress:
    """A line on the terminal that counts the handlers of a round; without a terminal, nothing. A handler that is found
    broken is no bad news here, so the progress of other runs would mislead."""

    def __init__(self, head: str, handlers: int) -> None:
        from .screens import progress

        self._head = head
        self._handlers = handlers
        self._done = 0
        self._status = progress().status(self._words)

    @property
    def _words(self) -> str:
        return f"{self._head}: {self._done} of {self._handlers} handlers"

    def _count(self, event: Event) -> None:
        if isinstance(event, SubjectFinished | ScenarioFinished):
            self._done += 1
            self._status.update(self._words)

    def __enter__(self) -> Bus:
        bus = Bus()
        bus.subscribe(self._count)
        self._status.start()
        return bus

    def __exit__(self, *_: object) -> None:
        self._status.stop()


def _tell_round(played: Round, rounds: int, screen: Screen) -> None:
    """The first round line by line, of the others what differs. The run folder of a bad one is kept, with reports."""
    from rich.text import Text

    from ..report.writer import write_all
    from ..selftest.tally import found_words, round_words
    from .screens import shown

    for item in played.compared:
        if item.good and played.number > 1:
            continue
        head = Text("  ").append_text(screen.mark("ok" if item.good else "lost"))
        head.append(f" {item.planted.kind:5}  {item.planted.name:29}  {item.mode:8}  ")
        screen.hanging(head, found_words(item) if item.good else "; ".join(item.differences))
    if rounds > 1 or played.broke:
        screen.line(round_words(played, rounds))
    if played.good and rounds > 1:
        played.discard()
        return
    for result in played.results:
        screen.whole(f"report  {shown(write_all(result.report, result.folder))}")


def _tell_end(tally: Tally, screen: Screen, seed: int) -> None:
    from rich.text import Text

    for line in tally.deviations():
        screen.hanging(Text("  ").append_text(screen.mark("lost")).append(" "), line)
    head = screen.mark("ok" if tally.good else "lost").append(" ")
    screen.hanging(head, tally.text)
    screen.line(f"  seed {seed}")


__all__ = ["command"]
