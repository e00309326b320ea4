"""`jobcheck report [RUN]`: where the report of a run is, or what it says."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import EXIT_OK, UsageError
from .options import Project

FORMATS = ("path", "terminal", "json", "summary")


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option("--format", "form", type=click.Choice(FORMATS), default="path", show_default=True, help="What to print.")
@click.option("--open", "open_it", is_flag=True, help="Open the HTML report in the browser.")
def command(run: Path | None, form: str, open_it: bool) -> int:
    """Show, print or open the report of a run.

    RUN is a run folder; the latest one by default.
    """
    from ..store.folder import RunFolder
    from ..store.reports import read_report
    from .screens import out, shown

    project = Project()
    latest = project.reports(None) / "latest"
    if run is None and not latest.exists():
        raise UsageError(f"no run in {shown(latest.parent)} yet", hint="jobcheck demo")
    folder = RunFolder.open(run if run is not None else latest)
    if form == "path":
        click.echo(shown(folder.html))
    elif form == "json":
        click.echo(folder.report.read_text("utf-8"), nl=False)
    elif form == "summary":
        from ..report.summary import summary

        click.echo(summary(read_report(folder.report)), nl=False)
    else:
        from ..report.terminal import render

        render(read_report(folder.report), out(), path=shown(folder.html))
    if open_it and click.launch(str(folder.html)) != 0:
        raise UsageError(f"no browser could be started for {folder.html}")
    return EXIT_OK
