"""Versions of an app: a folder, an interpreter or a git revision, and the same rig at one of them."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import UsageError
from .rig import Rig

WORKING_TREE = "working tree"
_GIT_WITHIN = 120
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the app's code. What is empty is the rig's own."""

    name: str
    folder: Path | None = None
    """The folder that its processes run in, as `Rig.folder`."""
    python: str = ""
    """Its interpreter."""
    revision: str = ""
    """The git revision that `folder` was checked out from."""


def rig_at(rig: Rig, version: Version) -> Rig:
    """The same rig at this version: another root, another interpreter.

    Where the version has the rig's file too (a git revision has), functions named without a module are taken from
    there: the enqueue functions are part of the app. Raises UsageError for an interpreter that the system cannot take.
    """
    system: Any = rig.system
    if version.python:
        if not is_dataclass(system) or isinstance(system, type) or not hasattr(system, "python"):
            raise UsageError(f"{system.name} has no interpreter to choose, got {version.python!r} for {version.name}")
        system = replace(system, python=version.python)
    folder = (version.folder or rig.folder).resolve()
    return replace(rig, system=system, root=str(folder), file=_rig_file(rig, folder))


def _rig_file(rig: Rig, folder: Path) -> str:
    if not rig.file:
        return ""
    moved = folder / os.path.relpath(rig.file, rig.folder)
    return str(moved.resolve()) if moved.is_file() else rig.file


def version_of(text: str, rig: Rig, *, base: Path, temp: Path, name: str = "", python: str = "") -> Version:
    """The version that a folder or a Python interpreter (from `base`) or a git revision of the rig's repository names.

    A revision is checked out below `temp`, which the caller removes. Raises UsageError when it is none of them.
    """
    check_version(text, rig, base)
    path = base / text
    if path.is_dir():
        return Version(name or path.resolve().name, path.resolve(), python)
    if interpreter := interpreter_of(text, base):
        return Version(name or text, None, interpreter)
    top = _top(rig.folder)
    assert top is not None
    tree = checkout(text, top, temp)
    return Version(name or text, tree / rig.folder.relative_to(top), python, text)


def interpreter_of(text: str, base: Path) -> str:
    """The Python that a version is, where it is one; else empty."""
    path = base / text
    # Not resolved: the python of a virtual environment is a link, and knows itself by where the link is.
    return str(path.absolute()) if path.is_file() and os.access(path, os.X_OK) else ""


def check_version(text: str, rig: Rig, base: Path) -> None:
    """Raises UsageError unless a folder or a Python interpreter (from `base`), or a git revision, is called so.
    Nothing is checked out; git is asked, which may take a moment."""
    path = base / text
    if path.is_dir() or (path.is_file() and os.access(path, os.X_OK)) or is_revision(text, rig.folder):
        return
    known = _top(rig.folder) is not None
    why = "no such revision in the repository of {}" if known else "{} is in no git repository"
    raise UsageError(
        f"expected a folder, a Python interpreter or a git revision, got {text!r}: no such path, and "
        + why.format(rig.folder),
        hint="a folder that holds the app's package, or a tag, branch or commit (git fetch --tags in CI)",
    )


def checkout(revision: str, repository: Path, temp: Path) -> Path:
    """Writes the files of a git revision to a new folder below `temp` and gives it.

    An index of its own is used: no worktree is registered, no hook runs, and the repository stays as it is. Raises
    UsageError with git's words.
    """
    temp.mkdir(parents=True, exist_ok=True)
    number = sum(1 for _ in temp.glob("revision*.index"))
    index = temp / f"revision{number}.index"
    tree = temp / f"revision{number}"
    own = {**os.environ, "GIT_INDEX_FILE": str(index)}
    for words in (["read-tree", f"{revision}^{{commit}}"], ["checkout-index", "-a", "-f", f"--prefix={tree}/"]):
        done = _git(repository, *words, env=own)
        if done.returncode != 0:
            raise UsageError(f"cannot check out {revision!r} of {repository}: {done.stderr.strip()}")
    tree.mkdir(exist_ok=True)
    return tree.resolve()


def is_revision(text: str, folder: Path) -> bool:
    """Whether git knows this as a commit of the repository around `folder`."""
    if not text or text.startswith("-") or _top(folder) is None:
        return False
    return _git(folder, "rev-parse", "--verify", "--quiet", f"{text}^{{commit}}").returncode == 0


def current_name(rig: Rig) -> str:
    """The short git revision of the app's folder, with `-dirty` when tracked files there were changed; else empty."""
    if _top(rig.folder) is None:
        return ""
    told = _git(rig.folder, "rev-parse", "--short", "HEAD")
    if told.returncode != 0:  # no commit yet
        return ""
    changed = _git(rig.folder, "diff", "--quiet", "HEAD", "--", ".").returncode != 0
    return told.stdout.strip() + ("-dirty" if changed else "")


def _top(folder: Path) -> Path | None:
    done = _git(folder, "rev-parse", "--show-toplevel")
    return Path(done.stdout.strip()).resolve() if done.returncode == 0 else None


def _git(folder: Path, *words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["git", *words],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=_GIT_WITHIN,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(["git", *words], 127, "", f"git could not be run: {error}")
