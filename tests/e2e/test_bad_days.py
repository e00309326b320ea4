"""The command line on a bad day: one clear message, the right exit code, nothing left behind, the journal kept."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from jobcheck.cli.main import run as command_line
from jobcheck.runner.agents import Exit
from jobcheck.services import base
from jobcheck.store.failures import Failures

from . import tiny
from .bad_day import (
    HANDLER,
    QUEUE,
    ROW,
    SLOW,
    WITH_DATABASE,
    Ended,
    at,
    jobcheck,
    journals,
    kept,
    project,
    rig,
    start,
)

ONLY_ONCE = ("--expect", "exactly_once: mark done")
EXPLORE = ("explore", *HANDLER)
Here = Callable[..., Ended]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    """The command line within this process, which is quicker: what it says, and no temporary folder is left."""

    def run(folder: Path, *words: str) -> Ended:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "path", list(sys.path))
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        monkeypatch.setenv("COLUMNS", "160")
        (tmp_path / "temporary").mkdir(exist_ok=True)
        capfd.readouterr()
        code = command_line(words)
        said = capfd.readouterr()
        assert list((tmp_path / "temporary").iterdir()) == []
        return Ended(code, said.out, said.err)

    return run


REFUSED = {
    "an app that cannot be imported": (
        {"settings": "import no_such_module"},
        ("explore", *QUEUE),
        2,
        ("the app tiny:app cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'", "tiny.py:"),
    ),
    "an upstream that nobody answers": (
        {"text": rig('"broker": jobcheck.redis(url="redis://:s3cret@127.0.0.1:1")')},
        ("explore", *QUEUE),
        2,
        ("broker: expected a server at redis://:***@127.0.0.1:1/, and it does not answer", "try: start it"),
    ),
    "a server on another host": (
        {"text": rig('"broker": jobcheck.redis(url="redis://:s3cret@redis.example.com:6379/0")')},
        ("explore", *QUEUE),
        3,
        ("redis://:***@redis.example.com:6379/0 is not on this machine", "allow_host='redis.example.com'"),
    ),
    "a setup file that is not there": (
        {"text": rig('"broker": jobcheck.redis(), "db": jobcheck.postgres(setup="schma.sql")')},
        ("explore", *QUEUE),
        3,
        ("db: expected the setup file ", "/project/schma.sql, and there is none", "try: its path counts from "),
    ),
    "a rig file with a syntax error": (
        {"text": "import jobcheck\ntiny = jobcheck.Rig(\n"},
        ("explore", *QUEUE),
        3,
        ("rig.py cannot be loaded: SyntaxError: '(' was never closed (rig.py, line 2)",),
    ),
    "a rig file that leaves with success": (
        {"text": "raise SystemExit(0)\n"},
        ("explore", *QUEUE),
        3,
        ("rig.py cannot be loaded: SystemExit: 0", "import the app inside the functions"),
    ),
    "an interpreter that is not there": (
        {"options": ', python="/no/such/python"'},
        ("explore", *QUEUE),
        2,
        ("could not start tiny-0-producer: No such file or directory: /no/such/python",),
    ),
    "a typo in a contract": (
        {},
        ("explore", "enqueue", "--expect", "exactly_onec: mark done"),
        3,
        ("--expect: expected one of exactly_once", "try: did you mean exactly_once?"),
    ),
    "a finding that is not known": ({}, ("replay", "abc123"), 3, ("no finding 'abc123'", "try: run")),
    "a report without any run": ({}, ("report",), 3, ("no run in reports yet", "try: jobcheck demo")),
    "a judgement without any run": ({}, ("judge",), 3, ("cannot read the journal", "try: ")),
    "reports that cannot be written": (
        {},
        (*EXPLORE, "--reports", "pyproject.toml/reports"),
        3,
        ("cannot make a run folder in pyproject.toml/reports: Not a directory", "try: choose a folder"),
    ),
    "an effect that no tap saw": (
        {
            "text": rig(
                '"broker": jobcheck.redis(), "payments": jobcheck.provider()',
                '"BROKER_URL": "{broker.url}", "OTHER_URL": "{payments.base}"',
            )
        },
        (*EXPLORE, "--expect", "exactly_once: payments POST /charges"),
        3,
        ("the clean run never showed it; effects seen: mark done (1 time); the tap of payments saw no bytes",),
    ),
    "a worker that ends while it boots": (
        {"settings": "import sys\nif 'worker' in sys.argv:\n    sys.exit('no licence for this machine')"},
        ("explore", *QUEUE, "--boot", "cold"),
        2,
        ("tiny-0-w1-1 ended by itself with exit code 1 before it was ready", "    no licence for this machine"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_in_one_message(tmp_path: Path, here: Here, case: str) -> None:
    values, words, code, texts = REFUSED[case]
    ended = here(project(tmp_path / "project", **values), *words).says(code, *texts)
    assert "s3cret" not in ended.err
    assert len([line for line in ended.errors if line.startswith(("error: ", "try: "))]) <= 2


def test_a_wrong_file_of_accepted_findings_is_told_before_the_run(tmp_path: Path, here: Here) -> None:
    folder = project(tmp_path / "project")
    (folder / "jobcheck-accepted.toml").write_text("[[accepted\n")
    here(folder, *EXPLORE).says(3, "jobcheck-accepted.toml is no TOML")
    assert journals(folder) == []


BY_TURNS = """
    import pathlib
    count = pathlib.Path("n")
    turn = int(count.read_text()) if count.exists() else 0
    count.write_text(str(turn + 1))
    jobcheck.mark("even" if turn % 2 == 0 else "odd", key)
    jobcheck.mark("done", key)
