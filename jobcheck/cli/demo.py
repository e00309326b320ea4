"""`jobcheck demo`: the six variants of the sample shop's job, in both modes, against what is planted in them."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import EXIT_BROKEN, EXIT_OK
from .options import Project, reports_option, seed_option


@click.command("demo")
@seed_option
@reports_option
def command(seed: int | None, reports: Path | None) -> int:
    """Explore the sample shop: six variants of one job, four of them wrong.

    Starts a private Redis and PostgreSQL, kills the job at every point in both modes, and compares what was found
    with what is planted. Ends with 0 when it is exactly that.
    """
    from ..runner.demo import demo_request
    from ..seeds import fresh_seed
    from .carry import carry_out, tell
    from .screens import out

    project = Project()
    request = demo_request(fresh_seed() if seed is None else seed)
    request.reports = project.reports(reports)
    request.project = project.folder
    report = tell(carry_out(request), out(), fail_on="settings")
    return EXIT_OK if report.verdict == "ok" else EXIT_BROKEN
