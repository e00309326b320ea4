"""What a process of a run is, as data."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReadyLine:
    """Ready when a line of its output matches this regular expression (searched, not anchored)."""

    regex: str


@dataclass(frozen=True, slots=True)
class ReadyPort:
    """Ready when something accepts a TCP connection there."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ReadyNow:
    """Ready as soon as it is started."""


Ready = ReadyLine | ReadyPort | ReadyNow


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One process to start. It leads its own session; its standard output and error are read as one stream."""

    name: str
    """Unique among the processes of its supervisor; also the name of its log file."""
    argv: Sequence[str]
    env: Mapping[str, str]
    """The whole environment, nothing is inherited (see `env.scrubbed`)."""
    cwd: Path
    ready: Ready = field(default_factory=ReadyNow)
    ready_within: float = 30.0
    """Seconds."""
    user: str | None = None
    """The account to run as, where the harness is root."""
    grace: float = 5.0
    """Seconds that it gets between the polite signal and SIGKILL."""
    stdin_pipe: bool = False
    """Whether `Worker.send` can write to it; otherwise its standard input is empty."""
    stop_signal: int = signal.SIGTERM
    """The polite signal."""
