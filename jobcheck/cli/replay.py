"""`jobcheck replay ID`: one finding again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..config import seconds
from ..errors import EXIT_BROKEN, EXIT_OK, EXIT_UNKNOWN
from .options import Project, deadline_option, keep_bodies_option, reports_option

if TYPE_CHECKING:
    from ..runner.facade import Request, Result


@click.command("replay")
@click.argument("finding", metavar="ID")
@click.option("--times", type=click.IntRange(1), default=3, show_default=True, help="Runs of the strike.")
@deadline_option
@keep_bodies_option
@reports_option
def command(finding: str, times: int, reports: Path | None, **options: object) -> int:
    """Run one finding again: FIXED, FAILED or ERROR.

    ID is a finding's id from a report, or its beginning. The strike that showed it runs again, after two clean runs;
    when it holds, the finding's other strikes run as well, and a fixed finding is forgotten. Ends with 0 when it is
    FIXED, 1 when it FAILED, 2 for an ERROR.
    """
    import sys

    from rich.text import Text

    from ..report.terminal import render_finding
    from ..report.writer import write_all
    from ..runner.replaying import ERROR, FAILED, FIXED, replay
    from .carry import carry_out
    from .screens import out, shown

    project = Project(**options)
    sys.path.insert(0, str(project.folder))
    settings = project.settings

    def carried_out(request: Request) -> Result:
        request.deadline = seconds(settings.deadline)
        request.redaction, request.ruleset = project.redaction, settings.ruleset
        return carry_out(request)

    done = replay(project.folder, finding, carried_out, times=times, reports=project.reports(reports))
    console = out()
    paths = [write_all(result.report, result.folder) for result in done.results]
    if done.subject is not None and done.finding is not None:
        render_finding(done.subject, done.finding, console)
    console.print()
    if paths:
        console.print(f"report  {shown(paths[-1])}", markup=False, highlight=False, soft_wrap=True)
    style = {FIXED: "bold green", FAILED: "bold red", ERROR: "bold yellow"}[done.outcome]
    title = Text(f"{done.outcome} ", style).append(f"{done.failure.id}: {done.reason}", "")
    console.print(title, markup=False, highlight=False, soft_wrap=True)
    return {FIXED: EXIT_OK, FAILED: EXIT_BROKEN, ERROR: EXIT_UNKNOWN}[done.outcome]
