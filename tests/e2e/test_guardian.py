"""What a harness leaves behind when it ends in the worst way: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobcheck.clock import REAL
from jobcheck.seeds import token
from jobcheck.workers import platform
from jobcheck.workers.guardian import Guardian

HARNESS = """
import asyncio, os, signal, sys
from pathlib import Path
from jobcheck.services import start
from jobcheck.services.spec import Postgres, Redis
from jobcheck.workers.env import scrubbed
from jobcheck.workers.guardian import Guardian
from jobcheck.workers.spec import ProcessSpec, ReadyLine
from jobcheck.workers.supervisor import Supervisor

FAMILY = '''
import os, time
if os.fork() == 0:
    if os.fork() == 0:             # a grandchild, as prefork pools have
        time.sleep(600)
    os.wait()
if os.fork() == 0:
    os.setsid()                    # a child that left the session ...
    if os.fork():
        os._exit(0)                # ... and lost its parent
    time.sleep(600)
print("ready", flush=True)
time.sleep(600)
'''

async def main():
    run, folder = sys.argv[1], Path(sys.argv[2])
    guardian = Guardian.start(run)
    supervisor = Supervisor(run, folder / "logs", guardian)
    guardian.watch_folder(folder / "temporary")
    (folder / "temporary").mkdir()
    for name, spec in (("db", Postgres()), ("broker", Redis())):
        service = await start(spec, name=name, supervisor=supervisor, guardian=guardian, folder=folder, environ={})
        await service.namespace("1")
    worker = await supervisor.start(
        ProcessSpec("family", [sys.executable, "-c", FAMILY], scrubbed({}), folder, ReadyLine("ready"))
    )
    await worker.ready()
    while len(worker.pids()) < 4:
        await asyncio.sleep(0.005)
    print(guardian.pid, *[pid for one in supervisor.workers for pid in one.pids()], flush=True)
    if sys.argv[3] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def until_gone(processes: list[platform.Process], folders: list[Path], deadline: float = 30) -> None:
    end = REAL.now() + deadline
    while True:
        left = [one for one in processes if platform.same(one)]
        there = [folder for folder in folders if folder.exists()]
        if not left and not there:
            return
        if REAL.now() > end:
            raise AssertionError(f"still there after {deadline} s: {left} {there}")
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            pass


def harness(tmp_path: Path, run: str, how: str) -> tuple[subprocess.Popen[str], list[platform.Process]]:
    """A harness with two services and a family of workers, and all of their processes."""
    root = Path(__file__).parents[2]
    popen = subprocess.Popen(
        [sys.executable, "-c", HARNESS, run, str(tmp_path), how], stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert popen.stdout is not None
    pids = [int(text) for text in popen.stdout.readline().split()]
    processes = [one for pid in pids if (one := platform.process(pid))]
    return popen, processes


def leftovers(run: str) -> list[Path]:
    return [path for base in ("/tmp", "/dev/shm") for path in Path(base).glob(f"jobcheck-{run}-*")]


@pytest.mark.parametrize("how", ["kill", "wait"])
def test_a_killed_harness_leaves_no_process_and_no_folder(tmp_path: Path, how: str) -> None:
    run = f"guard{token()}"
    popen, processes = harness(tmp_path, run, how)
    try:
        assert len(processes) >= 9, "guardian, postgres with its helpers, redis and the family"
        if how == "wait":
            popen.send_signal(signal.SIGKILL)
        assert popen.wait(30) == -signal.SIGKILL
        until_gone(processes, [tmp_path / "temporary"])
        mark = f"JOBCHECK_RUN={run}".encode()
        assert [one for one in platform.processes() if one.alive and platform.carries(one.pid, mark)] == []
        assert leftovers(run) == []
    finally:
        popen.kill()
        popen.wait()
        assert popen.stdout is not None
        popen.stdout.close()


def test_a_guardian_does_not_heed_the_signals_of_a_terminal_and_ends_when_closed(tmp_path: Path) -> None:
    guardian = Guardian.start(f"guard{token()}")
    folder = tmp_path / "temporary"
    folder.mkdir()
    (folder / "file").write_text("x")
    kept = tmp_path / "kept"
    kept.mkdir()
    guardian.watch_folder(folder)
    end = REAL.now() + 10
    while not ignores(guardian.pid):
        assert REAL.now() < end, "the guardian never set its signals"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(guardian.pid, number)
    assert guardian.alive
    guardian.close()
    assert not guardian.alive
    assert not folder.exists()
    assert kept.exists()
    guardian.close()


def ignores(pid: int) -> bool:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigIgn:"):
            mask = int(line.split()[1], 16)
            return all(mask >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    return False


def test_a_watched_process_that_is_gone_does_not_endanger_its_successor() -> None:
    guardian = Guardian.start(f"guard{token()}")
    bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        start = platform.start_time(bystander.pid)
        assert start is not None
        guardian.watch(bystander.pid, start=start - 1)  # another process had this number
        guardian.watch(other.pid)
        guardian.unwatch(other.pid)
        guardian.close()
        assert bystander.poll() is None
        assert other.poll() is None
    finally:
        guardian.close()
        for one in (bystander, other):
            one.kill()
            one.wait()


def test_what_was_being_started_is_known_by_where_its_output_goes() -> None:
    """It carries no mark (a Redis writes its title over it), and there was no time to register it."""
    guardian = Guardian.start(f"guard{token()}")
    read_fd, write_fd = os.pipe()
    guardian.expect(os.fstat(read_fd).st_ino)
    mine = subprocess.Popen(["sleep", "600"], stdout=write_fd, start_new_session=True)
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        guardian.close()
        assert mine.wait(5) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        os.close(read_fd)
        os.close(write_fd)
        for one in (mine, other):
            one.kill()
            one.wait()


@pytest.mark.parametrize("path", ["/", "/tmp", "~", "a\nb"])
def test_a_guardian_is_never_given_a_folder_that_no_run_owns(path: str) -> None:
    guardian = Guardian.start(f"guard{token()}")
    try:
        with pytest.raises(ValueError, match="expected a temporary folder"):
            guardian.watch_folder(Path(path).expanduser())
    finally:
        guardian.close()
