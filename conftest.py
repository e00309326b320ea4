"""What holds for every test: a process or a listening socket that a test leaves behind fails that test.

(A leaked warning fails by `filterwarnings = error`, a leaked task by `asyncio.run` and `aio.Tasks`.)
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobcheck.clock import REAL

pytest_plugins = ["pytester"]
# A shell's background job ignores Ctrl-C, and one under nohup a hang-up: so would everything that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.environ.pop("GITHUB_STEP_SUMMARY", None)  # the runs of our tests are not the summary of the job that runs them

GRACE = 3.0
"""Seconds in which a process that was told to end may do so."""


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    children = _children()
    listeners = _listeners()
    yield
    left = _children() - children
    gone_by = REAL.now() + GRACE
    while left and REAL.now() < gone_by:
        threading.Event().wait(0.02)  # not waitpid: the status belongs to whoever started the process
        left = _children() - children
    if left:
        named = [f"{pid} {_command(pid)}" for pid in sorted(left)]
        for pid in left:
            _kill(pid)
        pytest.fail(f"the test left processes running: {', '.join(named)}", pytrace=False)
    if extra := _listeners() - listeners:
        pytest.fail(f"the test left listening sockets open: {sorted(extra)}", pytrace=False)


def _children() -> set[int]:
    """Ids of this process's own children that run (no zombies: those have ended)."""
    found: set[int] = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        try:
            found.update(int(pid) for pid in listing.read_text().split())
        except OSError:
            continue  # that thread has ended
    return {pid for pid in found if _runs(pid)}


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has just ended


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:120].strip()
    except OSError:
        return "(has just ended)"


def _listeners() -> set[tuple[str, int]]:
    """Addresses on which this very process listens."""
    found: set[tuple[str, int]] = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            if not str(link.readlink()).startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(link.name))) as sock:
                if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and sock.family != socket.AF_UNIX:
                    found.add(sock.getsockname()[:2])
        except OSError:
            continue  # closed meanwhile
    return found
