"""The group of all commands, and what holds for each: one clear message for an error, and its exit code."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TextIO

import click

from .. import __version__
from ..config import nearest
from ..errors import EXIT_OK, EXIT_UNKNOWN, EXIT_USAGE, JobcheckError, Stopped

COMMANDS = {
    "demo": "Find the planted bugs of the sample shop, and none where there is none.",
    "init": "Write a first rig and a first test for the app in this folder.",
    "probe": "Run one clean job: hosts, variables, points, effects, and the contracts to paste.",
    "run": "Run scenario files: faults while many jobs run, and what must hold in the end.",
    "explore": "Strike one job at every point where breaking can matter, and count its effects.",
    "replay": "Run one finding again: FIXED, FAILED or ERROR.",
    "explain": "What a kind of finding means, with code before and after.",
    "accept": "Accept a known finding, with a reason and an end: still shown, not failing.",
    "judge": "Judge a stored run again, without running anything.",
    "payloads": "Record payloads from the wire; try those of one version on workers of another.",
    "toxiproxy": "Answer Toxiproxy's HTTP API, for its clients in any language.",
    "report": "Show, print or open the report of a run.",
    "selftest": "Plant bugs and demand that each is found at its place, and no right job accused.",
    "doctor": "What is on this machine, what is missing, and how to get it.",
    "services": "The private brokers and databases: install them ahead of the first run.",
}
"""Name and short help of each command; its module is loaded when it is called."""


class Lazy(click.Group):
    """Loads a command's module when it is called, and not for the list of all of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f".{name}", __package__).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = nearest(args[0], COMMANDS)
            raise click.UsageError(f"no command {args[0]!r}" + (f"; {near}" if near else ""), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl(
                [
                    ("0", "all held"),
                    ("1", "a contract was broken by the handler or the settings, or a scenario does not hold"),
                    ("2", "unknown, not exercised or aborted"),
                    ("3", "the command, the rig or a contract is wrong"),
                ]
            )


@click.group(cls=Lazy, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="jobcheck %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error (also behind a command).")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> int:
    """Proves that every side effect of a background job happens exactly once, whatever happens to the worker."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return EXIT_OK


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code. Errors are told on stderr, in a line or two."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    patient = True
    try:
        with _terminable():
            code = _invoke([word for word in words if word != "--debug"])
        if sys.stdout is not None:  # closed by who started us
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Who read our output has gone. Nothing is left to say.
        return EXIT_UNKNOWN
    except (KeyboardInterrupt, click.Abort):
        patient = False
        _say("stopped by Ctrl-C")
        return EXIT_UNKNOWN
    except Exception as error:
        if debug:
            raise
        patient = not isinstance(error, Stopped)
        return _told(error)
    finally:
        _let_go(sys.stdout, patient=patient)
        _let_go(sys.stderr, patient=patient)


def _let_go(stream: TextIO | None, *, patient: bool) -> None:
    """Leaves nothing to Python's own flush at the end: that one waits for a reader who reads nothing, for ever, and
    makes the exit code 120 where nothing can be written. Whoever was stopped does not wait for a reader at all."""
    if stream is None:
        return
    try:
        if patient or select.select([], [stream], [], 0)[1]:
            stream.flush()
            return
    except (OSError, ValueError):
        pass  # full, broken or closed
    _drop(stream)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM is a clean end with a message also where no run is going on: while reports are read or written."""

    def end(*_: object) -> None:
        raise Stopped("stopped by SIGTERM")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _drop(stream: TextIO) -> None:
    with contextlib.suppress(OSError, ValueError):  # it has no file, or is closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _invoke(words: list[str]) -> int:
    """What `click.main` does, without its own way of handling errors and exit codes."""
    try:
        with cli.make_context("jobcheck", words) as ctx:
            return int(cli.invoke(ctx) or EXIT_OK)
    except click.exceptions.Exit as end:
        return end.exit_code


def _told(error: Exception) -> int:
    if isinstance(error, JobcheckError):
        _say(error.message, error.hint)
        return error.exit_code
    if isinstance(error, click.ClickException):
        place = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "jobcheck"
        _say(error.format_message().rstrip("."), f"{place} --help")
        return EXIT_USAGE
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        _say(f"cannot write {error.filename or 'the output'}: {error.strerror}", "free some space")
        return EXIT_UNKNOWN
    _say(f"a bug in jobcheck: {type(error).__name__}: {error}", "the same command with --debug shows where")
    return EXIT_UNKNOWN


def _say(message: str, hint: str = "") -> None:
    lines = [f"error: {message}", *([f"try: {hint}"] if hint else [])]
    with contextlib.suppress(OSError):  # the exit code still tells
        click.echo("\n".join(lines), err=True)