"""
NOT_TOLD = {
    "a worker that never gets ready": (
        "",
        {
            "settings": "import sys, time\nif 'worker' in sys.argv:\n"
            "    print('asks the licence server', flush=True)\n    time.sleep(600)"
        },
        (*QUEUE, "--boot", "cold", "--deadline", "3s"),
        ("error: tiny-0-w1-1 was not ready within 3 s: ", "its last lines:\n    asks the licence server"),
    ),
    "a variable that the worker never uses": (
        "",
        {"variable": "BROKER_ADDRESS"},
        (*QUEUE, "--deadline", "3s"),
        ("-1 was not ready within 3 s: it never used the tap of 'broker': it has another broker address",),
    ),
    "a worker that its job kills": (
        "    import os, time\n    os.kill(os.getppid(), 9)\n    time.sleep(5)\n",
        {},
        QUEUE,
        ("? enqueue, queue mode: the clean run did not end: the worker ended by itself",),
    ),
    "a job that is not deterministic": (
        BY_TURNS,
        {},
        HANDLER,
        ("two clean runs of this job differ", "marks even", "marks odd", "0 points, 0 strikes"),
    ),
    "a job that goes around the taps": (
        "    import urllib.request\n    urllib.request.urlopen('http://api.example.com/charges', timeout=5)\n",
        {},
        HANDLER,
        ("api.example.com", "0 points, 0 strikes"),
    ),
}


@pytest.mark.parametrize("case", NOT_TOLD)
def test_what_cannot_be_told_ends_with_2_and_says_why(tmp_path: Path, here: Here, case: str) -> None:
    body, values, words, texts = NOT_TOLD[case]
    here(project(tmp_path / "project", body or tiny.ONCE, **values), "explore", *words).says(2, *texts)


def test_a_handler_that_fails_says_how_on_lines_of_its_own(tmp_path: Path, here: Here) -> None:
    folder = project(tmp_path / "project", "    raise SystemExit(3)\n")
    ended = here(folder, *EXPLORE).says(2, "the handler failed in a clean run: SystemExit: 3", "tiny.py:15 work")
    assert "\\n" not in ended.out
    assert Exit(-signal.SIGSEGV, None).text == "ended by SIGSEGV, which jobcheck did not send"


@pytest.mark.parametrize("mode", ["queue", "handler"])
def test_a_job_that_never_ends_is_unknown_and_named(tmp_path: Path, here: Here, mode: str) -> None:
    folder = project(tmp_path / "project", "    import time\n    time.sleep(600)\n")
    words = HANDLER if mode == "handler" else QUEUE
    ended = here(folder, "explore", *words, "--deadline", "6s", "--boot", "zygote")
    named = "tiny.work has been running for" if mode == "queue" else "the handler was still running after 6 s"
    ended.says(2, "the clean run did not end: ", "after 6 s", named)


def test_a_job_that_waits_for_its_time_is_named_with_how_long(tmp_path: Path, here: Here) -> None:
    folder = project(tmp_path / "project", call="tiny.work.apply_async((key,), countdown=3600)")
    ended = here(folder, "explore", *QUEUE, "--deadline", "6s")
    ended.says(2, "the clean run did not end: not quiet after 6 s: tiny.work is not due for another 3")


def test_an_estimate_stands_before_the_strikes_and_names_what_makes_them_long(tmp_path: Path) -> None:
    """What breaks the broker's connection makes no task retry: of 17 strikes it is the 8 on the database."""
    folder = project(tmp_path / "project", ROW + tiny.ONCE, text=WITH_DATABASE)
    source = (folder / "tiny.py").read_text()
    retrying = "@app.task(autoretry_for=(Exception,), default_retry_delay=180)"
    (folder / "tiny.py").write_text(source.replace("@app.task", retrying))
    said = (
        r"6 points, 4 lost requests, 5 lost replies and 8 error replies: about 2 min; tiny\.work retries after 180 s "
        r"\(default_retry_delay\): up to 8 of the strikes make it retry, and are hung after 8 s "
        r"\(--speed 1000 makes them short; a deadline above 180s waits for them\)"
    ).replace(" ", r"\s+")
    with start(folder, "explore", *QUEUE, "--faults", "reset", "--deadline", "8s") as run:
        run.says(said)
        run.send(signal.SIGINT)
        assert run.end().code == 2


