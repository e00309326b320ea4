"""Server programs on this machine."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

EXTRA_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin", "/usr/lib/rabbitmq/bin")
"""Looked into besides PATH: where packages put servers that are not for everyone's PATH."""
POSTGRES_FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/pgsql/bin",
)


def program(*names: str) -> Path | None:
    """The first of `names` that is found, on PATH first."""
    for name in names:
        found = shutil.which(name) or shutil.which(name, path=":".join(EXTRA_FOLDERS))
        if found:
            return Path(found).absolute()
    return None


def redis_server() -> Path | None:
    """A Redis or Valkey server."""
    return program("redis-server", "valkey-server")


def postgres_bin() -> Path | None:
    """The folder of PostgreSQL's server programs (`initdb` and `postgres` in one place), the newest version first."""
    folders = [
        folder for pattern in POSTGRES_FOLDERS for folder in Path("/").glob(pattern.lstrip("/")) if _complete(folder)
    ]
    if folders:
        return max(folders, key=_version_in)
    # A link on PATH may point to a program whose siblings are elsewhere: what counts is where it really is.
    for found in (program("postgres"), program("initdb")):
        if found is not None and _complete(found.resolve().parent):
            return found.resolve().parent
    return None


def _complete(folder: Path) -> bool:
    return (folder / "initdb").exists() and (folder / "postgres").exists()


def _version_in(folder: Path) -> tuple[int, ...]:
    match = re.search(r"(\d+(?:\.\d+)*)/bin$", str(folder))
    return tuple(int(part) for part in match[1].split(".")) if match else (0,)
