"""jobcheck itself is killed, at any moment: within seconds nothing of the run is left, and the next run is right.

(A harness that is killed while it only holds services and a family of processes: `test_guardian`.)
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .bad_day import ESCAPES, QUEUE, ROW, SLOW, WITH_DATABASE, Run, at, jobcheck, kept, project, start

MOMENTS = ("a guardian", "copying a database", "both servers", "strikes")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One project for all kills: what one of them leaves would be in the way of the next."""
    return project(tmp_path_factory.mktemp("killed") / "project", ESCAPES + ROW + SLOW, text=WITH_DATABASE)


@pytest.mark.parametrize("moment", MOMENTS)
def test_nothing_is_left_of_a_run_that_was_killed(folder: Path, tmp_path: Path, moment: str) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    temporary.chmod(0o777)
    with start(folder, "explore", *QUEUE, env={"TMPDIR": str(temporary)}) as run:
        at(run, moment)
        run.send(signal.SIGKILL)
        ended = run.end()
    assert ended.code == -signal.SIGKILL
    assert ended.errors == []
    assert list(temporary.iterdir()) == []
    assert kept(folder)[0] == "run"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_prefork_pool_and_a_child_that_left_its_session_are_gone_and_memory_is_given_back(
    folder: Path, number: signal.Signals
) -> None:
    """The database lies in a memory file system, where the machine has one and TMPDIR does not say otherwise."""
    with start(folder, "explore", *QUEUE, env={"TMPDIR": None}) as run:
        run.trials(2)
        among = run.marked()
        run.send(number, group=True)
        assert run.end().code == -number
    agents = [pid for pid, command in among.items() if "agent.py" in command]
    assert len(agents) >= 7, "a producer, two zygotes, their workers with a child each, and what left its session"
    assert len(among) >= len(agents) + 4, "a guardian, a broker, and a database with helpers of its own"


def test_the_next_run_is_right(folder: Path) -> None:
    jobcheck(folder, "explore", *QUEUE, "--max-points", "1").says(0, "1 fired: 1 ok")
    assert kept(folder)[-1] == "end"


def test_nothing_of_a_faster_clock_stays_in_shared_memory(folder: Path) -> None:
    """libfaketime keeps a page for each process; one that is killed leaves it behind."""
    (folder / "fast.yaml").write_text(
        "title: fast\nrig: rig.py:tiny\nworkload: {enqueue: enqueue, count: 100, rate: 1/s}\nworkers: 1\n"
        "clock: {speed: 2}\nexpect:\n  - at_least_once: mark done\n"
    )

    def pages(run: Run) -> list[Path]:
        numbers = {path.name.rpartition("_")[2]: path for path in Path("/dev/shm").glob("*faketime_*")}
        return [path for number, path in numbers.items() if number.isdigit() and int(number) in run.seen]

    with start(folder, "run", "fast.yaml", "--seed", "7") as run:
        run.says("1 case|100 cases")
        assert pages(run)
        run.send(signal.SIGKILL)
        run.end()
        assert pages(run) == []
