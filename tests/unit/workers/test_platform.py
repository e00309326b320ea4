"""Which processes belong together, by what the platform shows; and what it shows of ourselves."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from jobcheck.workers import platform, sockets
from jobcheck.workers.guard import Watched
from jobcheck.workers.platform import Process, descendants, members

ROOT = Process(10, 1, 10, 100, True)


def family(*more: Process) -> list[Process]:
    return [Process(1, 0, 1, 1, True), ROOT, *more]


def pids(found: list[Process]) -> set[int]:
    return {one.pid for one in found}


def test_descendants_are_found_over_all_generations() -> None:
    snapshot = family(Process(11, 10, 10, 101, True), Process(12, 11, 12, 102, True), Process(13, 1, 13, 103, True))
    assert descendants([10], snapshot) == {10, 11, 12}


def test_members_are_descendants_and_the_session_also_of_orphans() -> None:
    snapshot = family(
        Process(11, 1, 10, 101, True),  # an orphan in the session
        Process(12, 11, 12, 102, True),  # its child, in a session of its own
        Process(13, 10, 10, 103, False),  # a zombie
        Process(14, 1, 14, 104, True),
    )
    assert pids(members({10: 100}, b"", snapshot)) == {10, 11, 12}


def test_a_root_that_is_gone_still_names_its_session() -> None:
    assert pids(members({10: 100}, b"", [Process(11, 1, 10, 101, True)])) == {11}


def test_a_number_that_was_given_to_another_process_is_no_root() -> None:
    stranger = Process(10, 1, 10, 999, True)
    assert members({10: 100}, b"", [stranger, Process(11, 10, 10, 1000, True)]) == []


def test_we_are_never_members_ourselves() -> None:
    me = Process(os.getpid(), 10, 10, 101, True)
    assert pids(members({10: 100}, b"", family(me))) == {10}


def test_our_own_process_is_seen_as_it_is() -> None:
    me = platform.process(os.getpid())
    assert me is not None
    assert (me.pid, me.parent, me.session, me.alive) == (os.getpid(), os.getppid(), os.getsid(0), True)
    assert me in platform.processes()
    assert platform.same(me)
    assert not platform.same(Process(me.pid, me.parent, me.session, me.start + 1, True))
    assert platform.start_time(me.pid) == me.start


def test_the_slow_way_by_psutil_sees_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    name, value = next((key, value) for key, value in os.environ.items() if key == "PATH")
    seen = []
    for linux in (True, False):
        monkeypatch.setattr(platform, "LINUX", linux)
        me = platform.process(os.getpid())
        assert me is not None
        assert platform.carries(me.pid, f"{name}={value}".encode())
        assert not platform.carries(me.pid, b"JOBCHECK_RUN=nobody")
        assert me.pid in {one.pid for one in platform.processes()}
        seen.append((me.pid, me.parent, me.session, me.alive))
    assert seen[0] == seen[1]


def test_what_is_gone_is_told_apart_from_what_is_there() -> None:
    assert platform.process(2**22 + 1) is None
    assert platform.start_time(2**22 + 1) is None
    assert not platform.send(2**22 + 1, 0)
    assert platform.send(os.getpid(), 0)
    assert platform.signals(2**22 + 1) == {}


def test_signal_masks_are_read() -> None:
    old = signal.signal(signal.SIGUSR2, lambda *_: None)
    try:
        mine = platform.signals(os.getpid())[os.getpid()]
        assert mine.has(mine.caught, signal.SIGUSR2)
        assert not mine.has(mine.caught, signal.SIGKILL)
    finally:
        signal.signal(signal.SIGUSR2, old)
    assert platform.signal_name(9) == "SIGKILL"
    assert platform.signal_name(200) == "signal 200"


def test_a_command_name_may_hold_anything() -> None:
    text = b"7 (a) b ( c) S 3 7 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 999"
    assert platform._parse_stat(7, text) == Process(7, 3, 5, 12345, True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.8.7", "::1"])
@pytest.mark.parametrize("linux", [True, False])
def test_the_owner_of_a_socket_is_found_in_both_families(
    host: str, linux: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "LINUX", linux)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server, socket.socket(family) as client:
        client.connect(server.getsockname())
        ours, theirs = client.getsockname()[1], server.getsockname()[1]
        assert sockets.owners([os.getpid(), 1], ours, theirs, host) == [os.getpid()]
        if linux:  # the fast way itself, not the one that stands in for it
            assert sockets._diag_inode(ours, host, theirs) == os.fstat(client.fileno()).st_ino
        assert sockets.owners([os.getpid()], ours) == [os.getpid()]
        assert sockets.owners([], ours, theirs) == []
        assert sockets.owners([os.getpid()], 1, 1) == []


@pytest.mark.parametrize("index", [True, False])
def test_peers_are_the_foreign_ends_whichever_way_they_are_read(index: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not index:
        monkeypatch.setattr(sockets, "_diag", lambda request, flags: [])
    # A child holds the client's end; for it, we are foreign.
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as six,
    ):
        code = "import socket, sys; a = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        code += "b = socket.create_connection(('::1', int(sys.argv[2]))); c = socket.socket(type=socket.SOCK_DGRAM)\n"
        code += "c.connect(('127.0.0.1', 9)); print('ready', flush=True); sys.stdin.read()"
        ports = [server.getsockname()[1], six.getsockname()[1]]
        argv = [sys.executable, "-c", code, *map(str, ports)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            assert sockets.peers([child.pid]) == [("127.0.0.1", 9), ("127.0.0.1", ports[0]), ("::1", ports[1])]
            assert sockets.peers([child.pid, os.getpid()]) == [("127.0.0.1", 9)], "we are one of them"


def test_the_guardian_passes_over_lines_that_make_no_sense() -> None:
    watched = Watched("run")
    for line in ("pid 7 100 15", "pid x y z", "pid 8", "gone 9", "gone x", "folder ", "folder /tmp/a b", "", "bogus"):
        watched.take(line)
    assert (watched.roots, watched.polite, watched.folders) == ({7: 100}, {7: 15}, ["/tmp/a b"])
    watched.take("gone 7")
    assert (watched.roots, watched.polite) == ({}, {})


def test_a_file_below_a_private_folder_is_out_of_reach_for_others(tmp_path: Path) -> None:
    file = Path("/bin/sh").resolve()
    assert platform.executable_by_others(file)
    inner = tmp_path / "f"
    inner.write_text("x")
    tmp_path.chmod(0o700)
    assert not platform.executable_by_others(inner)
    assert not platform.executable_by_others(tmp_path / "none")


def test_a_port_of_our_own_is_none_that_the_system_gives() -> None:
    """A process that listens a second later finds it free, however many taps were opened meanwhile."""
    mine = list(itertools.islice(platform.own_ports(7), 5))
    assert mine == list(range(mine[0], mine[0] + 5))
    assert next(platform.own_ports(8)) == mine[1]
    with contextlib.ExitStack() as open_ones:
        given = [open_ones.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(200)]
    assert max(mine) < min(given)
