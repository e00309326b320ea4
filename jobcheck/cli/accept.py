"""`jobcheck accept`: a known finding, in a reviewed file, still shown and not failing."""

from __future__ import annotations

import datetime as dt

import click

from ..errors import EXIT_OK, UsageError
from .options import Project


@click.command("accept")
@click.argument("id", metavar="ID")
@click.option("--because", required=True, metavar="TEXT", help="Who decided it, and why.")
@click.option("--until", required=True, metavar="DATE", help="The last day on which it holds, such as 2027-03-31.")
def command(id: str, because: str, until: str) -> int:  # noqa: A002 - the argument's own name
    """Write a finding into jobcheck-accepted.toml: every run still shows it, and does not fail for it until DATE.

    \b
      jobcheck accept c07e11 --because "the provider deduplicates by invoice" --until 2027-03-31
    """
    from ..clock import REAL
    from ..store import accepted
    from ..store.failures import Failures
    from .screens import out, shown

    try:
        end = dt.date.fromisoformat(until)
    except ValueError:
        raise UsageError(f"expected a date such as 2027-03-31 for --until, got {until!r}") from None
    if end < REAL.today():
        raise UsageError(f"--until {end} is over already: the finding would fail the next run")
    project = Project()
    finding = Failures(project.folder).lookup(id)
    path = accepted.add(project.folder, finding.id, because, end)
    out().print(f"accepted {finding.id} until {end} in {shown(path)}: {finding.title}", markup=False, highlight=False)
    return EXIT_OK
