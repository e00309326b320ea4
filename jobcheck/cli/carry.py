"""Carries out a request: progress while it runs, then the report on the terminal and in the run folder."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.console import Console

from ..errors import JobcheckError
from ..events import Bus
from ..history.report import Report
from ..report.junit import junit as as_junit
from ..report.terminal import Progress, render
from ..report.writer import append_summary, write_all
from ..runner.facade import Request, Result, explore, run
from ..store.files import write_whole
from .screens import progress, shown


def carry_out(request: Request) -> Result:
    """Runs it, with progress on stderr. Raises what the run raises; Ctrl-C is Aborted."""
    bus = Bus()
    with Progress(bus, progress()):
        return run(lambda: explore(request, bus))


def tell(result: Result, console: Console, *, fail_on: str, junit: Path | None = None) -> Report:
    """Writes the run's files and prints its report, the path of the HTML page included. In a step of a GitHub workflow
    the summary goes to the step's page too; `junit` gets the JUnit file once more."""
    report, everything = result.report, fail_on == "all"
    try:
        path = write_all(report, result.folder, fail_transport=everything, fail_on=fail_on)
    except JobcheckError:
        render(report, console, path=shown(result.folder.path))  # a full disk does not take the answer away
        raise
    if junit is not None:
        write_whole(junit, as_junit(report, fail_transport=everything, fail_on=fail_on))
    render(report, console, path=shown(path))
    if step := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            append_summary(report, Path(step))
        except JobcheckError as error:  # the verdict does not depend on it
            click.echo(f"warning: no step summary: {error.message}", err=True)
    return report
