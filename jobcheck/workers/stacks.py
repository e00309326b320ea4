"""Where in the user's own code a worker stands while one of its messages is held.

The worker's Python processes load `inside/preload`, which writes their stacks to a file when they are signalled. A
process that did not load it is not signalled: the signal would end it.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from ..clock import REAL
from . import platform, sockets

PRELOAD = Path(__file__).resolve().parent / "inside" / "preload"
"""The folder to put first on PYTHONPATH of Python workers."""
VARIABLE = "JOBCHECK_STACKS"
"""Names the file to the worker."""

STACK_WITHIN = 0.05
"""Seconds to wait for a dump; a thread that computes without pause in C code may be late."""
_PACKAGE = Path(__file__).resolve().parents[1]
_THREADS, _TASKS = 7, 8
"""Offsets from SIGRTMIN."""
_HEAD = re.compile(r"^(?:Current thread|Thread|Task) .*\(most recent call first\):$")
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+|\?\?\?) in (?P<name>.*)$')
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
_LIBRARY = re.compile(r"(?:^|/)(?:site-packages|dist-packages|lib/python\d+\.\d+)(?:/|$)")
_INSTALLED = re.compile(r".*/(?:site-packages|dist-packages)/(([^/]+?)(?:/.*|\.py))$")
_WAITS = re.compile(r"/(?:threading|queue|sched)\.py$|/asyncio/(?:locks|queues|tasks|runners)\.py$")
_LOOP = re.compile(r"/asyncio/(?:base_events|runners)\.py$|/uvloop/__init__\.py$")
_LOOP_CALLS = {"_run_once", "run_forever", "run_until_complete", "run", "wrapper"}


@dataclass(frozen=True, slots=True)
class Frame:
    """One call on a stack."""

    file: str
    line: int
    """0 when it is not known."""
    name: str


def environment(stack_file: Path) -> dict[str, str]:
    """The variables that a Python worker needs besides `PRELOAD` on its PYTHONPATH."""
    return {VARIABLE: str(stack_file)}


async def user_frame(
    worker_pids: Iterable[int],
    client_port: int,
    stack_file: Path,
    root: Path,
    *,
    packages: Sequence[str] = (),
    server_port: int = 0,
    server_host: str = "127.0.0.1",
    within: float = STACK_WITHIN,
) -> str:
    """The innermost frame of the code under `root`, such as `jobs.py:31 charge_card`; empty when it cannot be told.

    `packages` are installed ones whose code counts, too: `shop_jobs/tasks.py:31 charge_card`.
    `client_port` is the local port of the worker's connection on which the message is held; `server_port` and
    `server_host` are where the tap listens (without them the lookup costs some ms more). `within` is seconds.
    """
    holders = sockets.owners(worker_pids, client_port, server_port, server_host)
    if len(holders) != 1:
        return ""
    pid = holders[0]
    threads = parse_dump(await _ask(pid, _THREADS, stack_file, within))
    loops = [stack for stack in threads if _is_loop(stack)]
    if text := choose([stack for stack in threads if stack not in loops], root, packages):
        return text
    if not loops:
        return ""
    return choose(parse_dump(await _ask(pid, _TASKS, stack_file, within)), root, packages, tasks=True)


def parse_dump(text: str) -> list[list[Frame]]:
    """The stacks of a dump, one list a thread or task, innermost call first. Lines of no stack are passed over."""
    stacks: list[list[Frame]] = []
    inside = False
    for line in text.splitlines():
        if _HEAD.match(line):
            stacks.append([])
            inside = True
        elif inside and (match := _FRAME.match(line)):
            number = int(match["line"]) if match["line"].isdigit() else 0
            stacks[-1].append(Frame(_unescape(match["file"]), number, _unescape(match["name"])))
        elif not line.startswith("  "):
            inside = False
    return [stack for stack in stacks if stack]


def choose(stacks: list[list[Frame]], root: Path, packages: Sequence[str] = (), *, tasks: bool = False) -> str:
    """The frame of the user's own code that the held message comes from; empty when there is none, or two.

    A stack that waits for another thread or task cannot be the one that waits for the network, and is left out as
    long as another one is there. `tasks`: these are awaits of tasks, where a handler that waits for the network does so
    in a library's frame, and one whose own frame is the innermost waits for its other tasks.
    """
    own = partial(_own, root=root, packages=frozenset(packages))
    named = [(stack, text) for stack in stacks if (text := _innermost(stack, own))]
    busy = [
        (stack, text)
        for stack, text in named
        if not _WAITS.search(stack[0].file) and not (tasks and own(stack[0].file) is not None)
    ]
    texts = {text for _, text in busy or named}
    return texts.pop() if len(texts) == 1 else ""


def _innermost(stack: list[Frame], own: Callable[[str], str | None]) -> str:
    for frame in stack:
        if (path := own(frame.file)) is not None:
            return f"{path}:{frame.line} {frame.name}"
    return ""


@lru_cache(maxsize=4096)
def _own(file: str, root: Path, packages: frozenset[str]) -> str | None:
    """`file` relative to `root`, or to where its package is installed, when it is the user's own, else None."""
    if not file or file.startswith("<"):
        return None
    path = Path(file)
    if packages and (inside := _INSTALLED.search(path.as_posix())) and inside[2] in packages:
        return inside[1]
    if path.is_absolute():
        for one, base in ((path, root), (path.resolve(), root.resolve())):
            if one.is_relative_to(base):
                path = one.relative_to(base)
                break
        else:
            return None
    if _LIBRARY.search(path.as_posix()):
        return None
    # Our own code inside a worker is no code of the user's; the sample apps, which lie below it in a wheel, are.
    inner = Path(file).relative_to(_PACKAGE) if Path(file).is_relative_to(_PACKAGE) else None
    return path.as_posix() if inner is None or inner.parts[0] == "_scenarios" else None


