"""`jobcheck init`: a first rig and a first test for an app, from what can be found out about it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ..errors import EXIT_OK
from .options import Project

if TYPE_CHECKING:
    from rich.text import Text

    from ..onboarding.facade import Found, Written
    from ..report.screen import Screen


@click.command("init")
@click.option("--python", metavar="PATH", help="The app's own Python (default: the one that runs jobcheck).")
@click.option("--app", metavar="MODULE:NAME", default="", help="The Celery app (default: it is looked for).")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
def command(python: str | None, app: str, dry_run: bool) -> int:
    """Write a first rig and a first test for the app in this folder.

    Its settings and its Celery app are imported in a child process without your shell's variables; each variable is
    given a value of its own to see which setting it ends up in. Files that are there already are left as they are.
    """
    from ..onboarding.facade import find, texts, write
    from ..report.screen import Screen
    from .screens import out

    folder = Project().folder
    screen = Screen(out())
    found = find(folder, python or sys.executable, app)
    _tell(found, screen)
    if dry_run:
        for name, text in texts(found, folder).items():
            screen.line()
            screen.line(f"── {name}")
            click.echo(text.rstrip())
        return EXIT_OK
    _told(found, write(found, folder), screen)
    return EXIT_OK


def _tell(found: Found, screen: Screen) -> None:
    from ..report.text import plural

    plan, scan = found.plan, found.scan
    lines = []
    if plan.settings:
        files = ", ".join(scan.settings.get(plan.settings, []))
        tests = f"; the tests have {scan.test_settings}" if scan.test_settings else ""
        lines.append(("good", "settings", f"{plan.settings} ({files}){tests}"))
    lines.append(("good", "jobs", f"Celery, {plan.celery} ({scan.celery[0][1]}); {plural(len(found.tasks), 'task')}"))
    for name, kind in plan.upstreams.items():
        names = [variable for variable, text in plan.env.items() if text.startswith(f"{{{name}.")]
        laid = [path for over in plan.override.values() for path, text in over.items() if f"{{{name}." in str(text)]
        if name in plan.hosts:
            names.append(f"calls to {plan.hosts[name]} are led there")
        if kind in ("stripe", "aws"):
            names.append("its own library is told where it is")
        how = ", ".join([*names, *(f"{path} (laid over the settings)" for path in laid)])
        lines.append(("good", name, f"{kind}: {how or 'by nothing that was found'}"))
    if found.setup:
        lines.append(("good", "tables", found.setup))
    if plan.made_up:
        lines.append(("note", "made up", f"{', '.join(plan.made_up)}: demanded by the app, leads to no server"))
    lines += [("unsure", "not known", doubt) for doubt in plan.doubts]
    width = max(len(label) for _, label, _ in lines)
    for symbol, label, text in lines:
        screen.hanging(_head(screen, symbol, label, width), text)


def _told(found: Found, written: list[Written], screen: Screen) -> None:
    screen.line()
    for one in written:
        note = ""
        if one.state == "kept":
            note = ", which is there already" + (f"; it needs: {' '.join(one.text.split())}" if one.text else "")
        screen.line(f"{one.state:<8} {one.path}{note}")
    if found.jobs:
        screen.line()
        screen.line(f"next: jobcheck probe {found.jobs[0][0]}")
        if others := [name for name, _ in found.jobs[1:]]:
            screen.line(f"      the rig can also enqueue {', '.join(others)}")


def _head(screen: Screen, symbol: str, name: str, width: int) -> Text:
    from rich.text import Text

    from ..report.screen import STYLES

    return Text(f"{screen.symbol(symbol)} ", STYLES.get(symbol, "dim")).append(f"{name:<{width}}  ", "bold")
