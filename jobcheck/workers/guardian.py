"""The guardian's side in the harness: starts it, tells it what to watch. The process itself is `guard`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from . import platform

CLOSE_WITHIN = 30.0
"""Seconds that the last sweep may take."""

_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from jobcheck.workers.guard import main; main(sys.argv[2:])"


class Guardian:
    """A process that outlives the harness for a moment and leaves nothing of the run behind.

    It holds the read end of a pipe whose write end is the harness's alone. When that closes - at `close`, or because
    the harness ended in whatever way - it kills everything that carries the run's id or was registered, removes the
    registered folders, and ends. Without a guardian a `kill -9` of the harness leaves workers that go on working.
    """

    def __init__(self, run_id: str, popen: subprocess.Popen[bytes]) -> None:
        self.run_id = run_id
        self._popen = popen

    @classmethod
    def start(cls, run_id: str) -> Guardian:
        """Starts the process and returns at once: what is registered meanwhile waits in the pipe."""
        package = Path(__file__).resolve().parents[2]
        # -I and -S: the app's variables, site hooks and current folder are no business of the guardian's.
        flags = ["-I", "-S"] if platform.LINUX else ["-I"]
        popen = subprocess.Popen(
            [sys.executable, *flags, "-c", _BOOT, str(package), run_id, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath)},
            start_new_session=True,
            bufsize=0,
        )
        return cls(run_id, popen)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def expect(self, pipe: int) -> None:
        """Announces a process that is about to be started: its output goes to the pipe with this inode number."""
        self._tell(f"pipe {pipe}")

    def watch(self, pid: int, *, start: int | None = None, polite: int = 0) -> None:
        """Registers the tree of `pid`. `polite` is a signal that it gets a moment before SIGKILL (0: none)."""
        start = platform.start_time(pid) if start is None else start
        if start is not None:
            self._tell(f"pid {pid} {start} {int(polite)}")

    def unwatch(self, pid: int) -> None:
        """Forgets a tree that is gone, so that a later process with its number is safe."""
        self._tell(f"gone {pid}")

    def watch_folder(self, path: Path) -> None:
        """Registers a temporary folder for removal. Raises ValueError for a path that no run should own."""
        path = Path(path).absolute()
        if "\n" in str(path) or len(path.parts) < 3 or path == Path.home():
            raise ValueError(f"expected a temporary folder of this run, got {str(path)!r}")
        self._tell(f"folder {path}")

    def close(self) -> None:
        """Ends the guardian: it sweeps what is left and this returns when it has ended. More calls do nothing."""
        if self._popen.stdin is None or self._popen.stdin.closed:
            return
        self._tell("done")
        self._popen.stdin.close()
        try:
            self._popen.wait(CLOSE_WITHIN)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()

    def _tell(self, line: str) -> None:
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(line.encode() + b"\n")
        except (BrokenPipeError, ValueError):
            # It was killed, or closed before: the supervisor still ends its trees, only a crash goes unguarded.
            pass
