"""The guardian process. Run by `guardian`, never imported by the harness; standard library only on Linux.

It reads lines from its standard input: `pipe <inode>`, `pid <pid> <start> <signal>`, `gone <pid>`, `folder <path>`,
`done`. When the input ends, or the harness does, it sweeps and ends.

A process that was being started when the harness died is not registered. It is known by the environment of the run;
by the pipe that its output goes to, where the program has written over its environment meanwhile (a Redis shows a
title there); and as long as it has not become its program it looks like the harness, and is waited for.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
from dataclasses import dataclass, field

from ..clock import REAL
from . import clock_pages, platform
from .platform import Process

POLITE_SECONDS = 0.5
"""How long registered processes have between their own signal and SIGKILL, so that a database can free its memory."""
SWEEP_SECONDS = 20.0
"""After this a sweep gives up: what is left cannot be killed."""
PAUSE = 0.005
"""Seconds between two looks."""
UNBORN_SECONDS = 2.0
"""How long a child of the dead harness that has not become its program yet is waited for."""


@dataclass(slots=True)
class Watched:
    """What the harness registered."""

    run: str
    roots: dict[int, int] = field(default_factory=dict)
    polite: dict[int, int] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    pipes: set[int] = field(default_factory=set)
    """Where the output of what was started goes, by inode number."""

    def take(self, line: str) -> None:
        """Takes one line of the protocol; a line that makes no sense is passed over."""
        word, _, rest = line.partition(" ")
        try:
            if word == "pipe":
                self.pipes.add(int(rest))
            elif word == "pid":
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
    looks_like = platform.command(harness)
    closed = listen(watched, 0, harness)
    sweep(watched, spare={os.getpid(), harness}, unborn=b"" if closed else looks_like)


def listen(watched: Watched, fd: int, harness: int) -> bool:
    """Takes lines from `fd` until it ends, says `done` (True), or the harness ends.

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
                return b"done" in lines
        elif ready:  # the harness has ended and there is nothing more to read
            return False


def sweep(watched: Watched, spare: set[int], unborn: bytes = b"") -> None:
    """Kills everything of the run until two looks in a row find nothing, then removes the folders.

    `unborn`: the command line of a harness that died, and may have been starting something.
    """
    mark = f"{platform.RUN_VARIABLE}={watched.run}".encode()
    began = REAL.now()
    seen = dict(watched.roots)
    me = platform.start_time(os.getpid()) or 0

    def ours(pid: int) -> bool:
        return platform.carries(pid, mark) or bool(watched.pipes and platform.output_pipes(pid) & watched.pipes)

    def left() -> list[Process]:
        snapshot = platform.processes()
        found = [one for one in platform.members(seen, b"", snapshot) if one.pid not in spare]
        known = {one.pid for one in found}
        marked = {
            one.pid: one.start for one in snapshot if one.alive and one.pid not in known | spare and ours(one.pid)
        }
        if marked:
            found += [one for one in platform.members(marked, b"", snapshot) if one.pid not in known | spare]
        seen.update({one.pid: one.start for one in found})
        return found

    _ask_politely(watched, left())
    clean = 0
    while clean < 2 and REAL.now() < began + SWEEP_SECONDS:
        found = left()
        wait = bool(unborn) and REAL.now() < began + UNBORN_SECONDS and _being_born(unborn, me, spare)
        clean = 0 if found or wait else clean + 1
        for one in found:
            platform.send(one.pid, signal.SIGKILL)
        select.select([], [], [], PAUSE)
    for folder in watched.folders:
        shutil.rmtree(folder, ignore_errors=True)
    clock_pages.sweep()


def _being_born(command: bytes, since: int, spare: set[int]) -> bool:
    """Whether there is an orphan that looks like the harness, and is younger than this guardian."""
    snapshot = platform.processes()
    alike = {
        one.pid: one
        for one in snapshot
        if one.alive and one.start >= since and one.pid not in spare and platform.command(one.pid) == command
    }
    parents = {one.pid for one in snapshot if one.alive and platform.command(one.pid) == command}
    return any(one.parent not in parents - spare for one in alike.values())


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
