"""Options that several commands share, with the project's own settings behind them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..config import BOOTS, FAIL_ON, Settings, merged, project_of, read_settings, rig_from, with_profile
from ..errors import UsageError

if TYPE_CHECKING:
    from ..runner.facade import Redaction
    from ..runner.rig import Rig

F = TypeVar("F", bound=Callable[..., Any])


def job_options(function: F) -> F:
    """Whose job, which one, and how its workers are booted."""
    for option in reversed(
        (
            click.option(
                "--rig", metavar="FILE:NAME", help="The rig, such as tests/rig.py:shop (default: [tool.jobcheck] rig)."
            ),
            click.option(
                "--handler", metavar="MODULE:FUNCTION", help="Take this job function itself, without a queue."
            ),
            click.option(
                "--case", metavar="MODULE:FUNCTION", help="What makes the rows of --handler and returns its arguments."
            ),
            click.option("--boot", type=click.Choice(BOOTS), help="How workers are booted (default: zygote)."),
        )
    ):
        function = option(function)
    return function


def seed_option(function: F) -> F:
    return click.option("--seed", type=click.IntRange(0), help="Seed of all randomness; a fresh one by default.")(
        function
    )


def deadline_option(function: F) -> F:
    help_text = "How long a job may run, and a worker may boot, until it is given up (default: 30s)."
    return click.option("--deadline", metavar="TIME", help=help_text)(function)


def keep_bodies_option(function: F) -> F:
    help_text = "Write bodies and rows down as they are; credentials are taken out all the same."
    return click.option("--keep-bodies", is_flag=True, default=None, help=help_text)(function)


def reports_option(function: F) -> F:
    help_text = "Folder of the run folders (default: reports, beside pyproject.toml)."
    return click.option("--reports", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help=help_text)(
        function
    )


def fail_on_option(function: F) -> F:
    help_text = "Whose findings fail the run: each word includes those before it (default: settings)."
    return click.option("--fail-on", type=click.Choice(FAIL_ON), help=help_text)(function)


class Project:
    """Where the command runs: the project around the current folder, and its settings with the options over them."""

    def __init__(self, **options: object) -> None:
        """`options` that are None were not given. Raises UsageError when pyproject.toml is wrong."""
        self.folder = project_of(Path.cwd())
        given = {key: value for key, value in options.items() if value is not None}
        settings = read_settings(self.folder)
        if isinstance(profile := given.get("profile"), str):
            settings = with_profile(self.folder, settings, profile)
        self.settings: Settings = merged(settings, given, where="the command line")

    @property
    def redaction(self) -> Redaction:
        """What is taken out of what is written down."""
        from ..runner.facade import Redaction

        return Redaction(self.settings.secrets, self.settings.keep_bodies)

    def reports(self, given: Path | None) -> Path:
        """The folder of the run folders: as given, from here; else the project's own."""
        return given if given is not None else self.folder / self.settings.reports


def command_line() -> str:
    """What was typed, to be pasted."""
    return " ".join(["jobcheck", *map(shlex.quote, sys.argv[1:])])


def opened_rig(project: Project, given: str | None) -> tuple[Rig, str]:
    """The rig that `--rig` or else the project names, and its name as it is found again from the project. Raises
    UsageError."""
    from ..runner.rig import load_rig

    if not given and not project.settings.rig:
        raise UsageError(
            "no rig: neither --rig nor [tool.jobcheck] rig in pyproject.toml names one", hint="--rig tests/rig.py:shop"
        )
    reference, base = (given, Path.cwd()) if given else (project.settings.rig, project.folder)
    for folder in (str(base), str(project.folder)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    return load_rig(reference, base=base), rig_from(reference, base, project.folder)
