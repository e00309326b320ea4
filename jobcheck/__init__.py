"""jobcheck: proves that every side effect of a background job happens exactly once.

The public names are loaded lazily, so that a worker that imports `jobcheck` for `mark` pays for nothing else. This file
is Python 3.8: a rig's file is read by the app's interpreter, too, for the functions in it.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HARNESS = (3, 11)
"""The oldest Python that the harness runs in."""
_PARTS = frozenset(path.stem for path in Path(__file__).parent.iterdir() if path.suffix == ".py" or path.is_dir()) - {
    "mark"
}

if TYPE_CHECKING:
    from .api import *  # noqa: F403


class _ForTheHarness:
    """Stands for what only the harness can use, in an older interpreter that runs an app: a rig that is made of it is
    read there, and does nothing."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self

    __getattr__ = __getitem__ = __or__ = __ror__ = __call__


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name in _PARTS:
        raise AttributeError(name)  # a part of the package that is being imported: not a public name
    if name != "mark" and sys.version_info < _HARNESS:
        return _ForTheHarness()
    module = importlib.import_module(".marks" if name == "mark" else ".api", __name__)
    try:
        return getattr(module, name)
    except AttributeError:
        raise AttributeError(f"jobcheck has no name {name!r}; its public names are in jobcheck.api.__all__") from None
