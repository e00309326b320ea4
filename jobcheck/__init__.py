"""jobcheck: proves that every side effect of a background job happens exactly once.

The public names are loaded lazily, so that a worker that imports `jobcheck` for `mark` pays for nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .marks import mark as mark

_PUBLIC = {"mark": "marks"}


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        import importlib

        return getattr(importlib.import_module(f".{_PUBLIC[name]}", __name__), name)
    if name.startswith("_"):
        raise AttributeError(name)
    from . import api

    try:
        return getattr(api, name)
    except AttributeError:
        raise AttributeError(f"jobcheck has no name {name!r}; its public names are in jobcheck.api.__all__") from None
