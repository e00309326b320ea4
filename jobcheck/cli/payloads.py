"""`jobcheck payloads record` and `jobcheck payloads check`: old payloads meet new code, and the reverse."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import UsageError
from .options import Project, reports_option, seed_option

if TYPE_CHECKING:
    from ..events import Bus
    from ..runner.rig import Rig

T = TypeVar("T")
FOLDER = "payloads"


@click.group("payloads")
def command() -> None:
    """Old payloads meet new code, and new payloads old code, before a deploy makes them meet."""


rig_option = click.option(
    "--rig", metavar="FILE:NAME", help="The rig, such as tests/rig.py:shop (default: [tool.jobcheck] rig)."
)


@command.command("record")
@click.argument("functions", nargs=-1, metavar="[FUNCTION]...")
@rig_option
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), help=f"Folder (default: {FOLDER}).")
@click.option("--version", metavar="NAME", help="Name of this version (default: the git revision).")
@click.option("--timeout", type=click.FloatRange(0.1), default=30.0, show_default=True, help="Seconds per function.")
@seed_option
@reports_option
def record(
    functions: tuple[str, ...],
    rig: str | None,
    into: Path | None,
    version: str | None,
    timeout: float,
    seed: int | None,
    reports: Path | None,
) -> int:
    """Run each enqueue function once, and keep every payload that it and its jobs send.

    FUNCTION is a function of the rig's file that takes a case; all of them by default. The files are meant to be
    committed: payloads/VERSION/TASK/SHAPE.json. Secrets are taken out.
    """
    from ..payloads.facade import RecordRequest, record_payloads
    from ..report.screen import Screen
    from ..seeds import fresh_seed
    from .payloads_screen import tell_recorded
    from .screens import out

    project = Project(rig=rig, seed=seed)
    request = RecordRequest(
        rig=_rig(rig, project),
        functions=functions,
        into=into if into is not None else project.folder / FOLDER,
        version=version or "",
        within=timeout,
        seed=fresh_seed() if project.settings.seed is None else project.settings.seed,
        reports=project.reports(reports),
    )
    recorded = _carried(lambda bus: record_payloads(request, bus))
    tell_recorded(recorded, Screen(out()))
    return recorded.exit_code


@command.command("check")
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@rig_option
@click.option("--payloads", type=click.Path(file_okay=False, path_type=Path), help=f"Folder (default: {FOLDER}).")
@click.option(
    "--against",
    metavar="VERSION",
    help="The older version: recorded name, folder or git revision, or NAME=FOLDER (default: the last recorded).",
)
@click.option("--against-python", metavar="PATH", help="The older version's interpreter.")
@click.option("--code", metavar="VERSION", help="The newer version's folder or git revision (default: the rig's).")
@click.option("--function", "functions", multiple=True, help="Enqueue function (default: as recorded); may repeat.")
@click.option("--prepare", metavar="FILE:FUNCTION", help="Gets case and payload, makes rows, returns new arguments.")
@click.option("--timeout", type=click.FloatRange(0.1), default=10.0, show_default=True, help="Seconds per job.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@seed_option
@reports_option
def check(
    tasks: tuple[str, ...],
    rig: str | None,
    payloads: Path | None,
    against: str | None,
    against_python: str | None,
    code: str | None,
    functions: tuple[str, ...],
    prepare: str | None,
    timeout: float,
    as_json: bool,
    seed: int | None,
    reports: Path | None,
) -> int:
    """Try the payloads of the older version on workers of the newer one, and the reverse.

    Real workers run each payload under a fresh id. Where the older version's code is at hand (a folder, a git
    revision), its workers get the newer payloads too. TASK limits it to some tasks. Ends with 1 when a payload is
    broken or lost, with 2 when one is unknown.
    """
    from ..payloads.facade import CheckRequest, check_payloads
    from ..report.screen import Screen
    from ..seeds import fresh_seed
    from .payloads_screen import tell_checked
    from .screens import out

    project = Project(rig=rig, seed=seed)
    request = CheckRequest(
        rig=_rig(rig, project),
        payloads=payloads if payloads is not None else project.folder / FOLDER,
        against=against or "",
        against_python=against_python or "",
        code=code or "",
        functions=functions,
        tasks=tasks,
        prepare=prepare or "",
        within=timeout,
        seed=fresh_seed() if project.settings.seed is None else project.settings.seed,
        reports=project.reports(reports),
    )
    checked = _carried(lambda bus: check_payloads(request, bus))
    if as_json:
        click.echo(json.dumps(checked.to_json(), indent=2, ensure_ascii=False))
    else:
        tell_checked(checked, Screen(out()))
    return checked.exit_code


def _carried(work: Callable[[Bus], Coroutine[Any, Any, T]]) -> T:
    """Runs it with progress on stderr; Ctrl-C is Aborted."""
    from ..events import Bus
    from ..report.terminal import Progress
    from ..runner.facade import run
    from .screens import progress

    bus = Bus()
    with Progress(bus, progress()):
        return run(lambda: work(bus))


def _rig(given: str | None, project: Project) -> Rig:
    """The rig that the option or the project names. Raises UsageError when neither does."""
    from ..runner.rig import load_rig

    reference, base = (given, Path.cwd()) if given else (project.settings.rig, project.folder)
    if not reference:
        raise UsageError(
            "no rig: neither --rig nor [tool.jobcheck] rig in pyproject.toml names one",
            hint="--rig tests/rig.py:shop",
        )
    for folder in (str(base), str(project.folder)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    return load_rig(reference, base=base)
