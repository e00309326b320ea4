"""The environment of a run's processes: never the developer's.

A test that passes because a shell happened to export a production URL is worse than no test. So a process gets what a
program needs to start at all, and what the rig says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

KEPT = (
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "VIRTUAL_ENV",
    # where interpreters and shared libraries are, not where anything connects to
    "PYENV_ROOT",
    "PYENV_VERSION",
    "RBENV_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "NVM_DIR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "__CF_USER_TEXT_ENCODING",
)
"""Variables that are handed on, besides all `LC_*`."""


def scrubbed(
    extra: Mapping[str, str],
    *,
    python_path: Sequence[str] = (),
    home: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The whole environment of a process: what is kept, then `extra`, which wins.

    `python_path` comes before a `PYTHONPATH` of `extra`. `home` is a temporary folder of the run; without it the
    process has no `HOME`. `environ` stands in for our own environment in tests.
    """
    own = os.environ if environ is None else environ
    kept = {name: value for name, value in own.items() if name in KEPT or name.startswith("LC_")}
    kept.setdefault("PATH", os.defpath)
    _point_at_shims(kept, own)
    if home is not None:
        kept["HOME"] = str(home)
    kept["PYTHONUNBUFFERED"] = "1"
    kept.update(extra)
    paths = [*python_path, *filter(None, [extra.get("PYTHONPATH", "")])]
    if paths:
        kept["PYTHONPATH"] = os.pathsep.join(paths)
    return kept


def _point_at_shims(kept: dict[str, str], own: Mapping[str, str]) -> None:
    """Version managers find their interpreters under the real HOME unless told, and the process has another one."""
    real = own.get("HOME")
    if not real:
        return
    for name, folder in (("PYENV_ROOT", ".pyenv"), ("RBENV_ROOT", ".rbenv")):
        root = Path(real, folder)
        if name not in kept and root.is_dir():
            kept[name] = str(root)
