"""Databases that a setup has filled, kept across runs: the migrations of a grown app take longer than everything else.

What is kept is the data folder of the server, as a base backup taken while it runs (PostgreSQL's own way: a checkpoint,
a copy, the log that was written meanwhile, and the label that tells the next start). It is found again by a key over
all that the tables depend on: the server's programs, the setup, the files that it reads, the packages of the app's
environment. A setup whose inputs are not known is never kept.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from ..aio import in_thread
from ..seeds import token
from . import wheels
from .clients import rows
from .postgres_data import copy_folder, give, key_of
from .spec import Postgres

LAYOUT = "1"
"""Changes when what is kept changes."""
NAME = "jobcheck_template"
"""The database that a private server's lanes are cloned from."""
MOST = 5
"""Templates that are kept; the one that was not used for longest goes first. Each has some 60 MB."""
NEW_NAMES = 150000
"""The server version since which a base backup begins with `pg_backup_start`."""
DJANGO = r"([\w./-]*python[\w.]* )?[\w./-]*manage\.py migrate( --?[\w-]+(=[\w.-]+)?)*"
ALEMBIC = r"([\w./-]*python[\w.]* -m )?alembic upgrade \w+"
KNOWN = re.compile(f"{DJANGO}|{ALEMBIC}")
"""Setups whose inputs are known: migrations, and nothing else beside them."""
INPUTS = re.compile(r"migrations|alembic|versions|models|settings|apps\.py|manage\.py|schema|fixtures", re.I)
"""Files that such a setup may depend on, by their path."""
SUFFIXES = (".py", ".sql", ".ini", ".json")
SKIPPED = {"node_modules", "site-packages", "__pycache__", "build", "dist", "static", "media"}
RUNNING = ("postmaster.pid", "postmaster.opts")


def key(programs: Path, user: str | None, spec: Postgres, root: Path, seal: str) -> str:
    """The name under which this setup is kept; empty where it must not be. Reads the files that it depends on."""
    setup = spec.setup.strip()
    if not spec.cache or not setup:
        return ""
    file = root / setup
    if file.suffix == ".sql" and " " not in setup:
        files = [file] if file.is_file() else []
    elif KNOWN.fullmatch(setup):
        files = sorted(_inputs(root))
    else:
        return ""
    digest = hashlib.sha256(repr((LAYOUT, key_of(programs, user), setup, sorted(spec.extensions), seal)).encode())
    for one in files:
        digest.update(f"\0{os.path.relpath(one, root)}\0".encode())  # a file may lie elsewhere
        digest.update(one.read_bytes())
    return digest.hexdigest()[:24]


def _inputs(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        inside = Path(folder)
        folders[:] = [
            name
            for name in folders
            if name not in SKIPPED and not name.startswith(".") and not (inside / name / "pyvenv.cfg").exists()
        ]
        for name in names:
            path = inside / name
            if name.endswith(SUFFIXES) and INPUTS.search(str(path.relative_to(root))):
                yield path


def restore(name: str, data: Path, run: str) -> bool:
    """Fills the new folder `data` with what is kept under this name; False where nothing is."""
    kept = _folder(name)
    if not kept.is_dir() or not copy_folder(kept, data, run):
        shutil.rmtree(data, ignore_errors=True)
        return False
    os.utime(kept)
    return True


async def keep(
    admin: psycopg.AsyncConnection[dict[str, Any]], data: Path, name: str, user: str | None, run: str
) -> bool:
    """Keeps the running server's data under this name. False where it could not be: the next run sets up again."""
    new = admin.info.server_version >= NEW_NAMES
    draft = _folder(f".{name}.{token()}")
    try:
        await rows(
            admin,
            f"SELECT {'pg_backup_start' if new else 'pg_start_backup'}('jobcheck', true{'' if new else ', false'})",
        )
        try:
            copied = await in_thread(_copied, data, draft, run)
        finally:
            stop = "pg_backup_stop(false)" if new else "pg_stop_backup(false, false)"
            label = (await rows(admin, f"SELECT labelfile FROM {stop}"))[0]["labelfile"]
        return copied and await in_thread(_complete, data, draft, str(label), name, user, run)
    except (psycopg.Error, OSError):
        return False
    finally:
        await in_thread(shutil.rmtree, draft, True)


def _copied(data: Path, draft: Path, run: str) -> bool:
    draft.parent.mkdir(parents=True, exist_ok=True)
    return copy_folder(data, draft, run)


def _complete(data: Path, draft: Path, label: str, name: str, user: str | None, run: str) -> bool:
    """Adds what the backup needs to be started from, and gives it its name."""
    shutil.rmtree(draft / "pg_wal")
    if not copy_folder(data / "pg_wal", draft / "pg_wal", run):
        return False
    for file in RUNNING:
        (draft / file).unlink(missing_ok=True)
    for folder in ("pg_dynshmem", "pg_stat_tmp"):
        for left in (draft / folder).iterdir():
            left.unlink()
    (draft / "backup_label").write_text(label)
    give(draft / "backup_label", user)
    kept = _folder(name)
    if kept.exists():
        return True  # another run was faster
    draft.rename(kept)
    _tidy(kept)
    return True


def _tidy(mine: Path) -> None:
    others = sorted(
        (path for path in mine.parent.glob("template-*") if path != mine), key=lambda path: path.stat().st_mtime
    )
    for path in others[: max(0, len(others) + 1 - MOST)]:
        shutil.rmtree(path, ignore_errors=True)


def _folder(name: str) -> Path:
    return wheels.cache_root() / (name if name.startswith(".") else f"template-{name}")
