"""`jobcheck judge RUN`: the stored histories of a run, judged again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import EXIT_BROKEN, EXIT_OK
from .options import Project, fail_on_option

if TYPE_CHECKING:
    from rich.console import Console

    from ..runner.judging import Judged


@click.command("judge")
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option("--expect", multiple=True, metavar="CONTRACT", help="Contracts in place of the stored ones; may repeat.")
@fail_on_option
def command(run: Path | None, expect: tuple[str, ...], **options: object) -> int:
    """Judge a stored run again, without running anything.

    RUN is a run folder; the latest one by default. Says what is different from the stored verdicts, and ends with the
    exit code of the new ones. With --expect other contracts are tried on the same histories.
    """
    from ..runner.expectations import read_contract
    from ..runner.judging import exit_code_of_judged, rejudge
    from .screens import out

    project = Project(**options)
    path = run if run is not None else project.reports(None) / "latest"
    judged = rejudge(path, tuple(read_contract(text, "--expect") for text in expect))
    console = out()
    for item in judged:
        _tell(item, console, exit_code_of_judged([item], project.settings.fail_on))
    return exit_code_of_judged(judged, project.settings.fail_on)


def _tell(judged: Judged, console: Console, code: int) -> None:
    from ..report.junit import strike_name
    from ..report.screen import Screen
    from ..report.text import count_words, label, plural, verdict_counts

    screen = Screen(console)
    head = label(judged.subject)
    if judged.problem:
        screen.whole(f"{screen.symbol('unsure')} {head}: not judged: {screen.safe(judged.problem)}")
        return
    counts = count_words(verdict_counts(judged.strikes))
    changes = judged.changed
    said = f"{plural(len(changes), 'verdict')} changed" if changes else "as stored"
    mark = {EXIT_OK: "good", EXIT_BROKEN: "bad"}.get(code, "unsure")
    screen.whole(f"{screen.symbol(mark)} {head}: {plural(len(judged.strikes), 'strike')}: {counts}; {said}")
    points = judged.subject.struck
    for old, new in changes:
        what = f" ({'; '.join(new.effects)})" if new.effects else ""
        line = f"    {strike_name(new, points.get(new.point))}: {old.verdict}, now {new.verdict}{what}"
        screen.whole(screen.safe(line))
