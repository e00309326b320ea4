"""`jobcheck-accepted.toml`: known findings, in a reviewed file. They are still shown, and do not fail the run.

```toml
[[accepted]]
id = "c07e11"
because = "the provider deduplicates by invoice for 24 h"
until = 2027-03-31
```

Every acceptance has a reason and an end; the last day still counts.
"""

from __future__ import annotations

import datetime as dt
import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jobcheck.errors import UsageError

from .files import refused, write_whole

FILE = "jobcheck-accepted.toml"
_HEADER = "# Known findings: shown in every run, not failing it. Written by `jobcheck accept`, meant to be reviewed.\n"


@dataclass(frozen=True, slots=True)
class Accepted:
    """One known finding."""

    id: str
    because: str
    until: dt.date
    """The last day on which it holds."""


@dataclass(frozen=True, slots=True)
class Review:
    """The accepted findings held against those of a run."""

    holding: dict[str, str]
    """Reason by finding id: these do not fail the run."""
    expired: tuple[Accepted, ...]
    """Past their end: found again, they fail."""
    vanished: tuple[Accepted, ...]
    """No longer found: fixed, or no longer tested."""

    @property
    def lines(self) -> tuple[str, ...]:
        """A sentence for each entry that needs a person."""
        late = (f"accepted finding {item.id} expired on {item.until}: {item.because}" for item in self.expired)
        gone = (f"accepted finding {item.id} was not found; remove it from {FILE}" for item in self.vanished)
        return (*late, *gone)


def load(path: Path) -> tuple[Accepted, ...]:
    """The entries of the file, or of the file in a folder; none when it is missing. Raises UsageError when wrong."""
    file = _file(path)
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise refused(file, error, "read") from error
    except ValueError as error:
        raise UsageError(f"{file} is no TOML: {error}") from error
    entries = data.get("accepted", [])
    if not isinstance(entries, list):
        raise UsageError(f"{file}: expected [[accepted]] tables, got {type(entries).__name__}")
    return tuple(_entry(file, number, item) for number, item in enumerate(entries, 1))


def add(path: Path, id: str, because: str, until: dt.date) -> Path:  # noqa: A002 - the key's own name
    """Appends an entry, leaving the rest of the file (and its comments) as it is.

    Raises UsageError when the reason is empty or the id is already there.
    """
    file = _file(path)
    if not because.strip():
        raise UsageError(f"no reason given for accepting {id}", hint='--because "who decided it, and why"')
    if any(item.id == id for item in load(file)):
        raise UsageError(f"{id} is already in {file}", hint="change its `until` there")
    before = file.read_text("utf-8") if file.exists() else _HEADER
    # A JSON string is a TOML basic string, but for the DEL character.
    quoted = json.dumps(because, ensure_ascii=False).replace("\x7f", "\\u007f")
    block = f"[[accepted]]\nid = {json.dumps(id)}\nbecause = {quoted}\nuntil = {until.isoformat()}\n"
    return write_whole(file, before.rstrip("\n") + "\n\n" + block)


def review(entries: Iterable[Accepted], found: Iterable[str], today: dt.date) -> Review:
    """Which entries hold on `today`, which are over, and which name nothing that was `found` (finding ids)."""
    ids = set(found)
    known = list(entries)
    return Review(
        holding={item.id: item.because for item in known if item.id in ids and item.until >= today},
        expired=tuple(item for item in known if item.until < today),
        vanished=tuple(item for item in known if item.id not in ids and item.until >= today),
    )


def _file(path: Path) -> Path:
    return path / FILE if path.is_dir() else path


def _entry(file: Path, number: int, item: object) -> Accepted:
    where = f"{file}, entry {number}"
    if not isinstance(item, dict):
        raise UsageError(f"{where}: expected a table, got {item!r}")
    for key in ("id", "because"):
        if not isinstance(item.get(key), str) or not item[key].strip():
            raise UsageError(f"{where}: expected a text under `{key}`, got {item.get(key)!r}")
    until = item.get("until")
    if isinstance(until, str):
        try:
            until = dt.date.fromisoformat(until)
        except ValueError:
            pass  # told below, with what was seen
    if isinstance(until, dt.datetime):
        until = until.date()
    if not isinstance(until, dt.date):
        raise UsageError(f"{where}: expected a date such as 2027-03-31 under `until`, got {until!r}")
    return Accepted(item["id"], item["because"], until)
