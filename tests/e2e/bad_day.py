"""The command line in a project of its own, watched from outside: what it says, how it ends, and what it leaves.

Everything that a run starts inherits a variable of our own (all `LC_*` are handed on), so that what is left is known
whatever the run was able to note about itself. Several runs of other tests may go on meanwhile.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobcheck.clock import REAL
from jobcheck.seeds import token
from jobcheck.store.journal import TORN, read_journal
from jobcheck.workers import platform

from . import tiny

LOOK = 0.01
"""Seconds between two looks at what a run has started."""
GONE_WITHIN = 15.0
"""Seconds in which a run that has ended leaves nothing."""
ONCE = ("--expect", "at_least_once: mark done")
HANDLER = ("--handler", "tiny:work", "--case", "row", *ONCE)
QUEUE = ("enqueue", *ONCE, "--lanes", "1")
UGLY = ("Traceback", "Exception in", "was never awaited", "was never retrieved", "a bug in jobcheck", "sys:1:")


RIG = """
import jobcheck
tiny = jobcheck.Rig(jobcheck.celery("tiny:app"), upstreams={{{upstreams}}}, env={{{env}}})
def enqueue(case):
    import tiny
    key = f"key-{{case.number}}"
    case.owns(key=key)
    tiny.work.delay(key)
def row(case):
    key = f"key-{{case.number}}"
    case.owns(key=key)
    return key
