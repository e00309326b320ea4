"""One process tree of a run: its output, whether it lives, and how to stop, freeze or kill all of it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..aio import wait_for, wait_until, within
from ..clock import REAL
from ..errors import WaitTimeout, WorkerError
from . import platform
from .output import Output
from .platform import Process
from .spec import ProcessSpec, ReadyLine, ReadyPort

READ_SIZE = 64 * 1024
SHOWN_LINES = 15
"""Lines of output that an error shows."""
KILL_DEADLINE = 20.0
"""Seconds within which a killed tree must be gone; longer means a process that the kernel cannot end."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a polite stop went."""

    returncode: int | None
    """None when it is not known (a process that is not our child)."""
    seconds: float
    """From the signal to the end of the root process."""
    killed: bool
    """It did not end within its grace time."""
    left: int
    """Processes of its tree that still lived when the root had ended; they were killed."""


class Worker:
    """A running process and everything that descends from it. Made by `Supervisor.start` and `Supervisor.adopt`."""

    def __init__(self, spec: ProcessSpec, pid: int, start: int, output: Output, mark: bytes) -> None:
        self.spec = spec
        self.name = spec.name
        self.pid = pid
        self.output = output
        self.returncode: int | None = None
        self.alive = True
        self.started = REAL.now()
        self.killed = False
        """Whether jobcheck sent SIGKILL to the tree."""
        self._start = start
        self._mark = mark
        self._popen: subprocess.Popen[bytes] | None = None
        self._exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._on_exit: list[Callable[[int | None], None]] = []
        self._read_fd = -1
        self._write_fd = -1
        self._unsent = b""
        self._seen: dict[int, int] = {}
        self._unwatch = platform.watch_exit(pid, self._ended)

    # -- what the supervisor connects ---------------------------------------------------------------------------

    def attach(self, popen: subprocess.Popen[bytes], read_fd: int, write_fd: int) -> None:
        """Takes over the process object and the pipes. `write_fd` is -1 when there is no standard input."""
        self._popen = popen
        self._write_fd = write_fd
        self.listen(read_fd)

    def listen(self, read_fd: int) -> None:
        """Reads its output from here on; the descriptor is closed with the worker."""
        self._read_fd = read_fd
        asyncio.get_running_loop().add_reader(read_fd, self._readable)

    def release(self) -> None:
        """Closes the pipes and the log; the tree must be gone. More calls do nothing."""
        self.drain()
        self._unwatch()
        self._close_read()
        self._close_write()
        self.output.close()

    # -- waiting ------------------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Waits until it is ready in the sense of its spec.

        Raises WorkerError when it ends before, or is not ready within `spec.ready_within` seconds.
        """
        how = self.spec.ready
        try:
            if isinstance(how, ReadyLine):
                await self._ready_line(how)
            elif isinstance(how, ReadyPort):
                await wait_until(
                    lambda: self._accepts(how), "an open port", deadline=self.spec.ready_within, every=0.01
                )
        except WaitTimeout:
            expected = f"a line that matches {how.regex!r}" if isinstance(how, ReadyLine) else f"{how}"
            raise WorkerError(
                f"{self.name} was not ready within {self.spec.ready_within:g} s: expected {expected}; {self._last()}",
                hint=self._log_hint(),
            ) from None
        if not self.alive:
            raise WorkerError(
                f"{self.name} {self.how_it_ended()} before it was ready; {self._last()}", hint=self._log_hint()
            )

    async def wait(self, seconds: float) -> int | None:
        """Waits for the end of the root process and gives its exit code. Raises WaitTimeout."""
        await within(asyncio.shield(self._exited), seconds, f"the end of {self.name}")
        return self.returncode

    def on_exit(self, callback: Callable[[int | None], None]) -> None:
        """Calls `callback` with the exit code when the root process has ended (at once if it has)."""
        if self.alive:
            self._on_exit.append(callback)
        else:
            callback(self.returncode)

    def how_it_ended(self) -> str:
        """`ended by itself with exit code 1`, `was killed by jobcheck` and the like."""
        if self.alive:
            return "is running"
        if self.killed:
            return "was killed by jobcheck"
        if self.returncode is None:
            return "ended by itself"
        if self.returncode < 0:
            return f"was ended by {platform.signal_name(-self.returncode)}, which jobcheck did not send,"
        return f"ended by itself with exit code {self.returncode}"

    # -- the tree -----------------------------------------------------------------------------------------------

    def pids(self) -> list[int]:
        """The root and all living members of its tree, in the order of their start."""
        return [one.pid for one in sorted(self._members(), key=lambda one: (one.start, one.pid))]

    def kill_now(self) -> list[Process]:
        """Sends SIGKILL to the whole tree and returns without waiting; gives those it was sent to."""
        self.killed = self.killed or self.alive
        found = self._members()
        for one in found:
            platform.send(one.pid, signal.SIGKILL)
        return found

    async def kill_tree(self) -> None:
        """SIGKILL to the session, to all descendants and to those that left both; returns when none is left.

        Raises WaitTimeout when the kernel cannot end one of them.
        """
        while found := self.kill_now():
            await _gone(found, self.name)
        if self.alive:
            await within(asyncio.shield(self._exited), KILL_DEADLINE, f"the end of {self.name} after SIGKILL")

    async def kill_child(self, pid: int) -> None:
        """SIGKILL to one process of the tree; returns when it is gone. Raises WorkerError when it is no member."""
        found = [one for one in self._members() if one.pid == pid]
        if not found:
            raise WorkerError(f"expected process {pid} in the tree of {self.name}, which has {self.pids()}")
        platform.send(pid, signal.SIGKILL)
        await _gone(found, self.name)

    async def stop(self, grace: float | None = None, *, group: bool = False) -> Ended:
        """The polite signal, then SIGKILL after `grace` seconds (default: the spec's) or to what is left over.

        The signal goes to the root process, or with `group` to its whole process group, as a terminal would do.
        """
        began = REAL.now()
        self.send_signal(self.spec.stop_signal, group=group)
        late = False
        try:
            await self.wait(self.spec.grace if grace is None else grace)
        except WaitTimeout:
            late = True
        seconds = REAL.now() - began
        left = len(self._members())
        await self.kill_tree()
        return Ended(self.returncode, seconds, late, 0 if late else left)

    def send_signal(self, number: int, *, group: bool = False) -> None:
        """Sends one signal to the root process or to its group; nothing happens when it is gone."""
        if group:
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                pass
        elif self.alive:
            platform.send(self.pid, number)

    def pause(self) -> list[int]:
        """SIGSTOP to the whole tree, until no member is left that was not stopped. Gives the pids."""
        stopped: dict[int, int] = {}
        while new := [one for one in self._members() if stopped.get(one.pid) != one.start]:
            for one in new:
                platform.send(one.pid, signal.SIGSTOP)
                stopped[one.pid] = one.start
        return list(stopped)

    def resume(self) -> None:
        """SIGCONT to the whole tree."""
        for one in self._members():
            platform.send(one.pid, signal.SIGCONT)

    def _members(self) -> list[Process]:
        # Processes that were members once stay members, whatever their parent has become.
        found = platform.members({self.pid: self._start, **self._seen}, self._mark, platform.processes())
        self._seen = {one.pid: one.start for one in found}
        return found

    # -- input and output ---------------------------------------------------------------------------------------

    def send(self, line: str) -> None:
        """Writes one line to its standard input. Raises WorkerError when it was not started with one, or closed it."""
        if self._write_fd < 0:
            raise WorkerError(f"{self.name} has no open standard input; it {self.how_it_ended()}; {self._last()}")
        self._unsent += line.encode() + b"\n"
        self._writable()

    def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._write_fd, self._unsent) :]
            loop.remove_writer(self._write_fd)
        except BlockingIOError:
            loop.add_writer(self._write_fd, self._writable)
        except BrokenPipeError:
            self._close_write()

    def _readable(self) -> None:
        if not self._reads():
            self._close_read()

    def _reads(self) -> bool:
        """Takes what is there. False where nobody has the other end."""
        try:
            data = os.read(self._read_fd, READ_SIZE)
        except BlockingIOError:
            return True
        if data:
            self.output.feed(data)
        return bool(data)

    def drain(self) -> None:
        """Reads what the tree has written so far, without waiting for more.

        That nobody has the other end is no reason to close ours: a fork may not have opened it yet, and would wait
        for us for ever.
        """
        for _ in range(256):  # bounded: somebody may go on writing to the same pipe
            before = self.output.bytes
            if self._read_fd < 0 or not self._reads() or self.output.bytes == before:
                break

    def _close_read(self) -> None:
        if self._read_fd >= 0:
            asyncio.get_running_loop().remove_reader(self._read_fd)
            os.close(self._read_fd)
            self._read_fd = -1

    def _close_write(self) -> None:
        if self._write_fd >= 0:
            asyncio.get_running_loop().remove_writer(self._write_fd)
            os.close(self._write_fd)
            self._write_fd = -1
            self._unsent = b""

    def _ended(self) -> None:
        """The root process has ended: reads what it still had to say, takes its exit code and tells the listeners."""
        self.drain()
        if self._popen is not None:
            self.returncode = self._popen.wait()
        self.alive = False
        self._close_write()
        if not self._exited.done():
            self._exited.set_result(None)
        callbacks, self._on_exit = self._on_exit, []
        for callback in callbacks:
            callback(self.returncode)

    # -- readiness ----------------------------------------------------------------------------------------------

    async def _ready_line(self, how: ReadyLine) -> None:
        pattern = re.compile(how.regex)

        def seen() -> bool:
            return not self.alive or any(pattern.search(line.text) for line in list(self.output.lines))

        found = asyncio.get_running_loop().create_future()
        unsubscribe = self.output.subscribe(
            lambda line: found.set_result(None) if pattern.search(line.text) and not found.done() else None
        )
        self.on_exit(lambda _: found.set_result(None) if not found.done() else None)
        try:
            if not seen():
                await within(found, self.spec.ready_within, "a line of output")
        finally:
            unsubscribe()

    async def _accepts(self, how: ReadyPort) -> bool:
        if not self.alive:
            return True
        family = socket.AF_INET6 if ":" in how.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            try:
                await asyncio.get_running_loop().sock_connect(probe, (how.host, how.port))
            except OSError:
                return False
        return True

    def _last(self) -> str:
        lines = self.output.tail(SHOWN_LINES)
        return "its last lines:\n    " + "\n    ".join(lines) if lines else "it wrote nothing"

    def _log_hint(self) -> str:
        return f"read the whole log: {self.output.path}" if self.output.path else ""


async def _gone(processes: Iterable[Process], name: str) -> None:
    """Waits until none of these very processes lives."""
    left = list(processes)

    def none_left() -> bool:
        left[:] = [one for one in left if platform.same(one)]
        return not left

    await wait_for(
        none_left,
        f"the end of all processes of {name} after SIGKILL",
        deadline=KILL_DEADLINE,
        every=0.0005,
        last_seen=lambda: f"pids {[one.pid for one in left]}",
    )
