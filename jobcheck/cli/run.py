"""`jobcheck run FILES`: scenario files - faults at a rate, and what must hold when it is over."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import EXIT_OK, UsageError
from .options import Project, command_line, keep_bodies_option, reports_option, seed_option
from .scenario_files import expanded

if TYPE_CHECKING:
    from ..history.report import Report

ENGINES = ("embedded", "toxiproxy")
FAIL_ON_HELP = "What fails the run: with handler, not what the settings break; with all, also losses at the transport."


@click.command("run")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILES...")
@seed_option
@click.option("--dry", is_flag=True, help="Print the plan of each file and start nothing.")
@click.option("--engine", type=click.Choice(ENGINES), help="Who does the toxics (default: what the file says).")
@click.option("--toxiproxy", is_flag=True, help="Answer Toxiproxy's HTTP API meanwhile, and print where.")
@click.option("--fail-on", type=click.Choice(("handler", "settings", "all", "none")), help=FAIL_ON_HELP)
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="JUnit XML also there.")
@keep_bodies_option
@reports_option
def command(
    files: tuple[Path, ...],
    seed: int | None,
    dry: bool,
    engine: str | None,
    toxiproxy: bool,
    junit: Path | None,
    reports: Path | None,
    **options: object,
) -> int:
    """Run scenario files: many jobs, faults while they run, and what must hold when all is healed and quiet.

    FILES are scenario files, or folders of them. All are read and checked before the first one starts; then they run
    one after another, each on servers and workers of its own.

    \b
      jobcheck run scenarios/*.yaml
      jobcheck run scenarios/kill-workers.yaml --seed 7 --dry

    Ctrl-C ends the faults, waits for what is under way, and reports what there is.
    """
    project = Project(**options)
    sys.path.insert(0, str(project.folder))
    chosen = expanded(files)
    seed = _seed(chosen, project, seed)
    if dry:
        return _dry(chosen, seed)
    return _run(chosen, project, seed, engine or "", junit, project.reports(reports), toxiproxy)


def _dry(files: Sequence[Path], seed: int | None) -> int:
    """The plans, a line for each step; the same seed gives the same."""
    from ..runner.scenarios.campaign import dry

    for number, file in enumerate(files):
        title, *lines = dry(file, seed)
        click.echo("\n".join([*([""] if number else []), f"{title} ({file})", *lines]))
    return EXIT_OK


def _seed(files: Sequence[Path], project: Project, given: int | None) -> int | None:
    """The command line goes before a file's own seed, and that before the project's."""
    from ..runner.scenarios.campaign import load_all

    if given is not None or any(one.scenario.seed is not None for one in load_all(files)):
        return given
    return project.settings.seed


def _run(
    files: Sequence[Path],
    project: Project,
    seed: int | None,
    engine: str,
    junit: Path | None,
    reports: Path,
    toxiproxy: bool,
) -> int:
    from ..events import Bus
    from ..report.scenario_outcome import exit_code
    from ..report.scenario_view import views
    from ..report.series import Series
    from ..report.terminal import Progress
    from ..runner.facade import run
    from ..runner.scenarios.campaign import ScenarioRequest, run_scenarios
    from .carry import tell
    from .screens import out, progress

    if junit is not None and not junit.absolute().parent.is_dir():
        raise UsageError(f"--junit: no folder {junit.parent}", hint=f"mkdir -p {shlex.quote(str(junit.parent))}")
    bus = Bus()
    series = Series(bus)
    request = ScenarioRequest(
        files=files,
        command=command_line(),
        seed=seed,
        reports=reports,
        name=files[0].stem if len(files) == 1 else "scenarios",
        engine=engine,
        toxiproxy=toxiproxy,
        redaction=project.redaction,
        ruleset=project.settings.ruleset,
        finish=finishing(series, files, engine),
    )
    with Progress(bus, progress()):
        result = run(lambda: run_scenarios(request, bus))
    report = tell(result, out(), fail_on=project.settings.fail_on, junit=junit)
    return exit_code(views(report.scenarios), project.settings.fail_on)


def finishing(series: Any, files: Sequence[Path], engine: str) -> Callable[[Report], Report]:
    """The last word on a report: jobs over time, and commands that can be pasted whatever the files are called."""

    def finish(report: Report) -> Report:
        report = series.into(report)
        scenarios = [
            {**scenario, "reproduce": reproduce(file, scenario.get("seed"), engine)}
            for scenario, file in zip(report.scenarios, files, strict=False)
        ]
        return replace(report, scenarios=tuple(scenarios))

    return finish


def reproduce(file: Path, seed: object, engine: str = "") -> str:
    """The command that runs a file again with the same plan."""
    words = ["jobcheck", "run", str(file), "--seed", str(seed), *(["--engine", engine] if engine else [])]
    return shlex.join(words)