BOOTS = """
import sys
from pathlib import Path
if 'worker' in sys.argv:
    boots = Path(__file__).with_name("boots")
    boots.write_text(boots.read_text() + "x" if boots.exists() else "x")
    if len(boots.read_text()) {when}:
        sys.exit("the licence server is away")
"""


@pytest.mark.parametrize(
    ("when", "code", "texts"),
    [
        ("== 7", 1, ("verified 3/3", "1 duplicated")),
        (">= 7", 2, ("seen, and not run again because the run was at its end: ", "not verified")),
    ],
)
def test_what_was_found_before_a_worker_died_is_kept(
    tmp_path: Path, here: Here, when: str, code: int, texts: tuple[str, ...]
) -> None:
    """It is run again by fresh workers; where none boots any more, it is no verdict and yet shown."""
    folder = project(tmp_path / "project", tiny.TWICE, settings=BOOTS.format(when=when))
    ended = here(folder, "explore", "enqueue", *ONLY_ONCE, "--lanes", "1", "--boot", "cold")
    ended.says(code, "ended by itself with exit code 1 before it was ready", "the licence server is away", *texts)
    ended.says(code, "capped at 5 of 6", "mark done happens again")
    for failure in Failures(folder).all():
        assert f"jobcheck replay {failure.id}" in ended.out.splitlines()
    assert "handler" in {failure.layer for failure in Failures(folder).all()}


