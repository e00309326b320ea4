"""What holds for every command: help, errors in words, exit codes."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from jobcheck import __version__
from jobcheck.cli import command_line
from jobcheck.cli.main import COMMANDS, cli, run
from jobcheck.errors import Aborted, UsageError, WorkerError


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def failing(monkeypatch):
    """`failing(error)`: a command `demo` that raises it."""

    def plant(error: BaseException) -> None:
        @click.command("demo")
        def command() -> int:
            raise error

        monkeypatch.setattr("jobcheck.cli.demo.command", command)

    return plant


def test_help_lists_every_command_and_the_exit_codes(capsys):
    for words in ([], ["--help"], ["-h"]):
        assert run(words) == 0
        text = capsys.readouterr().out
        assert [name for name in COMMANDS if f"\n  {name} " not in text] == []
        assert "3  the command, the rig or a contract is wrong" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_says_what_its_short_help_says(name, capsys):
    assert run([name, "--help"]) == 0
    assert f"Usage: jobcheck {name}" in capsys.readouterr().out
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name


def test_the_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"jobcheck {__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["exlpore"], "error: no command 'exlpore'; did you mean explore?\ntry: jobcheck --help\n"),
        (["demo", "--seed", "x"], "error: Invalid value for '--seed'"),
        (["demo", "--seeds", "1"], "try: jobcheck demo --help\n"),
        (["explore", "--boot", "hot"], "error: Invalid value for '--boot'"),
        (["explore", "f"], "error: no rig: neither --rig nor [tool.jobcheck] rig"),
        (["explore", "f", "--rig", "nowhere.py:x"], "nowhere.py\ntry: "),
        (["explore", "f", "--expect", "exactly_one: mail"], "try: did you mean exactly_once?\n"),
        (["replay", "c07e"], "none is remembered yet"),
        (["replay"], "error: Missing argument 'ID'"),
        (["replay", "c07e", "--deadline", "soon"], "error: the command line: deadline: expected a time such as 60s"),
        (["explore", "f", "--deadline", "0s"], "error: the command line: deadline: expected a time such as 60s"),
        (["judge", "nowhere"], "error: cannot read the journal nowhere"),
        (["report"], "error: no run in reports yet\ntry: jobcheck demo\n"),
    ],
)
def test_a_wrong_command_line_is_told_in_words_and_ends_with_3(words, said, capsys):
    assert run(words) == 3
    output = capsys.readouterr()
    assert output.out == ""
    assert said in output.err
    assert "Traceback" not in output.err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("no rig", hint="name one"), 3, "error: no rig\ntry: name one\n"),
        (WorkerError("the worker died"), 2, "error: the worker died\n"),
        (Aborted("stopped by Ctrl-C"), 2, "error: stopped by Ctrl-C\n"),
        (KeyboardInterrupt(), 2, "error: stopped by Ctrl-C\n"),
        (ZeroDivisionError("oops"), 2, "error: a bug in jobcheck: ZeroDivisionError: oops\ntry: the same command"),
    ],
)
def test_an_error_is_one_clear_message_and_its_exit_code(failing, error, code, said, capsys):
    failing(error)
    assert run(["demo"]) == code
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("words", [["--debug", "demo"], ["demo", "--debug"]])
def test_debug_shows_where_an_error_comes_from(failing, words):
    failing(WorkerError("the worker died"))
    with pytest.raises(WorkerError):
        run(words)


def test_the_entry_point_returns_the_exit_code(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["jobcheck", "--version"])
    assert command_line() == 0
    assert capsys.readouterr().out.startswith("jobcheck ")


def test_help_loads_neither_the_engine_nor_the_terminals():
    code = (
        "import sys; from jobcheck.cli.main import run; run(['--help']); print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    assert not {"rich", "asyncio", "psycopg", "redis", "psutil", "yaml"} & set(loaded)
    assert {name for name in loaded if name.startswith("jobcheck.")} <= {
        *("jobcheck.cli", "jobcheck.cli.main", "jobcheck.config", "jobcheck.errors"),
    }


def test_a_demo_without_its_libraries_names_the_extra(monkeypatch, capsys):
    monkeypatch.setattr("jobcheck.cli.demo.find_spec", lambda name: None)
    assert run(["demo"]) == 3
    assert capsys.readouterr().err == (
        "error: the sample shop needs celery and requests, which this Python does not have\n"
        'try: pip install "jobcheck[demo]" (from a clone: pip install "/path/to/jobcheck[demo]")\n'
    )