"""
SLOW = "    import time\n    time.sleep(0.3)\n" + tiny.ONCE
"""A job that is still going on when something happens to its surroundings."""
ROW = """
    import os, psycopg
    with psycopg.connect(os.environ["DB_URL"], autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS done (key text)")
        connection.execute("INSERT INTO done VALUES (%s)", [key])
"""
ESCAPES = """
    import os, time
    if os.fork() == 0:
        os.setsid()                     # a child that left its session ...
        if os.fork():
            os._exit(0)                 # ... and lost its parent
        os.closerange(0, 100)
        time.sleep(600)
        os._exit(0)
"""


def rig(upstreams: str, env: str = '"BROKER_URL": "{broker.url}"') -> str:
    """The text of a rig file for the tiny app with these upstreams and variables, as they are written there."""
    return RIG.format(upstreams=upstreams, env=env)


WITH_DATABASE = rig(
    '"broker": jobcheck.redis(), "db": jobcheck.postgres()', '"BROKER_URL": "{broker.url}", "DB_URL": "{db.url}"'
)


def project(folder: Path, body: str = tiny.ONCE, *, text: str = "", **values: str) -> Path:
    """A project with the tiny app. `text` replaces the rig file's; `values` are those of `tiny.write`."""
    folder.mkdir(parents=True, exist_ok=True)
    tiny.write(folder, body, **values)
    if text:
        (folder / "rig.py").write_text(text)
    (folder / "pyproject.toml").write_text('[tool.jobcheck]\nrig = "rig.py:tiny"\n')
    return folder


@dataclass(slots=True)
class Ended:
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """The lines of the error, without the progress before it."""
        lines = self.err.splitlines()
        first = next((at for at, line in enumerate(lines) if line.startswith("error: ")), len(lines))
        return lines[first:]

    def says(self, code: int, *texts: str) -> Ended:
        """Checks the exit code, that one message was given, that it holds the texts, and that nothing is ugly."""
        shown = f"exit code {self.code}\n{self.out}\n{self.err}"
        assert self.code == code, shown
        assert not [word for word in UGLY if word in self.err + self.out], shown
        assert len([line for line in self.err.splitlines() if line.startswith("error: ")]) <= 1, shown
        for text in texts:
            assert text in self.err + self.out, f"expected {text!r} in\n{shown}"
        return self


@dataclass(slots=True)
class Run:
    """A command line that runs."""

    popen: subprocess.Popen[bytes]
    mark: bytes
    files: Path
    """Folder of what it says."""
    temporary: Path
    """The run's TMPDIR."""
    folder: Path
    """The project."""
    earlier: list[Path]
    """Journals that were there before."""
    run_id: str = ""
    seen: dict[int, int] = field(default_factory=dict)
    """pid -> start of everything that descended from it at some moment."""
    _watcher: threading.Thread | None = None

    def watch(self) -> None:
        self._watcher = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        while self.popen.poll() is None:
            self.look()
            threading.Event().wait(LOOK)

    def look(self) -> None:
        """Notes what runs now."""
        snapshot = platform.processes()
        below = platform.descendants([self.popen.pid], snapshot)
        for one in snapshot:
            if one.pid in below and one.pid != self.popen.pid and one.alive:
                self.seen[one.pid] = one.start
                words = command(one.pid).split("\0")[:-1]
                if len(words) > 3 and "jobcheck.workers.guard" in words[-4] and words[-1] == str(self.popen.pid):
                    self.run_id = words[-2]

    def until(self, condition: Callable[[], Any], what: str, seconds: float = 60.0, *, or_its_own: bool = False) -> Any:
        """Waits for a condition while the command runs; with `or_its_own`, its own end will do too."""
        end = REAL.now() + seconds
        while True:
            if found := condition():
                return found
            if or_its_own and self.popen.poll() is not None:
                return None
            assert self.popen.poll() is None, f"it ended before {what}: {self.text()}"
            assert REAL.now() < end, f"waited {seconds:g} s for {what}: {self.text()}"
            threading.Event().wait(0.003)

    def says(self, pattern: str) -> Any:
        """Waits until stderr holds what matches."""
        return self.until(lambda: re.search(pattern, self.text()), f"{pattern!r} on stderr")

    def text(self) -> str:
        return (self.files / "err").read_text(errors="replace")

    def trials(self, count: int) -> None:
        """Waits until that many trials are in the journal."""

        def there() -> bool:
            mine = [path for path in journals(self.folder) if path not in self.earlier]
            return bool(mine) and types(mine[-1]).count("trial") >= count

        self.until(there, f"{count} trials")

    def find(self, *words: str) -> int:
        """Waits for a process of this run whose command line holds the words; gives its pid."""

        def look() -> int:
            return next((pid for pid in list(self.seen) if all(word in command(pid) for word in words)), 0)

        return int(self.until(look, f"a process with {words}"))

    def marked(self) -> dict[int, str]:
        """What lives and carries our mark or descended from the run, but for the command line itself."""
        found = {}
        for one in platform.processes():
            mine = self.seen.get(one.pid) == one.start or platform.carries(one.pid, self.mark)
            if one.alive and one.pid != self.popen.pid and (mine or self._guards(one.pid)):
                found[one.pid] = command(one.pid).replace("\0", " ")[:150]
        return found

    def _guards(self, pid: int) -> bool:
        text = command(pid)
        return "jobcheck.workers.guard" in text and f"\0{self.popen.pid}\0" in text

    def folders(self) -> list[Path]:
        """Temporary folders of the run."""
        if not self.run_id:  # it never had a guardian, which comes first
            return []
        bases = {self.temporary, Path("/tmp"), Path("/dev/shm")}
        return [path for base in bases for path in base.glob(f"jobcheck-{self.run_id}*")]

    def send(self, number: int, *, group: bool = False) -> None:
        """A signal to the command line alone, or to its process group as a terminal does."""
        if self.popen.poll() is None:
            (os.killpg if group else os.kill)(self.popen.pid, number)

    def end(self, seconds: float = 60.0) -> Ended:
        """Waits for the end of the command line, then for the end of all else, and fails when something is left."""
        try:
            code = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {seconds:g} s: {self.text()}\n{self.marked()}") from None
        ended = Ended(code, (self.files / "out").read_text(errors="replace"), self.text())
        end = REAL.now() + GONE_WITHIN
        while left := [*self.marked().items(), *self.folders()]:
            if REAL.now() > end:
                raise AssertionError(f"left after {GONE_WITHIN:g} s: {left}\n{ended.err}")
            threading.Event().wait(LOOK)
        return ended

    def close(self) -> None:
        """Leaves nothing, whatever the test found."""
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        if self._watcher is not None:
            self._watcher.join()
        end = REAL.now() + GONE_WITHIN
        while self.marked() and REAL.now() < end:
            threading.Event().wait(LOOK)
        for pid in self.marked():
            platform.send(pid, signal.SIGKILL)


@contextmanager
def start(folder: Path, *words: str, env: Mapping[str, str | None] | None = None, **popen: Any) -> Iterator[Run]:
    """Starts `jobcheck WORDS` in the folder, as leader of a process group. `env` adds variables; None takes one out."""
    mark = f"LC_JOBCHECK_DAY={token()}"
    name, _, value = mark.partition("=")
    mixed = {**os.environ, "COLUMNS": "160", name: value, **(env or {})}
    earlier = journals(folder)
    files = folder.parent / f"said-{token()}"
    files.mkdir()
    with (files / "out").open("ab") as out, (files / "err").open("ab") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "jobcheck", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            env={key: item for key, item in mixed.items() if item is not None},
            start_new_session=True,
            **{"stdout": out, "stderr": err, **popen},
        )
    run = Run(process, mark.encode(), files, Path(mixed.get("TMPDIR") or "/tmp"), folder, earlier)
    run.watch()
    try:
        yield run
    finally:
        run.close()


def jobcheck(folder: Path, *words: str, env: Mapping[str, str | None] | None = None, **popen: Any) -> Ended:
    """Runs `jobcheck WORDS` to its end; nothing may be left."""
    with start(folder, *words, env=env, **popen) as run:
        return run.end()


def at(run: Run, moment: str) -> None:
    """Waits for a named moment of a run with a database."""
    moments: dict[str, Callable[[], Any]] = {
        "a guardian": lambda: run.until(lambda: run.run_id, moment),
        "copying a database": lambda: run.until(
            lambda: [path for path in run.folders() if "-db-" in path.name], moment
        ),
        "both servers": lambda: run.says("db: postgres"),
        "the first trial": lambda: run.trials(1),
        "strikes": lambda: run.trials(4),
    }
    moments[moment]()


def command(pid: int) -> str:
    """The command line of a process, its words separated by NUL."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def journals(folder: Path) -> list[Path]:
    """The journals of the project's runs, oldest first."""
    return sorted((folder / "reports").glob("*-*/journal.jsonl"))


def kept(folder: Path) -> list[str]:
    """The types of the lines of the latest journal, a torn last line left out."""
    return types(journals(folder)[-1])


def types(journal: Path) -> list[str]:
    """The types of the lines of a journal, a torn last line left out."""
    return [str(line["type"]) for line in read_journal(journal) if line["type"] != TORN]