def _is_loop(stack: list[Frame]) -> bool:
    """Whether this thread waits inside an event loop: its innermost calls are the loop's, no handler runs."""
    calls = [frame for frame in stack if not frame.file.endswith("/selectors.py")]
    return bool(calls) and calls[0].name in _LOOP_CALLS and bool(_LOOP.search(calls[0].file))


async def _ask(pid: int, offset: int, stack_file: Path, within: float) -> str:
    """Signals `pid` and gives what it then wrote; empty when it does not answer to the signal or is too late."""
    number = _number(offset)
    before = platform.signals(pid)
    if not number or not before or not all(one.has(one.caught, number) for one in before.values()):
        return ""
    deaf = {thread for thread, one in before.items() if one.has(one.blocked, number)}
    size = _size(stack_file)
    if not platform.send(pid, number):
        return ""
    end = REAL.now() + within
    turns = 0
    while True:
        # Something was written, so the handler has started; while it runs, its thread has the signal blocked.
        if _size(stack_file) > size and not _handles(pid, number, deaf):
            text = _read_from(stack_file, size)
            if offset != _TASKS or "End of tasks" in text:
                return text
        if REAL.now() >= end:
            return ""
        turns += 1
        await asyncio.sleep(0 if turns < 20 else 0.001)


def _handles(pid: int, number: int, deaf: set[int]) -> bool:
    """Whether a thread of `pid` has still to answer, or answers. Those in `deaf` block the signal always."""
    return any(
        one.has(one.pending, number) or (one.has(one.blocked, number) and thread not in deaf)
        for thread, one in platform.signals(pid).items()
    )


def _number(offset: int) -> int:
    import signal

    lowest = getattr(signal, "SIGRTMIN", None)
    return int(lowest) + offset if lowest is not None else 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read_from(path: Path, offset: int) -> str:
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.pread(fd, 1 << 20, offset).decode("ascii", "replace")
    finally:
        os.close(fd)


def _unescape(text: str) -> str:
    """faulthandler writes what is not ASCII as `\\xhh`, `\\uhhhh` or `\\Uhhhhhhhh`."""
    return _ESCAPE.sub(lambda match: chr(int(match[1] or match[2] or match[3], 16)), text)
