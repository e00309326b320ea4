"""The data folder of a private PostgreSQL: made once by `initdb`, kept in the cache, copied for each run.

`initdb` takes 0.3 to 0.45 s, a copy 0.05 s (measured for 15 and 18 on two cores). It lies in a memory file system
where there is one: on the test machine's disk each new file took up to a millisecond, and a cluster has a thousand, a
clone of a database three hundred (0.27 s instead of 0.007 s).
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import pwd
import shutil
import subprocess
from pathlib import Path

from ..errors import ServiceError
from ..seeds import token
from ..workers import platform
from ..workers.env import scrubbed
from . import wheels

SUPERUSER = "postgres"
"""The role that owns a private server, and as which everyone connects."""
INITDB_WITHIN = 120
"""Seconds."""
LOCK_FILE = "postmaster.pid"
SHARED_MEMORY_LINE = 6
"""The line of the lock file, from 0, with key and number of the server's segment (src/include/utils/pidfile.h)."""
IPC_RMID = 0


def account() -> str | None:
    """The account that the server runs as: PostgreSQL refuses root. None: our own."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise ServiceError("expected an account 'postgres' or 'nobody' to run PostgreSQL as, because it refuses root")


def can_run(programs: Path, user: str | None) -> bool:
    """Whether `user` can reach `programs`: a cache in root's home is root's alone."""
    return user is None or platform.executable_by_others(programs / "postgres")


def copy_programs(programs: Path, tree: Path, into: Path, run: str = "") -> Path:
    """Copies `tree`, which holds all that belongs to `programs`, to where everyone can read it; gives the new place.

    The copy is made of hard links where that is possible. `run`: as `prepare` has it.
    """
    target = into / "programs"
    linked = subprocess.run(["cp", "-Rl", str(tree), str(target)], capture_output=True, check=False, env=_of(run))
    if linked.returncode != 0:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(tree, target, symlinks=True)
    return target / programs.relative_to(tree)


def prepare(programs: Path, data: Path, user: str | None, run: str = "") -> None:
    """Fills the new folder `data`. Raises ServiceError with initdb's words.

    `run` is the run's id: its guardian ends what fills the folder still when the harness is killed meanwhile.
    """
    kept = wheels.cache_root() / f"pgdata-{key_of(programs, user)}"
    # -p: in the cache it already belongs to the account that the server runs as.
    if kept.is_dir() and copy_folder(kept, data, run):
        return
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(mode=0o700)
    give(data, user)
    _initdb(programs, data, user, run)
    draft = kept.with_name(f".{kept.name}.{token()}")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        if copy_folder(data, draft, run):
            draft.rename(kept)
    except OSError:
        pass  # the cache cannot be written, or another run was faster: the next run makes its own
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def forget_shared_memory(data: Path) -> None:
    """Gives back what a server that was killed could not give back itself. None of its processes may live.

    That is a small segment of System V shared memory, which is named in its lock file; the file goes, too.
    """
    file = data / LOCK_FILE
    with contextlib.suppress(OSError, ValueError, IndexError):
        number = int(file.read_text().splitlines()[SHARED_MEMORY_LINE].split()[1])
        ctypes.CDLL(None).shmctl(number, IPC_RMID, None)
    file.unlink(missing_ok=True)


def copy_folder(source: Path, target: Path, run: str) -> bool:
    """Copies a folder with its owners; False where it failed."""
    command = ["cp", "-Rp", str(source), str(target)]
    return subprocess.run(command, capture_output=True, check=False, env=_of(run)).returncode == 0


def _of(run: str) -> dict[str, str]:
    """The environment of a helper that belongs to a run."""
    return {**os.environ, platform.RUN_VARIABLE: run}


def key_of(programs: Path, user: str | None) -> str:
    """Names one build of the programs and one owner of the files."""
    at = (programs / "initdb").resolve()
    stat = at.stat()
    text = f"{stat.st_size} {stat.st_mtime_ns} {(programs / 'postgres').stat().st_size} {user or os.geteuid()} 1"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def give(path: Path, user: str | None) -> None:
    """Makes a file belong to the account that the server runs as."""
    if user is not None:
        entry = pwd.getpwnam(user)
        os.chown(path, entry.pw_uid, entry.pw_gid)


def _initdb(programs: Path, data: Path, user: str | None, run: str) -> None:
    command = [str(programs / "initdb"), "-D", str(data), "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-sync"]
    entry = pwd.getpwnam(user) if user is not None else None
    try:
        done = subprocess.run(
            [*command, "--locale", "C.UTF-8"] if platform.LINUX else [*command, "--locale", "C"],
            capture_output=True,
            text=True,
            timeout=INITDB_WITHIN,
            stdin=subprocess.DEVNULL,
            cwd=data,
            env=scrubbed({"TZ": "UTC", platform.RUN_VARIABLE: run}, home=data),
            user=entry.pw_uid if entry else None,
            group=entry.pw_gid if entry else None,
            extra_groups=[] if entry else None,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceError(f"could not run {command[0]}: {error}") from None
    if done.returncode != 0:
        raise ServiceError(
            f"{command[0]} failed with exit code {done.returncode}: {(done.stderr or done.stdout).strip()}"
        )
