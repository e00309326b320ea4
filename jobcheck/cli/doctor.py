"""`jobcheck doctor`: what is on this machine, what is missing, and how to get it."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import click

from ..errors import EXIT_OK
from .options import Project

if TYPE_CHECKING:
    from rich.text import Text

    from ..report.screen import Screen
    from ..services.doctor import Finding


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
def command(as_json: bool) -> int:
    """What is on this machine, what is missing, and how to get it; and who owns the due times of which job system.

    Starts nothing and changes nothing.
    """
    from ..services.doctor import survey
    from ..systems.registry import on_each_broker

    project = Project()
    parts = survey()
    owners = {system.name: system.due_times for system in on_each_broker()}
    if as_json:
        data = {
            "parts": [dataclasses.asdict(part) for part in parts],
            "due_times": {name: dataclasses.asdict(due) for name, due in owners.items()},
            "project": {"folder": str(project.folder), "rig": project.settings.rig},
        }
        click.echo(json.dumps(data, indent=1))
        return EXIT_OK
    from ..report.screen import Screen
    from .screens import out

    screen = Screen(out())
    width = max(len(part.name) for part in parts)
    for part in parts:
        _tell(part, screen, width)
    screen.line()
    for name, due in owners.items():
        said = f"due times: {due.owner}; leases: {due.leases}"
        goes = f"real time always: {due.real}" if due.real else "all of them go along with --speed"
        screen.hanging(_head(screen, "note", name, width), f"{said}; {goes}")
    rig = project.settings.rig or 'no rig yet; in pyproject.toml: [tool.jobcheck] rig = "tests/rig.py:shop"'
    screen.line()
    screen.hanging(_head(screen, "note", "project", width), f"{project.folder}: {rig}")
    return EXIT_OK


def _tell(part: Finding, screen: Screen, width: int) -> None:
    """One part in a line or two: what it is for, and where it is or how to get it."""
    symbol = "good" if part.found else "bad" if part.needed else "unsure"
    place = " ".join(filter(None, [part.version, f"({part.path})" if part.path else ""]))
    screen.hanging(_head(screen, symbol, part.name, width), f"{place}, {part.purpose}" if place else part.purpose)
    if part.hint:
        screen.hanging(_head(screen, "", "", width), part.hint, "dim")


def _head(screen: Screen, symbol: str, name: str, width: int) -> Text:
    from rich.text import Text

    from ..report.screen import STYLES

    mark = screen.symbol(symbol) if symbol else " "
    return Text(f"{mark} ", STYLES.get(symbol, "dim")).append(f"{name:<{width}}  ", "bold")
