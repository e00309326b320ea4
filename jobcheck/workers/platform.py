"""Processes as the operating system shows them. This module and `sockets` alone know Linux from macOS.

On Linux everything is read from `/proc`, without the cost of a process object for each entry: a look at all processes
takes well under a millisecond for a hundred of them. Elsewhere psutil is asked, which is slower and sees the same.

No parent-death signal is set on children: PR_SET_PDEATHSIG fires when the *thread* that started the child ends, and a
test suite may run its loop in a short-lived thread. The guardian sees to what a dead harness leaves behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

LINUX: bool = sys.platform.startswith("linux")
"""Whether `/proc` can be trusted. Not a constant for the type checker, so that it looks at both branches."""

RUN_VARIABLE = "JOBCHECK_RUN"
"""Every process of a run carries this variable with the run's id."""
WORKER_VARIABLE = "JOBCHECK_WORKER"
"""Every process tree that a supervisor starts carries its own value of this variable."""

OWN = 12_000
"""Ports below those that the system gives."""

LOOK = 0.02
"""Seconds between two looks at a process that nobody tells us the end of."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process at the moment of the look."""

    pid: int
    parent: int
    session: int
    start: int
    """When it started, in a unit of the platform (Linux: clock ticks since boot). With the pid it is an identity."""
    alive: bool
    """False for a zombie: it has ended and only waits for its parent to notice."""


def process(pid: int) -> Process | None:
    """What is known about `pid`, or None when there is no such process."""
    if not LINUX:
        return _psutil_process(pid)
    text = _read(f"/proc/{pid}/stat", 1024)
    return _parse_stat(pid, text) if text else None


def processes() -> list[Process]:
    """All processes of this machine (of this container)."""
    if not LINUX:
        import psutil

        return [one for pid in psutil.pids() if (one := _psutil_process(pid)) is not None]
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - an order of magnitude cheaper than Path objects
        if name.isdigit() and (text := _read(f"/proc/{name}/stat", 1024)):
            found.append(_parse_stat(int(name), text))
    return found


def start_time(pid: int) -> int | None:
    """When `pid` started (see `Process.start`), or None when there is no such process."""
    found = process(pid)
    return found.start if found else None


def same(one: Process) -> bool:
    """Whether this very process, not another one with its number, still lives."""
    now = process(one.pid)
    return now is not None and now.alive and now.start == one.start


