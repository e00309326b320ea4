"""jobcheck: proves that every side effect of a background job happens exactly once.

The public names are loaded lazily, so that a worker that imports `jobcheck` for `mark` pays for nothing else.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PARTS = frozenset(path.stem for path in Path(__file__).parent.iterdir() if path.suffix == ".py" or path.is_dir()) - {
    "mark"
}

if TYPE_CHECKING:
    from .api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name in _PARTS:
        raise AttributeError(name)  # a part of the package that is being imported: not a public name
    module = importlib.import_module(".marks" if name == "mark" else ".api", __name__)
    try:
        return getattr(module, name)
    except AttributeError:
        raise AttributeError(f"jobcheck has no name {name!r}; its public names are in jobcheck.api.__all__") from None
