"""`jobcheck probe`: one clean job of the user's app, and everything that was seen of it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import EXIT_OK, EXIT_UNKNOWN
from .explore import jobs_of
from .options import Project, command_line, job_options, opened_rig, reports_option, seed_option

if TYPE_CHECKING:
    from rich.text import Text

    from ..report.screen import Screen
    from ..runner.facade import Request
    from ..runner.probing import Probe


@click.command("probe")
@click.argument("function", required=False)
@job_options
@seed_option
@reports_option
def command(
    function: str | None,
    rig: str | None,
    handler: str | None,
    case: str | None,
    reports: Path | None,
    **options: object,
) -> int:
    """Run one clean job and show what was seen of it.

    The hosts that it talks to, the variables that the app reads and the lines that read them, the points that
    `jobcheck explore` would strike with their code lines, the effects, and the contracts to paste. Nothing is broken.

    \b
      jobcheck probe new_invoice --rig tests/rig.py:shop
    """
    from ..report.screen import Screen
    from ..runner.facade import Request
    from .screens import out

    project = Project(rig=rig, **options)
    settings = project.settings
    loaded, reference = opened_rig(project, rig)
    request = Request(
        command=command_line(),
        rig=loaded,
        rig_reference=reference,
        jobs=jobs_of(loaded, function, handler, case, (), settings.assume)[:1],
        seed=settings.seed or 0,
        reports=project.reports(reports),
        boot=settings.boot,
    )
    found = _carried_out(request)
    _tell(found, function or f"--handler {handler} --case {case}", Screen(out()))
    return EXIT_UNKNOWN if found.problem or found.foreign else EXIT_OK


def _carried_out(request: Request) -> Probe:
    from ..events import Bus
    from ..report.terminal import Progress
    from ..runner.facade import run
    from ..runner.probing import probe
    from .screens import progress

    bus = Bus()
    with Progress(bus, progress()):
        return run(lambda: probe(request, bus))


def _tell(found: Probe, words: str, screen: Screen) -> None:
    from rich.text import Text

    from .screens import shown

    took = "handler mode" if found.mode == "handler" else f"through {found.system}"
    screen.line(f"{found.subject}: one clean job, {took}, {found.seconds:.2f} s")
    _section(screen, "hosts")
    width = max(len(host.name) for host in found.hosts)
    for host in found.hosts:
        used = f"{host.sent} messages" if host.sent > 1 else "1 message" if host.sent else "not used by this job"
        screen.whole(f"  {host.name:<{width}}  {used:<20}  {host.server}")
    for sentence in found.foreign:
        screen.hanging(_bad(screen), sentence)
    _variables(found, screen)
    _section(screen, "points, in their order")
    width = max((len(name) for name, _ in found.points), default=0)
    for number, (name, code) in enumerate(found.points, 1):
        screen.whole(f"  {number:>2}  {name:<{min(width, 70)}}  {code}".rstrip())
    _section(screen, "effects")
    for name, times, body in found.effects:
        screen.whole(f"  {times} x {name}  {screen.cut(body, 90)}")
    if not found.effects:
        screen.line("  none that jobcheck could see: an HTTP call, a mail, a row or a mark counts")
    for note in found.notes:
        screen.line()
        screen.hanging(Text(f"{screen.symbol('note')} "), note)
    if found.problem:
        screen.line()
        screen.hanging(_bad(screen), f"the clean run was none: {found.problem}")
        screen.line(f"  the output of every process is in {shown(found.folder)}/output")
    elif found.paste:
        _paste(found, words, screen)


def _variables(found: Probe, screen: Screen) -> None:
    _section(screen, "variables")
    width = max((len(read.name) for read in found.reads), default=0)
    for read in found.reads:
        state = "by the rig" if read.set_by else "not set by the rig"
        screen.whole(f"  {read.name:<{width}}  {state:<18}  {read.where}")
    if found.never_read:
        screen.line(f"  never read by the app's own code: {', '.join(found.never_read)}")


def _paste(found: Probe, words: str, screen: Screen) -> None:
    from ..runner.expectations import read_contract

    _section(screen, "contracts to paste; say how often each effect may happen")
    screen.line("  expect=[")
    for line in found.paste:
        screen.whole(f"      {line}")
    screen.line("  ]")
    texts = [read_contract(line.rstrip(",")).text for line in found.paste]
    options = [shlex.quote(text.replace(" once", "_once", 1).replace("at ", "at_", 1)) for text in texts]
    screen.line()
    screen.whole(" ".join(["jobcheck explore", words, *(f"--expect {option}" for option in options)]))


def _section(screen: Screen, title: str) -> None:
    screen.line()
    screen.line(title)


def _bad(screen: Screen) -> Text:
    from rich.text import Text

    from ..report.screen import STYLES

    return Text(f"{screen.symbol('bad')} ", STYLES["bad"])
