"""The roles of an app beside its first worker, as their user describes them. Data only; nothing here starts anything.

*Workers* are worker processes of the job system with arguments of their own, such as those that serve another queue. A
*process* is any other long-running part of the app: a relay, a web server, a scheduler.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ..errors import UsageError

RESERVED = (
    "producer",
    "producers",
    "workers",
    "everybody",
    "handler",
    "caller",
    "recovery",
    "worker",
    "marks",
    "folder",
)
"""Names that say something else already; so do `w1`, `w2` ..."""
READY_WITHIN = 30.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Further workers of the job system: `jobcheck.worker("-Q mail -c 2 -P threads", env={...})`.

    `args` go to the end of the worker's command line; `env` comes over the rig's. Both are templates, as the rig's env.
    """

    args: str | Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        return _words(self.args)


@dataclass(frozen=True, slots=True)
class Process:
    """A long-running process of the app: `jobcheck.process("gunicorn shop.wsgi -b {web.host}:{web.port}")`.

    Command and `env` are templates, as the rig's env; `{NAME.host}`, `{NAME.port}` and `{NAME.url}` are its own
    address. `python` is the app's. It is ready when a line of its output matches `ready`, a regular expression; without
    one, when somebody answers at its port, if the rig names it anywhere; else as soon as it runs.
    """

    command: str | Sequence[str]
    ready: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    within: float = READY_WITHIN
    """Seconds until it must be ready."""
    schedules: bool = False
    """The job system's own scheduler; `command` are its further arguments. It runs in scenarios only: a job that comes
    by the clock in the middle of an exploration would make each of its runs another one."""

    @property
    def words(self) -> tuple[str, ...]:
        return _words(self.command)


def scheduler(args: str | Sequence[str] = "", *, env: Mapping[str, str] | None = None, ready: str = "") -> Process:
    """The app's own scheduler (`celery beat`), with further arguments. Its schedule file lies in the run's folder."""
    return Process(args, ready, dict(env or {}), schedules=True)


Role = TypeVar("Role", Workers, Process)


def read_roles(
    given: Mapping[str, str | Sequence[str] | Role], kind: type[Role], upstreams: Mapping[str, object]
) -> dict[str, Role]:
    """What a rig says about roles of one kind, all written out. Raises UsageError."""
    found: dict[str, Role] = {}
    what = "workers" if kind is Workers else "processes"
    for name, said in given.items():
        if not name.replace("_", "").replace("-", "").isalnum() or name in RESERVED or _numbered(name):
            raise UsageError(
                f"{what}[{name!r}]: expected a name of letters and digits that says nothing else in jobcheck",
                hint=f"not w1, w2 ..., {', '.join(RESERVED)}",
            )
        if name in upstreams:
            raise UsageError(f"{what}[{name!r}]: the rig has an upstream of this name already")
        role: Role = said if isinstance(said, kind) else kind(said)  # type: ignore[arg-type]
        if not role.words and not getattr(role, "schedules", False):
            raise UsageError(f"{what}[{name!r}]: expected a command, got nothing")
        found[name] = role
    return found


def _numbered(name: str) -> bool:
    return name[:1] == "w" and name[1:].isdigit()


def _words(said: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(shlex.split(said)) if isinstance(said, str) else tuple(said)
