"""Files of a folder as effects: what appeared or changed since the last look."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Any

from .observer import Seen

SMALL = 64 * 1024
"""Bytes up to which a text file's content is part of the effect, so that ids in it are found."""


class FilesObserver:
    """A folder and all below it; effects are named `files <name>`, one for each file. Links are not followed.

    A file that was written again with the same content counts as changed: it was done twice.
    """

    def __init__(self, name: str, folder: str | Path) -> None:
        self.name = name
        self.folder = Path(folder)
        self._known: dict[str, tuple[int, int, int]] = {}

    async def prime(self) -> None:
        """Takes the files that are there now as known."""
        await self.snapshot()

    async def read(self) -> list[Seen]:
        """The files that appeared or changed since the last look, by path."""
        return await self.snapshot()

    async def snapshot(self) -> list[Seen]:
        """Looks, gives what is new or changed, and remembers what is there. A missing folder is an empty one."""
        return await asyncio.to_thread(self._look)

    async def close(self) -> None:
        """Nothing is held."""

    def _look(self) -> list[Seen]:
        before, self._known = self._known, {}
        fresh = []
        for path in self._files():
            relative = path.relative_to(self.folder).as_posix()
            try:
                status = path.stat(follow_symlinks=False)
                state = (status.st_ino, status.st_mtime_ns, status.st_size)
                if before.get(relative) != state:
                    fresh.append(_seen(self.name, relative, path.read_bytes()))
            except FileNotFoundError:
                continue  # it went away between the listing and the look: a temporary file
            self._known[relative] = state
        return fresh

    def _files(self) -> list[Path]:
        found = []
        for top, _, names in os.walk(self.folder):
            found += [Path(top, name) for name in names]
        return sorted(path for path in found if path.is_file() and not path.is_symlink())


def _seen(name: str, relative: str, content: bytes) -> Seen:
    digest = hashlib.sha256(content).hexdigest()
    fields: dict[str, Any] = {"path": relative, "sha256": digest, "size": len(content)}
    body = f"{relative} sha256:{digest}"
    if len(content) <= SMALL and b"\0" not in content:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            return Seen(name, body, fields)
        fields["text"] = text
        body = f"{relative} {text}"
    return Seen(name, body, fields)
