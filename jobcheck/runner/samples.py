"""Where the sample apps are: beside the package in a clone, inside it in an installed wheel."""

from __future__ import annotations

from pathlib import Path

from ..errors import UsageError


def sample(*parts: str) -> Path:
    """The path of a shipped sample, such as `sample("apps", "invoices", "rig.py")`."""
    package = Path(__file__).resolve().parent.parent
    for root in (package / "_scenarios", package.parent / "scenarios"):
        if (path := root.joinpath(*parts)).exists():
            return path
    raise UsageError(f"the sample {'/'.join(parts)} is not installed", hint="reinstall jobcheck, or run from a clone")