def descendants(roots: Iterable[int], snapshot: Iterable[Process]) -> set[int]:
    """The pids of `roots` and of everything that descends from them in `snapshot`."""
    children: dict[int, list[int]] = {}
    for one in snapshot:
        children.setdefault(one.parent, []).append(one.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting.extend(children.get(pid, ()))
    return found


def members(roots: Mapping[int, int], mark: bytes, snapshot: list[Process]) -> list[Process]:
    """The living processes of `snapshot` that belong to `roots` (pid -> start) or carry `mark` in their environment.

    A process belongs to a root by descent or by session. `mark` finds those that left both (`setsid` and a dead
    parent); it is `NAME=value` and may be empty. The caller itself is never a member.
    """
    me = os.getpid()
    known = {one.pid: one for one in snapshot}
    # A root whose number was given to another process is no root any more; a root that is gone still names its session.
    real = {pid for pid, start in roots.items() if pid not in known or known[pid].start == start}
    found = descendants(real | {one.pid for one in snapshot if one.session in real}, snapshot)
    if mark:
        since = min(roots.values(), default=0)
        marked = {
            one.pid
            for one in snapshot
            if one.pid not in found and one.alive and one.start >= since and one.pid != me and carries(one.pid, mark)
        }
        found |= descendants(marked, snapshot) if marked else set()
    return [one for one in snapshot if one.pid in found and one.alive and one.pid != me]


def carries(pid: int, mark: bytes) -> bool:
    """Whether the environment that `pid` was started with holds `mark` (`NAME=value`).

    False when it cannot be read, and for programs that overwrite their environment to show a title.
    """
    if LINUX:
        return b"\0" + mark + b"\0" in b"\0" + _read(f"/proc/{pid}/environ", 1 << 20) + b"\0"
    import psutil

    name, _, value = mark.decode().partition("=")
    try:
        return bool(psutil.Process(pid).environ().get(name) == value)
    except (psutil.Error, OSError):
        return False


def command(pid: int) -> bytes:
    """The command line of `pid`, its words ended by NUL; empty when it is gone or not ours to read."""
    if LINUX:
        return _read(f"/proc/{pid}/cmdline", 1 << 17)
    import psutil

    try:
        return b"".join(word.encode() + b"\0" for word in psutil.Process(pid).cmdline())
    except (psutil.Error, OSError):
        return b""


def output_pipes(pid: int) -> set[int]:
    """The inode numbers of the pipes that `pid` writes its output to; empty where the platform does not tell."""
    found = set()
    for number in (1, 2):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/{pid}/fd/{number}")  # noqa: PTH115 - not a path: `pipe:[17]`
            if target.startswith("pipe:["):
                found.add(int(target[6:-1]))
    return found


def send(pid: int, number: int) -> bool:
    """Sends a signal; False when there is no such process (any more) or it is not ours."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def watch_exit(pid: int, callback: Callable[[], None]) -> Callable[[], None]:
    """Calls `callback` once in the running loop when `pid` has ended. The result of this function ends the watch.

    Where the kernel offers no pidfds, a thread waits for a child, and looks at any other process from time to time.
    """
    loop = asyncio.get_running_loop()
    if LINUX:
        try:
            return _watch_pidfd(loop, os.pidfd_open(pid), callback)
        except ProcessLookupError:
            return loop.call_soon(callback).cancel
        except OSError:  # an old kernel or a sandbox
            pass
    wanted, pause = threading.Event(), threading.Event()
    wanted.set()

    first = process(pid)

    def wait() -> None:
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:  # another process's child, such as a fork of a zygote
            while first is not None and wanted.is_set() and same(first):
                pause.wait(LOOK)
        if wanted.is_set() and not loop.is_closed():
            loop.call_soon_threadsafe(lambda: callback() if wanted.is_set() else None)

    threading.Thread(target=wait, name=f"jobcheck-exit-{pid}", daemon=True).start()
    return wanted.clear


def _watch_pidfd(loop: asyncio.AbstractEventLoop, fd: int, callback: Callable[[], None]) -> Callable[[], None]:
    open_fds = [fd]

    def close() -> None:
        if open_fds:
            loop.remove_reader(open_fds[0])
            os.close(open_fds.pop())

    def ended() -> None:
        close()
        callback()

    loop.add_reader(fd, ended)
    return close


@dataclass(frozen=True, slots=True)
class Signals:
    """How one thread stands towards its signals, as bit masks."""

    pending: int
    blocked: int
    caught: int

    def has(self, mask: int, number: int) -> bool:
        return bool(mask >> (number - 1) & 1)


def signals(pid: int) -> dict[int, Signals]:
    """The signal masks of each thread of `pid`; empty where the platform does not tell."""
    if not LINUX:
        return {}
    found = {}
    try:
        threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208
    except OSError:
        return {}
    for thread in threads:
        masks = {"SigPnd": 0, "ShdPnd": 0, "SigBlk": 0, "SigCgt": 0}
        for line in _read(f"/proc/{pid}/task/{thread}/status", 8192).decode(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name in masks:
                masks[name] = int(value, 16)
        found[thread] = Signals(masks["SigPnd"] | masks["ShdPnd"], masks["SigBlk"], masks["SigCgt"])
    return found


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; the number itself where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def executable_by_others(path: Path) -> bool:
    """Whether a user without rights of their own can reach and read `path`."""
    try:
        return all(one.stat().st_mode & 0o001 for one in path.resolve().parents) and bool(path.stat().st_mode & 0o004)
    except OSError:
        return False


def _parse_stat(pid: int, text: bytes) -> Process:
    # The command name stands in parentheses and may hold anything, a parenthesis too: what counts is the last one.
    fields = text[text.rindex(b")") + 2 :].split()
    return Process(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        start=int(fields[19]),
        alive=fields[0] not in (b"Z", b"X"),
    )


def _psutil_process(pid: int) -> Process | None:
    import psutil

    try:
        one = psutil.Process(pid)
        with one.oneshot():
            alive = one.status() != psutil.STATUS_ZOMBIE
            return Process(pid, one.ppid(), os.getsid(pid), int(one.create_time() * 1e6), alive)
    except (psutil.Error, OSError):
        return None


def _read(path: str, limit: int) -> bytes:
    """The first `limit` bytes of a small kernel file; empty when it is gone or not ours to read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, limit)
    except OSError:
        return b""
    finally:
        os.close(fd)


def loopback(number: int) -> str:
    """A loopback address of one's own for each number: what an ended run left behind does not find the next one.

    Linux answers on all of 127.0.0.0/8; elsewhere there is 127.0.0.1 only.
    """
    if not LINUX:
        return "127.0.0.1"
    return f"127.{1 + number % 254}.{number // 254 % 256}.{1 + number // 65024 % 254}"


def own_ports(number: int) -> Iterator[int]:
    """Ports that this system gives to nobody who asks for any free one, again and again, from another one for each
    number on. Whoever is to listen at such a port later finds it free still, whatever listens meanwhile.
    """
    first = 49_152  # of those that are given, by RFC 6335 and on macOS
    if LINUX:
        with contextlib.suppress(OSError, ValueError, IndexError):
            first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = range(max(1024, first - OWN), first) or range(first, first + OWN)
    return itertools.islice(itertools.cycle(ports), number % len(ports), None)
