"""The folder of one run: `reports/<when>-<name>/`, and `reports/latest`, which names the last finished one."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from jobcheck.clock import REAL, Clock, iso, stamp
from jobcheck.errors import UsageError
from jobcheck.seeds import token

from .files import refused

LATEST = "latest"
JOURNAL = "journal.jsonl"
REPORT = "report.json"
JUNIT = "junit.xml"
HTML = "report.html"
SUMMARY = "summary.md"

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_LIMIT = 60
"""Characters of a run's name that reach the file system: test ids can be longer than a path part may be."""


def slug(name: str) -> str:
    """A part of a path that every file system takes: `test_jobs.py::test_a[x y]` gives `test_jobs.py-test_a-x-y`."""
    return _UNSAFE.sub("-", name).strip("-.")[:_NAME_LIMIT].rstrip("-.") or "run"


class RunFolder:
    """Where one run keeps what it writes. Made by `create`, or by `open` for a stored run.

    `path` is the folder; `temp` a short-lived one beside it in the system's temporary folder, for sockets and server
    data, made when first asked for and removed by `close`.
    """

    def __init__(self, path: Path, clock: Clock = REAL) -> None:
        self.path = path
        self.clock = clock
        self.began = clock.now()
        """The run's zero, on `clock.now()`."""
        self.started = iso(clock.wall())
        self._temp: Path | None = None

    @classmethod
    def create(cls, root: Path, name: str, clock: Clock = REAL) -> RunFolder:
        """Makes a new folder under `root`, with a number behind its name when another run began in the same second.

        Raises UsageError or Aborted when the folder cannot be made or written.
        """
        base = f"{stamp(clock.wall())}-{slug(name)}"
        number = 1
        try:
            root.mkdir(parents=True, exist_ok=True)
            while True:
                path = root / (base if number == 1 else f"{base}-{number}")
                try:
                    path.mkdir()
                    return cls(path, clock)
                except FileExistsError:
                    number += 1
        except OSError as error:
            raise refused(root, error, "make a run folder in") from error

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """A stored run: its folder, or any file in it. Raises UsageError when there is none."""
        folder = path if path.is_dir() else path.parent
        if not path.exists() or not ((folder / JOURNAL).exists() or (folder / REPORT).exists()):
            raise UsageError(
                f"no run at {path}: expected a folder with {JOURNAL} or {REPORT}",
                hint="name a folder under reports/, or reports/latest",
            )
        return cls(folder.resolve())

    @property
    def name(self) -> str:
        """The folder's own name, as `Report.run` has it."""
        return self.path.name

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    @property
    def report(self) -> Path:
        return self.path / REPORT

    @property
    def junit(self) -> Path:
        return self.path / JUNIT

    @property
    def html(self) -> Path:
        return self.path / HTML

    @property
    def summary(self) -> Path:
        return self.path / SUMMARY

    @property
    def temp(self) -> Path:
        """A private folder (mode 0700) with a short path, as Unix sockets need: at most about 100 characters."""
        if self._temp is None:
            try:
                self._temp = Path(tempfile.mkdtemp(prefix="jobcheck-"))
            except OSError as error:
                raise refused(Path(tempfile.gettempdir()), error, "make a temporary folder in") from error
        return self._temp

    def output(self, name: str) -> Path:
        """A file for what a process printed: `<run>/output/<name>.log`, its folder made."""
        path = self.path / "output" / f"{slug(name)}.log"
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise refused(path.parent, error, "make") from error
        return path

    def finish(self) -> None:
        """Makes `latest` name this run. Called when the reports are written, so that it never names half a run.

        The link is relative, so that `reports/` can be moved, and is replaced in one step. A file or folder of the
        user's that has the name is left alone (UsageError).
        """
        latest = self.path.parent / LATEST
        if latest.exists() and not latest.is_symlink():
            raise UsageError(
                f"{latest} is not a link, so it is left alone; the run is in {self.path}",
                hint=f"move {latest} away",
            )
        fresh = self.path.parent / f".{LATEST}-{token()}"
        try:
            fresh.symlink_to(self.path.name, target_is_directory=True)
            fresh.replace(latest)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise refused(latest, error, "set") from error

    def close(self) -> None:
        """Removes the temporary folder. What the run wrote stays."""
        if self._temp is not None:
            shutil.rmtree(self._temp, ignore_errors=True)
            self._temp = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
