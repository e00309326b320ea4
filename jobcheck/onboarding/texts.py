"""The files that `jobcheck init` writes: a rig, a first test, and what pytest needs beside it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .plan import Plan

GUESSES = {"float": "1.0", "bool": "False", "dict": '{"case": case.number}', "list": "[case.number]"}
"""By the annotation of a parameter."""
CONTAINERS = ("{", "[")
LONGEST = 100
"""Columns of a line that is written."""

CONFTEST = '''"""The tests below start real workers and kill them.

`pytest -m jobcheck` runs them alone, `pytest -m "not jobcheck"` leaves them out.
"""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.jobcheck)
'''

TEST = '''"""Written by `jobcheck init`; yours from here on.

`jobcheck probe {job}` shows one clean job and prints the contracts to paste.
"""

from jobcheck import at_least_once, exactly_once  # noqa: F401


def test_{job}_survives_every_crash(jobcheck_rig):
    jobcheck_rig.explore("{job}", expect=[])
'''


def rig_text(plan: Plan, root: str, setup: str, jobs: Sequence[str]) -> str:
    """The rig file; `root` leads from it to the app's folder."""
    lines = [
        '"""How jobcheck starts this app. Written by `jobcheck init`; yours from here on."""',
        "",
        "import jobcheck",
        "",
    ]
    lines += ["rig = jobcheck.Rig(", f"    jobcheck.celery({_q(plan.celery)}),", "    upstreams={"]
    for name in plan.upstreams:
        lines.append(f"        {_q(name)}: {_call(plan, name, setup)},{_why(plan, name)}")
    lines += ["    },", "    env={"]
    for variable, template in sorted(plan.env.items(), key=lambda one: (_upstream(one[1]), one[0])):
        note = "  # the app demands it; any value will do" if variable in plan.made_up else ""
        lines.append(f"        {_q(variable)}: {_q(template)},{note}")
    lines.append("    },")
    if overlays := _overlays(plan):
        lines += overlays
    if plan.packages:
        lines.append(f"    packages=[{', '.join(map(_q, plan.packages))}],  # whose lines are shown as yours")
    lines += [f"    root={_q(root)},", ")"]
    return "\n".join([*lines, *jobs, ""])


def _call(plan: Plan, name: str, setup: str) -> str:
    kind = plan.upstreams[name]
    arguments = [_q(service) for service in plan.aws] if kind == "aws" else []
    if kind == "postgres" and setup:
        arguments.append(f"setup={_q(setup)}")
    if name in plan.hosts:
        arguments.append(f"host={_q(plan.hosts[name])}")
    if kind == "provider":
        arguments.append('idempotency="Idempotency-Key"')
    if name in plan.tls:
        arguments.append("tls=True")
    return f"jobcheck.{kind}({', '.join(arguments)})"


def _why(plan: Plan, name: str) -> str:
    reasons = plan.why.get(name, [])
    return f"  # {', '.join(reasons[:3])}" if reasons else ""


def _upstream(template: str) -> str:
    return template.partition(".")[0] if template.startswith("{") else "~"


def _overlays(plan: Plan) -> list[str]:
    lines = []
    for module in dict.fromkeys([*filter(None, [plan.settings]), *plan.override]):
        values = plan.override.get(module, {})
        start = f"jobcheck.django({_q(module)}" if module == plan.settings else f"jobcheck.overlay({_q(module)}"
        if not values:
            lines.append(f"        {start}),")
            continue
        lines.append(f"        {start}, {'override=' if module == plan.settings else ''}{{")
        lines += [f"            {_q(path)}: {_q(value)}," for path, value in values.items()]
        lines.append("        }),")
    return ["    settings=[", *lines, "    ],"] if lines else []


def job_text(task: Mapping[str, Any], name: str, rows: Mapping[str, Any]) -> list[str]:
    """The function that enqueues one case of this task, and those that make its rows."""
    lines, arguments = [], []
    for parameter in task["needs"]:
        recipe = rows.get(parameter)
        if recipe is None:
            arguments.append(_guess(parameter, task["kinds"].get(parameter, "")))
        else:
            made = f"{recipe['model'].rpartition('.')[2].lower()}_row(case)"
            arguments.append(made if recipe["by"] == "object" else f"{made}.pk")
    lines += ["", "", f"def {name}(case):"]
    guessed = [one for one in task["needs"] if one not in rows]
    lines += [f"    from {task['module']} import {task['function']}", ""]
    if guessed:
        lines.append(f"    # jobcheck does not know what {', '.join(guessed)} must be: make what the job needs here")
        lines += [f"    {one} = {_guess(one, task['kinds'].get(one, ''))}" for one in guessed]
        if owned := [one for one in guessed if not _guess(one, task["kinds"].get(one, "")).startswith(CONTAINERS)]:
            lines.append(f"    case.owns({', '.join(f'{one}={one}' for one in owned)})")
        arguments = [one if one in guessed else text for one, text in zip(task["needs"], arguments, strict=True)]
    lines.append(f"    {task['function']}.delay({', '.join(arguments)})")
    return lines


def row_text(recipe: Mapping[str, Any]) -> list[str]:
    """The function that makes one row, with those that it needs."""
    steps = recipe["steps"]
    imports = sorted({step["model"] for step in steps})
    text = "".join(str(value) for step in steps for value in step["fields"].values())
    head = [f"    import {name}" for name in ("datetime", "uuid") if f"{name}." in text]
    if head:
        head.append("")
    lines = ["", "", f"def {steps[-1]['name']}_row(case):", *head]
    lines += [f"    from {model.rpartition('.')[0]} import {model.rpartition('.')[2]}" for model in imports]
    if "timezone." in text:
        lines.append("    from django.utils import timezone")
    lines.append("")
    owned = []
    for step in steps:
        fields = [f"{name}={value}" for name, value in step["fields"].items()]
        call = f"    {step['name']} = {step['model'].rpartition('.')[2]}.objects.create("
        if len(whole := f"{call}{', '.join(fields)})") <= LONGEST:
            lines.append(whole)
        else:
            lines += [call, *(f"        {one}," for one in fields), "    )"]
        owned.append(f"{step['name']}={step['name']}.pk")
        owned += [f"{step['name']}_{field}={step['name']}.{field}" for field in step["emails"]]
        # Of a URL only the path is seen in a call.
        owned += [f"{step['name']}_{field}={step['name']}.{field}.rpartition('/')[2]" for field in step["urls"]]
    return [*lines, f"    case.owns({', '.join(owned)})", f"    return {steps[-1]['name']}"]


def _guess(parameter: str, kind: str) -> str:
    if kind == "str" or "email" in parameter:
        return 'f"case-{case.number}@example.com"' if "email" in parameter else f'f"{parameter}-{{case.number}}"'
    return GUESSES.get(kind, "case.number")


def _q(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) and '"' not in value and "\\" not in value else repr(value)
