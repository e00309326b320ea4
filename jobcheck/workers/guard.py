"""The guardian process. Run by `guardian`, never imported by the harness; standard library only on Linux.

It reads lines from its standard input: `pid <pid> <start> <signal>`, `gone <pid>`, `folder <path>`, `done`. When the
input ends, or the harness does, it sweeps and ends.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
from dataclasses import dataclass, field

from ..clock import REAL
from . import platform
from .platform import Process

POLITE_SECONDS = 0.5
"""How long registered processes have between their own signal and SIGKILL, so that a database can free its memory."""
SWEEP_SECONDS = 20.0
"""After this a sweep gives up: what is left cannot be killed."""
PAUSE = 0.005
"""Seconds between two looks."""


@dataclass(slots=True)
class Watched:
    """What the harness registered."""

    run: str
    roots: dict[int, int] = field(default_factory=dict)
    polite: dict[int, int] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        """Takes one line of the protocol; a line that makes no sense is passed over."""
        word, _, rest = line.partition(" ")
        try:
            if word == "pid":
                pid, start, number = (int(part) for part in rest.split())
                self.roots[pid] = start
                self.polite[pid] = number
            elif word == "gone":
                self.roots.pop(int(rest), None)
                self.polite.pop(int(rest), None)
            elif word == "folder" and rest:
                self.folders.append(rest)
        except ValueError:
            pass


def main(arguments: list[str]) -> None:
    """`arguments`: the run's id and the pid of the harness."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    run, harness = arguments[0], int(arguments[1])
    watched = Watched(run)
    listen(watched, 0, harness)
    sweep(watched, spare={os.getpid(), harness})


def listen(watched: Watched, fd: int, harness: int) -> None:
    """Takes lines from `fd` until it ends, says `done`, or the harness ends.

    The harness is watched too, because a fork of it (a test suite's own) may keep the pipe open.
    """
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    ended = _pidfd(harness)
    if ended is not None:
        poll.register(ended, select.POLLIN)
    rest = b""
    while True:
        ready = [number for number, _ in poll.poll()]
        if fd in ready:
            data = os.read(fd, 65536)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                watched.take(line.decode(errors="surrogateescape"))
            if not data or b"done" in lines:
                return
        elif ready:  # the harness has ended and there is nothing more to read
            return


def sweep(watched: Watched, spare: set[int]) -> None:
    """Kills everything of the run until two looks in a row find nothing, then removes the folders."""
    mark = f"{platform.RUN_VARIABLE}={watched.run}".encode()
    deadline = REAL.now() + SWEEP_SECONDS
    seen = dict(watched.roots)

    def left() -> list[Process]:
        snapshot = platform.processes()
        found = [one for one in platform.members(seen, b"", snapshot) if one.pid not in spare]
        known = {one.pid for one in found}
        marked = {
            one.pid: one.start
            for one in snapshot
            if one.alive and one.pid not in known | spare and platform.carries(one.pid, mark)
        }
        if marked:
            found += [one for one in platform.members(marked, b"", snapshot) if one.pid not in known | spare]
        seen.update({one.pid: one.start for one in found})
        return found

    _ask_politely(watched, left())
    clean = 0
    while clean < 2 and REAL.now() < deadline:
        found = left()
        clean = 0 if found else clean + 1
        for one in found:
            platform.send(one.pid, signal.SIGKILL)
        select.select([], [], [], PAUSE)
    for folder in watched.folders:
        shutil.rmtree(folder, ignore_errors=True)


def _ask_politely(watched: Watched, found: list[Process]) -> None:
    asked = [one for one in found if watched.polite.get(one.pid, 0) not in (0, signal.SIGTERM)]
    for one in asked:
        platform.send(one.pid, watched.polite[one.pid])
    end = REAL.now() + POLITE_SECONDS
    while any(platform.same(one) for one in asked) and REAL.now() < end:
        select.select([], [], [], PAUSE)


def _pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when `pid` ends; None where the platform has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
