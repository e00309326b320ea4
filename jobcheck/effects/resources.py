"""What a stand-in provider was given, so that a GET after a POST sees it."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import parse_qsl

from ..history.ids import digest


class Resources:
    """Created things by path. Ids are UUIDs that depend on the calls alone: the same calls give the same ids."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._things: dict[str, dict[str, Any]] = {}
        self._made = 0

    def create(self, path: str, value: Any) -> dict[str, Any]:
        """A new thing below the collection `path`: an id, and an echo of `value`."""
        self._made += 1
        made = str(uuid.UUID(digest(self._name, path, self._made)[:32]))
        thing = {"id": made, **(value if isinstance(value, dict) else {} if value is None else {"value": value})}
        self._things[f"{_clean(path)}/{thing['id']}"] = thing
        return thing

    def change(self, path: str, value: Any) -> dict[str, Any]:
        """The thing at `path` with the fields of `value`; it comes into being where it was not there."""
        path = _clean(path)
        thing = {"id": path.rpartition("/")[2], **self._things.get(path, {})}
        thing.update(value if isinstance(value, dict) else {})
        self._things[path] = thing
        return thing

    def remove(self, path: str) -> dict[str, Any]:
        """Forgets the thing at `path` and returns it; an unknown one is answered with its id alone."""
        path = _clean(path)
        return self._things.pop(path, {"id": path.rpartition("/")[2]})

    def get(self, path: str) -> dict[str, Any]:
        """The thing at `path`; or `{"data": [...]}` of the collection, filtered by the query; or `{}`."""
        where = _clean(path)
        if where in self._things:
            return self._things[where]
        prefix = where + "/"
        found = [thing for at, thing in self._things.items() if at.startswith(prefix) and "/" not in at[len(prefix) :]]
        if not found:
            return {}
        wanted = parse_qsl(path.partition("?")[2])
        known = [(name, value) for name, value in wanted if any(name in thing for thing in found)]
        return {"data": [item for item in found if all(str(item.get(name)) == value for name, value in known)]}


def _clean(path: str) -> str:
    return path.partition("?")[0].rstrip("/")
