"""Real processes: started, frozen, killed as a tree, and told about when they end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from jobcheck.aio import wait_for
from jobcheck.errors import WorkerError
from jobcheck.seeds import token
from jobcheck.workers import platform
from jobcheck.workers.env import scrubbed
from jobcheck.workers.spec import ProcessSpec, Ready, ReadyLine, ReadyNow, ReadyPort
from jobcheck.workers.supervisor import Supervisor

RUN = f"e2e{token()}"
FAMILY = """
import os, sys, time
def spawn(how):
    pid = os.fork()
    if pid:
        return pid
    how()
    time.sleep(600)
def orphan():
    os.setsid()
    if os.fork():
        os._exit(0)
spawn(lambda: None)            # a prefork child
spawn(lambda: os.setpgid(0, 0))  # a work-horse, which leaves the group
spawn(os.setsid)               # a child that leaves the session
os.waitpid(spawn(orphan), 0)   # one that leaves the session and its parent
print("ready", flush=True)
time.sleep(600)
"""


def spec(code: str, tmp_path: Path, ready: Ready | None = None, **more: object) -> ProcessSpec:
    fields: dict[str, object] = {
        "name": "child",
        "argv": [sys.executable, "-c", code],
        "env": scrubbed({}),
        "cwd": tmp_path,
        "ready": ready or ReadyNow(),
        **more,
    }
    return ProcessSpec(**fields)  # type: ignore[arg-type]


def supervised(tmp_path: Path, body: Callable[[Supervisor], Awaitable[None]]) -> None:
    async def main() -> None:
        supervisor = Supervisor(RUN, tmp_path)
        try:
            await body(supervisor)
        finally:
            await supervisor.close()

    asyncio.run(main())


@pytest.mark.parametrize("linux", [True, False], ids=["proc", "psutil"])
def test_a_tree_kill_reaches_children_that_left_the_group_the_session_and_the_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linux: bool
) -> None:
    """Also without /proc and without pidfds, as on macOS."""
    monkeypatch.setattr(platform, "LINUX", linux)

    async def body(supervisor: Supervisor) -> None:
        worker = await supervisor.start(spec(FAMILY, tmp_path, ReadyLine("^ready$")))
        await worker.ready()
        pids = await wait_for(
            lambda: found if len(found := worker.pids()) == 5 else None,
            "root, three children and an orphan",
            deadline=10,
            last_seen=lambda: str(worker.pids()),
        )
        await worker.kill_tree()
        assert worker.returncode == -signal.SIGKILL
        assert worker.pids() == []
        assert [pid for pid in pids if (one := platform.process(pid)) and one.alive] == []

    supervised(tmp_path, body)


def test_a_tree_kill_of_one_worker_leaves_the_others_of_the_run_alone(tmp_path: Path) -> None:
    async def body(supervisor: Supervisor) -> None:
        first = await supervisor.start(spec(FAMILY, tmp_path, ReadyLine("ready"), name="first"))
        second = await supervisor.start(spec(FAMILY, tmp_path, ReadyLine("ready"), name="second"))
        for worker in (first, second):
            await worker.ready()
            await wait_for(lambda w=worker: len(w.pids()) == 5, "the family", deadline=10)
        before = second.pids()
        await first.kill_tree()
        assert second.alive
        assert second.pids() == before

    supervised(tmp_path, body)


def test_what_left_the_tree_is_killed_even_when_the_root_has_ended_by_itself(tmp_path: Path) -> None:
    code = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\n"

    async def body(supervisor: Supervisor) -> None:
        worker = await supervisor.start(spec(code, tmp_path))
        assert await worker.wait(10) == 0
        assert len(worker.pids()) == 1
        await worker.kill_tree()
        assert worker.pids() == []
        assert not worker.killed, "the root was not killed, it had ended"

    supervised(tmp_path, body)


def test_output_is_read_as_lines_written_to_a_log_and_handed_to_subscribers(tmp_path: Path) -> None:
    async def body(supervisor: Supervisor) -> None:
        code = "import sys; print(input()); print('to stderr', file=sys.stderr); sys.stdout.write('no end')"
        worker = await supervisor.start(spec(code, tmp_path, stdin_pipe=True))
        heard: list[str] = []
        worker.output.subscribe(lambda line: heard.append(line.text))
        worker.send("hello")
        assert await worker.wait(10) == 0
        assert heard == ["hello", "to stderr"]
        assert worker.output.tail(2) == ["to stderr", "no end"]
        assert (tmp_path / "child.log").read_text() == "hello\nto stderr\nno end"
        with pytest.raises(WorkerError, match="ended by itself with exit code 0"):
            worker.send("too late")

    supervised(tmp_path, body)


def test_a_lot_of_output_is_taken_without_the_child_waiting(tmp_path: Path) -> None:
    async def body(supervisor: Supervisor) -> None:
        worker = await supervisor.start(spec(BIG, tmp_path))
        assert await worker.wait(30) == 0
        await wait_for(lambda: worker.output.bytes >= 3_000_000, "all output", deadline=10)
        assert len(worker.output.lines) == 5000

    supervised(tmp_path, body)


BIG = "import sys\nfor _ in range(30000): sys.stdout.write('x' * 99 + '\\n')\n"


def test_a_child_that_ends_before_it_is_ready_is_reported_with_its_last_words(tmp_path: Path) -> None:
    async def body(supervisor: Supervisor) -> None:
        worker = await supervisor.start(spec("print('no broker here'); exit(3)", tmp_path, ReadyLine("ready")))
        with pytest.raises(WorkerError) as caught:
            await worker.ready()
        assert "child ended by itself with exit code 3 before it was ready; its last lines:" in caught.value.message
        assert "no broker here" in caught.value.message
        assert "child.log" in caught.value.hint

    supervised(tmp_path, body)


def test_a_child_that_never_gets_ready_is_reported_with_what_was_expected(tmp_path: Path) -> None:
    async def body(supervisor: Supervisor) -> None:
        code = "import time; print('booting', flush=True); time.sleep(600)"
        worker = await supervisor.start(spec(code, tmp_path, ReadyLine("^ready$"), ready_within=0.3))
        await wait_for(lambda: worker.output.tail(1) == ["booting"], "the first line", deadline=10)
        with pytest.raises(WorkerError, match=r"not ready within 0.3 s: expected a line that matches '\^ready\$'"):
            await worker.ready()

    supervised(tmp_path, body)


def test_a_port_counts_as_ready_when_it_accepts(tmp_path: Path) -> None:
    async def body(supervisor: Supervisor) -> None:
        import socket

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        code = f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(600)"
        worker = await supervisor.start(spec(code, tmp_path, ReadyPort("127.0.0.1", port)))
        await worker.ready()
        assert worker.alive

    supervised(tmp_path, body)


def test_a_program_that_does_not_exist_is_one_clear_error(tmp_path: Path) -> None:
    async def body(supervisor: Supervisor) -> None:
        with pytest.raises(WorkerError, match="could not start child: No such file or directory: no-such-program"):
            await supervisor.start(spec("", tmp_path, argv=["no-such-program"]))

    supervised(tmp_path, body)


def test_a_polite_stop_tells_how_it_went(tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    deaf += "print('ready', flush=True); time.sleep(600)"
    polite = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    polite += "print('ready', flush=True); time.sleep(600)"

    async def body(supervisor: Supervisor) -> None:
        worker = await supervisor.start(spec(polite, tmp_path, ReadyLine("ready"), name="polite"))
        await worker.ready()
        ended = await worker.stop(10)
        assert (ended.returncode, ended.killed, ended.left) == (0, False, 0)
        worker = await supervisor.start(spec(deaf, tmp_path, ReadyLine("ready"), name="deaf"))
        await worker.ready()
        ended = await worker.stop(0.05)
        assert (ended.returncode, ended.killed) == (-signal.SIGKILL, True)

    supervised(tmp_path, body)


def test_a_paused_tree_stands_still_until_it_is_resumed(tmp_path: Path) -> None:
    def states(pids: list[int]) -> set[str]:
        return {Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] for pid in pids}

    async def body(supervisor: Supervisor) -> None:
        worker = await supervisor.start(spec(FAMILY, tmp_path, ReadyLine("ready")))
        await worker.ready()
        await wait_for(lambda: len(worker.pids()) == 5, "the family", deadline=10)
        pids = worker.pause()
        await wait_for(lambda: states(pids) == {"T"}, "all stopped", deadline=10, last_seen=lambda: str(states(pids)))
        worker.resume()
        await wait_for(lambda: "T" not in states(pids), "none stopped", deadline=10)
        worker.pause()
        await worker.kill_tree()
        assert worker.pids() == [], "a stopped tree can be killed"

    supervised(tmp_path, body)


def test_one_child_can_be_killed_and_a_stranger_cannot(tmp_path: Path) -> None:
    async def body(supervisor: Supervisor) -> None:
        worker = await supervisor.start(spec(FAMILY, tmp_path, ReadyLine("ready")))
        await worker.ready()
        await wait_for(lambda: len(worker.pids()) == 5, "the family", deadline=10)
        child = worker.pids()[1]
        await worker.kill_child(child)
        assert worker.alive
        assert child not in worker.pids()
        with pytest.raises(WorkerError, match="in the tree of child"):
            await worker.kill_child(os.getpid())

    supervised(tmp_path, body)


def test_the_end_of_a_process_is_told_once_to_early_and_late_listeners(tmp_path: Path) -> None:
    async def body(supervisor: Supervisor) -> None:
        worker = await supervisor.start(spec("import time; time.sleep(600)", tmp_path))
        told: list[int | None] = []
        worker.on_exit(told.append)
        await worker.kill_tree()
        worker.on_exit(told.append)
        assert told == [-9, -9]
        assert worker.how_it_ended() == "was killed by jobcheck"

    supervised(tmp_path, body)


def test_output_is_kept_for_a_fork_that_has_not_opened_it_yet(tmp_path: Path) -> None:
    async def body(supervisor: Supervisor) -> None:
        fifo = tmp_path / "out"
        os.mkfifo(fifo)
        read = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        forked = await supervisor.start(spec("import time\ntime.sleep(600)", tmp_path, name="root"))
        child = supervisor.adopt(spec("", tmp_path, name="forked"), forked.pid, read)
        child.drain()
        write = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)  # ENXIO where nobody has the other end
        os.write(write, b"here\n")
        os.close(write)
        child.drain()
        assert [line.text for line in child.output.lines] == ["here"]

    supervised(tmp_path, body)


def test_a_fork_of_a_running_process_can_be_adopted(tmp_path: Path) -> None:
    zygote = (
        "import os, time\npid = os.fork()\nif not pid:\n    os.setsid()\nelse:\n    print('child', pid, flush=True)\n"
    )

    async def body(supervisor: Supervisor) -> None:
        parent = await supervisor.start(spec(zygote + "time.sleep(600)", tmp_path, ReadyLine("child")))
        await parent.ready()
        pid = int(parent.output.tail(1)[0].split()[1])
        await wait_for(lambda: os.getsid(pid) == pid, "the child's own session", deadline=10)
        child = supervisor.adopt(spec("", tmp_path, name="forked"), pid)
        await child.kill_tree()
        assert not child.alive
        assert parent.alive

    supervised(tmp_path, body)


def test_closing_leaves_no_process_and_no_descriptor(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))

    async def body(supervisor: Supervisor) -> None:
        for number in range(3):
            worker = await supervisor.start(spec(FAMILY, tmp_path, ReadyLine("ready"), name=f"w{number}"))
            await worker.ready()

    supervised(tmp_path, body)
    mark = f"JOBCHECK_RUN={RUN}".encode()
    assert [one.pid for one in platform.processes() if one.alive and platform.carries(one.pid, mark)] == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before
