"""The command line. Only what a command needs is loaded: `jobcheck --help` answers at once."""

from __future__ import annotations

import sys


def command_line() -> int:
    """The entry point of `jobcheck`. Returns the exit code: 0 all held, 1 broken, 2 unknown or aborted, 3 usage."""
    try:
        from .main import run

        return run()
    except KeyboardInterrupt:  # before there is anything to end
        sys.stderr.write("error: stopped by Ctrl-C\n")
        return 2
