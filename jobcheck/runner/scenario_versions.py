"""Versions of the app under test: a folder, a Python interpreter or a git revision, each as a rig of its own."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from pathlib import Path

from ..aio import within
from ..errors import UsageError
from ..faults.where import Where
from .rig import Rig
from .stage import Stage

GIT_WITHIN = 30.0
"""Seconds for git to give out a revision."""


async def version_rigs(rig: Rig, versions: dict[str, str], stage: Stage, base: Path, where: Where) -> dict[str, Rig]:
    """The rig of each version; the rig as it is under the empty name, too.

    Paths are relative to `base`, the scenario's folder. Raises UsageError with the version's line.
    """
    found = {"": rig}
    for name, said in versions.items():
        try:
            found[name] = await _version(rig, name, said, stage, base)
        except UsageError as error:
            raise UsageError(f"{where.lead('versions')}version {name!r}: {error.message}", hint=error.hint) from None
    return found


async def _version(rig: Rig, name: str, said: str, stage: Stage, base: Path) -> Rig:
    path = base / said
    if path.is_dir():
        return dataclasses.replace(rig, root=str(path.resolve()))
    if path.is_file() and os.access(path, os.X_OK):
        # Not resolved: a virtual environment's python is a link, and is found by where the link is.
        system = dataclasses.replace(rig.system, python=str(path.absolute()))  # type: ignore[type-var]
        return dataclasses.replace(rig, system=system)
    folder = stage.folder / f"version-{name}"
    await _checkout(rig.folder, said, folder)
    return dataclasses.replace(rig, root=str(folder))


async def _checkout(root: Path, revision: str, folder: Path) -> None:
    """The rig's folder as it was at a revision. The user's own checkout is only read."""
    expected = f"expected a folder, a Python interpreter or a git revision, got {revision!r}"
    prefix, top = await _git(root, "rev-parse", "--show-prefix"), await _git(root, "rev-parse", "--show-toplevel")
    if prefix is None or not top:
        raise UsageError(f"{expected}: no such path, and {root} is in no git repository")
    # Asked for as a commit first: what begins with a dash is no option of anything that follows.
    commit = await _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if not commit:
        raise UsageError(f"{expected}: no such path, and no such revision in the repository of {root}")
    folder.mkdir()
    archive = folder.with_suffix(".tar")
    if await _git(Path(top), "archive", "--format=tar", "-o", str(archive), f"{commit}:{prefix}") is None:
        raise UsageError(f"{expected}: the folder {prefix or '.'} is not in revision {revision}")
    await _run("tar", "-xf", str(archive), "-C", str(folder))
    archive.unlink()


async def _git(root: Path, *arguments: str) -> str | None:
    """What git says; None when it refuses."""
    return await _run("git", "-C", str(root), *arguments)


async def _run(*command: str) -> str | None:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return None
    out, _ = await within(process.communicate(), GIT_WITHIN, f"{command[0]} to answer")
    return out.decode(errors="replace").strip() if process.returncode == 0 else None
