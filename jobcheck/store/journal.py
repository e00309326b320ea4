"""The journal of a run: one JSON object a line, appended and flushed as it happens, so that a crash keeps the history.

Every line has `type` (`run`, `subject`, `trial`, `strike`, `event`, `end`) and `at` (seconds since the run began). A
`trial` line holds a whole TrialRecord under `trial`: `jobcheck judge` needs nothing else.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jobcheck.errors import UsageError
from jobcheck.history.codec import from_json, to_json
from jobcheck.history.records import TrialRecord

from .files import refused
from .folder import JOURNAL, RunFolder

TORN = "torn"
"""The type of the item that `read_journal` gives last when the file ends within a line."""

Redact = Callable[[Any], Any]
"""Takes a JSON value and gives one without secrets."""


class Journal:
    """Appends to a run's journal. Lines of several threads never mix. Use it as a context manager, or close it.

    `redact` sees each line's JSON value before it is written. Raises UsageError or Aborted when the disk refuses.
    """

    def __init__(self, folder: RunFolder, *, redact: Redact | None = None) -> None:
        self.path = folder.journal
        self._clock = folder.clock
        self._began = folder.began
        self._redact = redact
        self._lock = threading.Lock()
        try:
            self._file = self.path.open("ab", buffering=0)
        except OSError as error:
            raise refused(self.path, error) from error

    def trial(self, record: TrialRecord) -> None:
        """Keeps one trial, whole."""
        self.write("trial", trial=record)

    def write(self, type: str, **values: Any) -> None:  # noqa: A002 - the key's own name
        """Appends one line. `values` may be records, or lists and dicts of them."""
        line = {"type": type, "at": round(self._clock.now() - self._began, 4), **to_json(values)}
        if self._redact is not None:
            line = self._redact(line)
        # ASCII escapes keep line separators and lone surrogates of other people's payloads from tearing a line.
        data = json.dumps(line, default=str, separators=(",", ":")).encode("ascii") + b"\n"
        with self._lock:
            try:
                while data:
                    data = data[self._file.write(data) or 0 :]
            except OSError as error:
                raise refused(self.path, error) from error

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a journal, given its file or its run folder, in order.

    A last line that was cut short by a crash is given as `{"type": "torn", "line": 17, "bytes": 311}`. Raises
    UsageError when there is no journal, or when a line before the last is no JSON object.
    """
    file = path / JOURNAL if path.is_dir() else path
    try:
        with file.open("rb") as lines:
            for number, raw in enumerate(lines, 1):
                try:
                    line = json.loads(raw)
                except ValueError:
                    line = None
                if not raw.endswith(b"\n"):
                    # Even when it reads as JSON: the writer ends a line last of all, so this one is not whole.
                    yield {"type": TORN, "line": number, "bytes": len(raw)}
                elif not isinstance(line, dict) or "type" not in line:
                    raise UsageError(
                        f"{file} line {number}: expected a JSON object with `type`, got {raw[:60]!r}",
                        hint="the journal was damaged after it was written; take another copy of the run",
                    )
                else:
                    yield line
    except OSError as error:
        raise UsageError(
            f"cannot read the journal {file}: {error.strerror}", hint="name a run folder under reports/"
        ) from error


def trials(path: Path) -> list[TrialRecord]:
    """The trials of a journal in the order in which they ended. Raises UsageError as `read_journal` does."""
    out = []
    for line in read_journal(path):
        if line["type"] == "trial":
            try:
                out.append(from_json(TrialRecord, line.get("trial")))
            except (TypeError, ValueError, KeyError) as error:
                raise UsageError(f"{path}: trial {len(out) + 1} cannot be read: {error}") from error
    return out
