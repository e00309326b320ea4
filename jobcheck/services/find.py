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


RABBITMQ_FOLDERS = (
    "/usr/lib/rabbitmq/bin",
    "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin",
    "/opt/rabbitmq/sbin",
    "/opt/homebrew/opt/rabbitmq/sbin",
    "/usr/local/opt/rabbitmq/sbin",
)
FAKETIME = (
    "/usr/lib/*/faketime/libfaketimeMT.so.1",
    "/usr/lib*/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
    "/opt/homebrew/lib/faketime/libfaketime.1.dylib",
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


def postgres_bins() -> list[Path]:
    """Every folder with PostgreSQL's server programs, the newest version first."""
    folders = [
        folder for pattern in POSTGRES_FOLDERS for folder in Path("/").glob(pattern.lstrip("/")) if _complete(folder)
    ]
    return sorted(folders, key=_version_in, reverse=True)


def postgres_bin(version: str = "") -> Path | None:
    """The folder of PostgreSQL's server programs (`initdb` and `postgres` in one place), the newest version first, or
    that of the major version that is asked for."""
    folders = postgres_bins()
    if version and (right := [folder for folder in folders if str(_version_in(folder)[0]) == version]):
        return right[0]
    if folders:
        return folders[0]
    # A link on PATH may point to a program whose siblings are elsewhere: what counts is where it really is.
    for found in (program("postgres"), program("initdb")):
        if found is not None and _complete(found.resolve().parent):
            return found.resolve().parent
    return None


def faketime() -> list[Path]:
    """libfaketime's library for programs with threads, in the order of preference."""
    return [path for pattern in FAKETIME for path in sorted(Path("/").glob(pattern.lstrip("/")))]


def rabbitmq_bin() -> Path | None:
    """RabbitMQ's own `rabbitmq-server` script.

    Not the wrapper that Debian puts on PATH: that one changes to another account and to the system's own folders.
    """
    for pattern in RABBITMQ_FOLDERS:
        for found in sorted(Path("/").glob(f"{pattern.lstrip('/')}/rabbitmq-server"), reverse=True):
            return found
    wrapper = program("rabbitmq-server")
    return wrapper.resolve() if wrapper is not None and (wrapper.resolve().parent / "rabbitmq-env").exists() else None


def version_near(path: Path) -> str:
    """The version that the folders around a program are named after: `.../rabbitmq_server-3.10.8/sbin`."""
    places = [path.resolve(), *path.resolve().parent.parent.glob("lib/rabbitmq_server-*")]
    for place in places:
        if match := re.search(r"rabbitmq_server-(\d[\w.]*)", str(place)):
            return match[1]
    return ""


def _complete(folder: Path) -> bool:
    return (folder / "initdb").exists() and (folder / "postgres").exists()


def _version_in(folder: Path) -> tuple[int, ...]:
    match = re.search(r"(\d+(?:\.\d+)*)/bin$", str(folder))
    return tuple(int(part) for part in match[1].split(".")) if match else (0,)
