"""Carries out a request: progress while it runs, then the report on the terminal and in the run folder."""

from __future__ import annotations

from rich.console import Console

from ..events import Bus
from ..history.report import Report
from ..report.terminal import Progress, render
from ..report.writer import write_all
from ..runner.facade import Request, Result, explore, run
from .screens import progress, shown


def carry_out(request: Request) -> Result:
    """Runs it, with progress on stderr. Raises what the run raises; Ctrl-C is Aborted."""
    bus = Bus()
    with Progress(bus, progress()):
        return run(lambda: explore(request, bus))


def tell(result: Result, console: Console, *, fail_on: str) -> Report:
    """Writes the run's files and prints its report, the path of the HTML page included."""
    path = write_all(result.report, result.folder, fail_transport=fail_on == "all")
    render(result.report, console, path=shown(path))
    return result.report