def test_a_port_that_was_taken_meanwhile_is_given_up_for_another(
    tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A free port is asked for before the server is started: another program may be faster."""
    free = base.free_port
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = [taken.getsockname()[1]] * 2
        monkeypatch.setattr(base, "free_port", lambda: ports.pop() if ports else free())
        folder = project(tmp_path / "project", text=rig('"broker": jobcheck.redis()'))
        here(folder, *EXPLORE).says(0, "2 fired: 2 ok")
        assert ports == []
        monkeypatch.setattr(base, "free_port", lambda: taken.getsockname()[1])
        here(folder, *EXPLORE).says(2, "broker: found: ", "did not start", "already in use")


# A disk that is full, servers that die


def limited(size: int) -> Callable[[], None]:
    """Files that reach this size are refused, as on a full disk: EFBIG in place of ENOSPC."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_ends_the_run_and_keeps_the_journal(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    ended = jobcheck(folder, *EXPLORE, preexec_fn=limited(4000))
    ended.says(2, "/journal.jsonl: File too large", "try: free some space; what was written so far is kept")
    assert kept(folder)[:2] == ["run", "trial"]


def test_a_report_that_cannot_be_written_is_shown_and_a_workers_log_does_no_harm(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", "    print('x' * 30000, flush=True)\n" + tiny.ONCE)
    ended = jobcheck(folder, *EXPLORE, preexec_fn=limited(9000)).says(2, "2 fired: 2 ok", "report.html: File too large")
    assert not (folder / "reports" / "latest").exists(), "latest never names half a run"
    assert kept(folder)[-1] == "end"
    assert ended.out.startswith("\n  job")


KILLED = {
    "broker at the start": ("", ("redis-server",), 0, "broker: redis"),
    "broker while jobs run": ("", ("redis-server",), 4, "broker: redis"),
    "database while jobs run": (WITH_DATABASE, ("postgres", "-D"), 2, "db: postgres"),
}


@pytest.mark.parametrize("case", KILLED)
def test_a_server_that_dies_in_mid_run_is_named(tmp_path: Path, case: str) -> None:
    text, words, count, name = KILLED[case]
    folder = project(tmp_path / "project", (ROW if text else "") + SLOW, text=text)
    with start(folder, "explore", *(HANDLER if text else QUEUE)) as run:
        server = run.find(*words)
        if count:
            run.trials(count)
        else:
            run.says("broker: redis")
        os.kill(server, signal.SIGKILL)
        ended = run.end()
    ended.says(2, name, "was ended by SIGKILL, which jobcheck did not send, during the run; its last lines:")
    assert kept(folder)[: count + 1] == ["run", *["trial"] * count]


# Two at once, and journals that were cut


def test_two_runs_at_once_in_one_project_are_both_right(tmp_path: Path, here: Here) -> None:
    folder = project(tmp_path / "project", tiny.TWICE)
    words = ("explore", "--handler", "tiny:work", "--case", "row")
    with start(folder, *words, *ONLY_ONCE) as one, start(folder, *words, *ONLY_ONCE) as other:
        for run in (one, other):
            run.end().says(1, "3 fired: 2 ok, 1 duplicated")
    (failure,) = Failures(folder).all()
    reports = [json.loads((path.parent / "report.json").read_text()) for path in journals(folder)]
    assert [report["subjects"][0]["findings"][0]["id"] for report in reports] == [failure.id] * 2
    assert (folder / "reports" / "latest").resolve() in {path.parent.resolve() for path in journals(folder)}

    # Two runs that were cut: what is whole is judged as stored, what is not is told in one line.
    whole = journals(folder)[0].read_bytes()
    latest = folder / "reports" / "latest" / "journal.jsonl"
    for data, code, text in (
        (whole[:-20], 1, "2 ok, 1 duplicated; as stored"),
        (whole[: whole.index(b'{"type":"subject"') + 100], 3, "holds no job that was explored to its end"),
        (whole.replace(b'"purpose"', b'"porpoise"'), 3, "cannot be read: "),
        (b"no journal\n" + whole, 3, "line 1: expected a JSON object"),
    ):
        latest.write_bytes(data)
        here(folder, "judge").says(code, text)


# Where it runs


def test_a_strange_folder_without_a_home_or_a_locale_is_fine(tmp_path: Path) -> None:
    folder = project(tmp_path / "Ümläute, $spaces and 'quotes'")
    bare = {"HOME": None, "TERM": "dumb", "LANG": "C", "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = jobcheck(folder, "explore", *QUEUE, "--max-points", "1", env=bare).says(0, "capped at 1 of 5")
    assert ended.out.isascii()
    assert "\x1b" not in ended.out + ended.err


def test_a_home_that_cannot_be_written_and_a_long_temporary_folder_are_fine(tmp_path: Path) -> None:
    long = tmp_path / ("long" * 30)
    long.mkdir()
    long.chmod(0o755)
    env = {"HOME": "/dev/null", "XDG_CACHE_HOME": None, "JOBCHECK_CACHE": None, "TMPDIR": str(long)}
    folder = project(tmp_path / "project", text=WITH_DATABASE)
    jobcheck(folder, *EXPLORE, env=env).says(0, "2 fired: 2 ok")
    assert list(long.iterdir()) == []


def test_a_closed_output_is_no_error_and_a_full_one_is_told(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    assert jobcheck(folder, "--version", preexec_fn=lambda: os.close(1)).says(0).err == ""
    jobcheck(folder, *EXPLORE, preexec_fn=lambda: os.close(2)).says(0, "2 fired: 2 ok")
    with Path("/dev/full").open("wb") as full:
        ended = jobcheck(folder, "--help", stdout=full).says(2, "cannot write the output: No space left on device")
        assert ended.err.count("error: ") == 1
        assert jobcheck(folder, "replay", "abc123", stderr=full).code == 3


def test_a_reader_that_goes_away_in_mid_run_leaves_nothing(tmp_path: Path) -> None:
    read, write = os.pipe()
    folder = project(tmp_path / "project", SLOW)
    try:
        with start(folder, *EXPLORE, stdout=write, stderr=write) as run:
            run.trials(1)
            os.close(read)
            assert run.end().code == 2
    finally:
        os.close(write)
    assert "trial" in kept(folder)


# Signals


STOPPED = [
    ("a guardian", signal.SIGINT, True),
    ("copying a database", signal.SIGTERM, False),
    ("both servers", signal.SIGINT, False),
    ("strikes", signal.SIGTERM, True),
]


@pytest.mark.parametrize(("moment", "number", "group"), STOPPED)
def test_a_stopped_run_says_so_in_one_line_and_leaves_nothing(
    tmp_path: Path, moment: str, number: signal.Signals, group: bool
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    temporary.chmod(0o777)
    folder = project(tmp_path / "project", ROW + SLOW, text=WITH_DATABASE)
    with start(folder, "explore", *QUEUE, env={"TMPDIR": str(temporary)}) as run:
        at(run, moment)
        run.send(number, group=group)
        ended = run.end()
    said = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
    ended.says(2)
    assert ended.errors == [f"error: stopped by {said}; every worker and private server was ended"]
    assert list(temporary.iterdir()) == []
    assert "run" in kept(folder)


def test_a_run_that_waits_for_an_app_is_stopped_at_once(tmp_path: Path) -> None:
    """Nothing wakes its loop for half a minute."""
    folder = project(tmp_path / "project", settings="import time\nprint('imports', flush=True)\ntime.sleep(600)")
    with start(folder, "explore", *QUEUE) as run:
        run.until(lambda: any("imports" in log.read_text() for log in folder.glob("reports/*/output/*.log")), "the app")
        run.send(signal.SIGTERM)
        run.end(20).says(2, "stopped by SIGTERM")


def test_an_impatient_ctrl_c_leaves_nothing_either(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", ROW + SLOW, text=WITH_DATABASE)
    with start(folder, "explore", *QUEUE) as run:
        at(run, "the first trial")
        run.send(signal.SIGINT, group=True)
        run.until(lambda: len(run.marked()) < 8, "the end of some", or_its_own=True)
        run.send(signal.SIGINT, group=True)
        run.send(signal.SIGTERM)
        assert run.end().code in (2, -signal.SIGINT, -signal.SIGTERM)


def test_sigterm_is_told_where_no_run_goes_on_too(tmp_path: Path) -> None:
    """Here: while help is printed into a pipe that nobody reads."""
    folder = project(tmp_path / "project")
    read, write = os.pipe()
    try:
        os.set_blocking(write, False)
        while True:
            try:
                os.write(write, b"x" * 4096)
            except BlockingIOError:
                break
        os.set_blocking(write, True)
        with start(folder, "--help", stdout=write) as run:
            run.until(lambda: "pipe_write" in Path(f"/proc/{run.popen.pid}/wchan").read_text(), "the full pipe")
            run.send(signal.SIGTERM)
            assert run.end().errors == ["error: stopped by SIGTERM"]
    finally:
        os.close(read)
        os.close(write)
