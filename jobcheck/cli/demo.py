"""`jobcheck demo`: the six variants of the sample shop's job, in both modes, against what is planted in them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from ..errors import EXIT_BROKEN, EXIT_OK, UsageError
from .options import Project, reports_option, seed_option

SHOP_NEEDS = ("celery", "requests")
"""What the extra `demo` brings."""


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

    _require_the_shop()
    project = Project()
    request = demo_request(fresh_seed() if seed is None else seed)
    request.reports = project.reports(reports)
    request.project = project.folder
    report = tell(carry_out(request), out(), fail_on="settings")
    return EXIT_OK if report.verdict == "ok" else EXIT_BROKEN


def _require_the_shop() -> None:
    """Raises UsageError when a library of the sample shop is missing; nothing is imported."""
    if missing := [name for name in SHOP_NEEDS if find_spec(name) is None]:
        raise UsageError(
            f"the sample shop needs {' and '.join(missing)}, which this Python does not have",
            hint='pip install "jobcheck[demo]" (from a clone: pip install "/path/to/jobcheck[demo]")',
        )
