"""`jobcheck selftest`: bugs are planted, and each must be found at its place; right handlers must not be accused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import EXIT_BROKEN, EXIT_OK, UsageError
from .options import Project, reports_option, seed_option

if TYPE_CHECKING:
    from ..report.screen import Screen
    from ..selftest.rounds import Round
    from ..selftest.tally import Tally

BOTH = "both"


@click.command("selftest")
@click.argument("handlers", nargs=-1)
@click.option("--rounds", type=click.IntRange(1), default=1, metavar="N", help="How often everything is played.")
@click.option(
    "--mode", type=click.Choice(["handler", "queue", BOTH]), default=BOTH, help="The job function alone, or its queue."
)
@seed_option
@reports_option
def command(handlers: tuple[str, ...], rounds: int, mode: str, seed: int | None, reports: Path | None) -> int:
    """Plant bugs, and demand that each is found.

    Small jobs of a sample app, half of them with one bug each. What must be found, and where, was worked out by hand
    and is written down; whatever differs is a fault of jobcheck. HANDLERS names some of them; all by default.

    Ends with 0 when everything came out as planted in every round, else with 1.
    """
    from ..events import Bus
    from ..report.screen import Screen
    from ..report.terminal import Progress
    from ..seeds import fresh_seed
    from ..selftest.planted import MODES
    from ..selftest.rounds import planted_in, play
    from ..selftest.tally import Tally
    from .screens import out, progress

    modes = MODES if mode == BOTH else (mode,)
    if missing := set(handlers) - {planted.name for planted, _ in planted_in(modes)}:
        known = ", ".join(dict.fromkeys(planted.name for planted, _ in planted_in(modes)))
        raise UsageError(f"no handler {', '.join(sorted(missing))} is planted for this mode", hint=known)
    first = fresh_seed() if seed is None else seed
    screen, tally = Screen(out()), Tally()
    for number in range(1, rounds + 1):
        bus = Bus()
        with Progress(bus, progress()):
            played = play(
                number, modes, seed=first + number - 1, reports=Project().reports(reports), bus=bus, only=handlers
            )
        tally.add(played)
        _tell_round(played, rounds, screen)
    _tell_end(tally, screen, first)
    return EXIT_OK if tally.good else EXIT_BROKEN


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
        head.append(f" {item.planted.kind:5}  {item.planted.name:29}  {item.mode:7}  ")
        screen.hanging(head, found_words(item) if item.good else "; ".join(item.differences))
    if rounds > 1 or played.broke:
        screen.line(round_words(played, rounds))
    if played.result is None:
        return
    if played.good and rounds > 1:
        played.discard()
        return
    path = write_all(played.result.report, played.result.folder)
    screen.whole(f"report  {shown(path)}")


def _tell_end(tally: Tally, screen: Screen, seed: int) -> None:
    from rich.text import Text

    from ..selftest.tally import left_out_words

    for line in left_out_words():
        screen.hanging(Text("  - not planted  "), line, "dim")
    for line in tally.deviations():
        screen.hanging(Text("  ").append_text(screen.mark("lost")).append(" "), line)
    head = screen.mark("ok" if tally.good else "lost").append(" ")
    screen.hanging(head, tally.text)
    screen.line(f"  seed {seed}")


__all__ = ["command"]
