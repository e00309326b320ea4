"""The command line. Only what a command needs is loaded: `jobcheck --help` answers at once."""

from __future__ import annotations


def main() -> int:
    """The entry point of `jobcheck`. Returns the exit code: 0 all held, 1 broken, 2 unknown or aborted, 3 usage."""
    from .main import run

    return run()
