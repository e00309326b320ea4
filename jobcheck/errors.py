"""The error tree. Every error a user can meet is one of these, and each carries its exit code.

An error says what was expected, what was seen and where; `hint` says what to try next.
"""

from __future__ import annotations

from collections.abc import Mapping

EXIT_OK = 0
EXIT_BROKEN = 1
"""A contract was broken by the handler or by the settings."""
EXIT_UNKNOWN = 2
"""Unknown, not exercised or aborted."""
EXIT_USAGE = 3
"""The command, the rig or the scenario is wrong."""


class JobcheckError(Exception):
    """Base of all errors that end a run with one clear line instead of a traceback.

    `message` is one or more plain sentences; `hint` is what to try next, printed on its own line.
    """

    exit_code = EXIT_UNKNOWN

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  try: {self.hint}" if self.hint else self.message


class UsageError(JobcheckError):
    """The command line, the rig, a contract or a scenario file is wrong."""

    exit_code = EXIT_USAGE


class ServiceError(JobcheckError):
    """A broker, database or other server cannot be found, started or reached."""


class WorkerError(JobcheckError):
    """A worker or another child process never got ready, or ended by itself."""


class CaseError(JobcheckError):
    """A case could not be enqueued, no message of it arrived, or an effect has no owner or two owners."""

    ids: Mapping[str, str] = {}
    """What the case owned when its function failed: what it did before has an owner too."""


class Aborted(JobcheckError):
    """The run was stopped: Ctrl-C, SIGTERM, or a budget that ended."""


class Stopped(Aborted):
    """Somebody stopped the run: Ctrl-C or SIGTERM."""


class WaitTimeout(JobcheckError):
    """A named condition was not met within its deadline; the message says what was last seen."""
