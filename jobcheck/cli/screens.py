"""Where commands write: reports to standard output, progress to standard error."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console


class Output(Console):
    """A console that tells a broken pipe to its caller."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def out() -> Console:
    """For what was asked for."""
    return Output()


def progress() -> Console:
    """For what a person may want to see meanwhile."""
    return Output(stderr=True)


def shown(path: Path) -> Path:
    """The path as a person types it from here: relative where it is below the current folder."""
    short = os.path.relpath(path)
    return path if short.startswith("..") else Path(short)
