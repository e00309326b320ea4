"""What a process of the rig is surrounded by: its variables, settings that are laid over, and what runs before it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..services.spec import THIS, Address
from .overlay import DJANGO_VARIABLE
from .rig import Rig, expand

INSIDE = Path(__file__).parent.parent / "workers" / "inside"
PRELOAD = INSIDE / "preload"
BEFORE = INSIDE / "before"
"""Modules that an agent imports before the first function of the user's."""


def surroundings(
    rig: Rig,
    addresses: Mapping[str, Address],
    *,
    folder: Path,
    name: str,
    ca: str = "",
    env: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The rig's variables with these addresses in them. `folder` gets the overlay's file, `name` tells it apart.

    `ca` is the file of the run's authority, where it has one; `env` are a role's own variables, over the rig's.
    """
    mine: dict[str, str] = {}
    for upstream, spec in rig.upstreams.items():
        known = _with_own(addresses, upstream)
        environ: Mapping[str, str] = getattr(spec, "environ", {})
        mine |= {variable: expand(text, known, folder=str(folder)) for variable, text in environ.items()}
    mine |= {
        variable: expand(text, addresses, folder=str(folder)) for variable, text in {**rig.env, **(env or {})}.items()
    }
    path = [str(PRELOAD), *rig.system.path]
    if values := _values(rig, addresses, folder, ca):
        file = folder / f"overlay-{name}.json"
        file.write_text(json.dumps(values))
        file.chmod(0o644)
        mine["JOBCHECK_OVERLAY"] = str(file)
    for one in rig.overlays:
        if one.django:
            mine.setdefault(DJANGO_VARIABLE, one.module)
            mine["JOBCHECK_BEFORE"] = "jobcheck_django"
            path.append(str(BEFORE))
    for variable, text in preload_variables([rig.beside(file) for file in rig.preload]).items():
        mine[variable] = f"{mine[variable]} {text}" if variable in mine else text
    if own := mine.get("PYTHONPATH"):
        path += [str(rig.folder / part) for part in own.split(os.pathsep) if part]
    mine["PYTHONPATH"] = os.pathsep.join(path)
    return mine


def _with_own(addresses: Mapping[str, Address], upstream: str) -> dict[str, Address]:
    return {**addresses, THIS: addresses[upstream]} if upstream in addresses else dict(addresses)


def _values(rig: Rig, addresses: Mapping[str, Address], folder: Path, ca: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for upstream, spec in rig.upstreams.items():
        known = _with_own(addresses, upstream)
        for module, values in getattr(spec, "overlays", {}).items():
            filled = {path: _filled(_with_ca(value, ca), known, str(folder)) for path, value in values.items()}
            found.setdefault(module, {}).update(filled)
    for one in rig.overlays:
        mine = found.setdefault(one.module, {})
        for path, value in one.values.items():
            mine[path] = _filled(value, addresses, str(folder))
    return found


def _with_ca(value: Any, ca: str) -> Any:
    return value.replace(f"{{{THIS}.ca}}", ca) if isinstance(value, str) else value


def _filled(value: Any, addresses: Mapping[str, Address], folder: str) -> Any:
    if isinstance(value, str):
        return expand(value, addresses, folder=folder)
    if isinstance(value, Mapping):
        return {key: _filled(item, addresses, folder) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(item, addresses, folder) for item in value]
    return value


def preload_variables(files: Sequence[Path]) -> dict[str, str]:
    """The variables by which each language runs a file before the program: `.py` by our sitecustomize, `.js` and
    `.cjs` by NODE_OPTIONS, `.rb` by RUBYOPT. Raises UsageError for a file that is not there, or of another kind."""
    python, node, ruby = [], [], []
    for file in files:
        if not file.is_file():
            raise UsageError(f"expected the preload file {file}, and it is not there", hint="it counts from the rig")
        if file.suffix == ".py":
            python.append(str(file))
        elif file.suffix in (".js", ".cjs"):
            node.append(f'--require="{file}"' if " " in str(file) else f"--require={file}")
        elif file.suffix == ".rb":
            if " " in str(file):
                raise UsageError(f"expected a preload file without spaces in its path, as RUBYOPT knows none: {file}")
            ruby.append(f"-r{file}")
        else:
            raise UsageError(f"expected a preload file that ends in .py, .js, .cjs or .rb, got {file}")
    told = {"JOBCHECK_PRELOAD": os.pathsep.join(python), "NODE_OPTIONS": " ".join(node), "RUBYOPT": " ".join(ruby)}
    return {variable: text for variable, text in told.items() if text}
