"""Which files are scenarios: told from their first lines, so that no parser is loaded for somebody else's YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ..errors import UsageError

SUFFIXES = (".yaml", ".yml")
KEYS = ("title", "rig", "workload")
"""What every scenario has, at the beginning of a line."""
ENOUGH = 2
"""Of these three, so that a typo in one of them is still told and not passed over."""
HEAD = 64 * 1024
"""Bytes that are looked at."""
_KEY = re.compile(rb"^['\"]?(title|rig|workload)['\"]?[ \t]*:", re.MULTILINE)


def is_scenario(path: Path) -> bool:
    """Whether a file is a scenario of jobcheck's: YAML by its name, and at least two of the three keys at its top.

    A file that cannot be read is none.
    """
    if path.suffix not in SUFFIXES:
        return False
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    return len(set(_KEY.findall(head))) >= ENOUGH


def expanded(paths: Iterable[Path]) -> list[Path]:
    """The files that are meant: those that are named, and for a folder the scenarios right in it, by name.

    Each one once. Raises UsageError for a folder without any.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.is_dir():
            found.setdefault(path.resolve(), path)
            continue
        inside = [file for file in sorted(path.iterdir()) if file.is_file() and is_scenario(file)]
        if not inside:
            raise UsageError(
                f"no scenario in the folder {path}: expected *.yaml with title, rig and workload",
                hint="name the files themselves, or the folder that they lie in",
            )
        for file in inside:
            found.setdefault(file.resolve(), file)
    return list(found.values())
