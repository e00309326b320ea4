"""Starts the processes of a run and sees to it that none of them outlives it."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import TypedDict

from ..errors import WorkerError
from . import platform
from .guardian import Guardian
from .output import Output
from .platform import RUN_VARIABLE, WORKER_VARIABLE
from .spec import ProcessSpec
from .worker import Ended as Ended
from .worker import Worker as Worker


class _Account(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class Supervisor:
    """Owns the process trees of one run. Their output is also written to `folder`, one `<name>.log` each."""

    def __init__(self, run_id: str, folder: Path, guardian: Guardian | None = None) -> None:
        self.run_id = run_id
        self.folder = folder
        self.guardian = guardian
        self.workers: list[Worker] = []
        """All that were started and not forgotten, also those that have ended."""
        self._count = 0

    async def start(self, spec: ProcessSpec) -> Worker:
        """Starts a process that leads its own session. It runs when this returns; `Worker.ready` waits for more.

        Raises WorkerError when the program cannot be started.
        """
        self._count += 1
        token = f"{self.run_id}-{self._count}"
        env = {**spec.env, RUN_VARIABLE: self.run_id, WORKER_VARIABLE: token}
        read_fd, child_out = os.pipe()
        if self.guardian:
            self.guardian.expect(os.fstat(read_fd).st_ino)
        try:
            popen = subprocess.Popen(
                list(spec.argv),
                stdin=subprocess.PIPE if spec.stdin_pipe else subprocess.DEVNULL,
                stdout=child_out,
                stderr=child_out,
                env=env,
                cwd=spec.cwd,
                start_new_session=True,
                bufsize=0,
                **_account(spec.user),
            )
        except OSError as error:
            os.close(read_fd)
            raise WorkerError(
                f"could not start {spec.name}: {error.strerror or error}: {error.filename or spec.argv[0]}"
                f" (in {spec.cwd})",
                hint="check the command and the folder it is run in; it gets a PATH, and nothing else of your shell",
            ) from None
        finally:
            os.close(child_out)
        write_fd = -1
        if popen.stdin is not None:
            write_fd = os.dup(popen.stdin.fileno())
            popen.stdin.close()
            os.set_blocking(write_fd, False)
        os.set_blocking(read_fd, False)
        # Our child is not reaped before we ask for it, so its number is still its own, even if it has ended already.
        start = platform.start_time(popen.pid) or 0
        worker = Worker(spec, popen.pid, start, self._output(spec.name), f"{WORKER_VARIABLE}={token}".encode())
        worker.attach(popen, read_fd, write_fd)
        return self._own(worker, start)

    def adopt(self, spec: ProcessSpec, pid: int, read_fd: int = -1) -> Worker:
        """Takes over a process that a process of this run started, such as a fork of a zygote.

        It should lead its own session. Its output is read from `read_fd`; without one it goes where its parent's
        goes. Its exit code is not known. Raises WorkerError when it does not exist.
        """
        start = platform.start_time(pid)
        if start is None:
            raise WorkerError(f"expected a process {pid} to adopt as {spec.name}, and there is none")
        if read_fd < 0:
            return self._own(Worker(spec, pid, start, Output(), b""), start)
        os.set_blocking(read_fd, False)
        worker = Worker(spec, pid, start, self._output(spec.name), b"")
        worker.listen(read_fd)
        return self._own(worker, start)

    async def forget(self, worker: Worker) -> None:
        """Kills the tree of `worker`, if any of it is left, and lets go of it."""
        await worker.kill_tree()
        worker.release()
        if worker in self.workers:
            self.workers.remove(worker)
        if self.guardian:
            self.guardian.unwatch(worker.pid)

    async def close(self, but: Collection[Worker] = ()) -> None:
        """Kills all trees, but for these. They are all signalled before the first one is waited for."""
        mine = [worker for worker in self.workers if worker not in but]
        for worker in mine:
            worker.kill_now()
        for worker in mine:
            await self.forget(worker)

    def _own(self, worker: Worker, start: int) -> Worker:
        self.workers.append(worker)
        if self.guardian:
            self.guardian.watch(worker.pid, start=start, polite=worker.spec.stop_signal)
        return worker

    def _output(self, name: str) -> Output:
        self.folder.mkdir(parents=True, exist_ok=True)
        return Output(self.folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)}.log")


def _account(user: str | None) -> _Account:
    """The arguments that make a child run as `user`; none when that is who we are.

    Raises WorkerError when there is no such account.
    """
    if user is None:
        return {}
    with contextlib.suppress(KeyError):
        entry = pwd.getpwnam(user)
        if entry.pw_uid == os.geteuid():
            return {}
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise WorkerError(f"expected an account {user!r} on this machine, and there is none")
