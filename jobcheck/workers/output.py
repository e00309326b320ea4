"""What a process writes, line by line: kept within bounds, stamped, handed to listeners, and written to a log file."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..clock import REAL, Clock

KEPT_LINES = 5000
"""Lines of one process that stay in memory."""
LINE_LIMIT = 64 * 1024
"""Bytes after which a line without an end is cut."""
LOG_LIMIT = 64 * 1024 * 1024
"""Bytes of a log file; what follows is counted and not written."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of output, without its end."""

    at: float
    """Seconds on the clock's monotonic scale, when it was read."""
    text: str


class Output:
    """The output of one process. `path`, when given, gets all of it as it came, after what is there already."""

    def __init__(self, path: Path | None = None, *, clock: Clock = REAL) -> None:
        self.path = path
        self.lines: deque[Line] = deque(maxlen=KEPT_LINES)
        self.bytes = 0
        self._clock = clock
        self._rest = b""
        self._listeners: list[Callable[[Line], None]] = []
        self._log: BinaryIO | None = path.open("ab", buffering=0) if path else None

    def feed(self, data: bytes) -> None:
        """Takes bytes as they were read, whole lines or not."""
        self._write(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            self._add(line)
        while len(self._rest) > LINE_LIMIT:
            self._add(self._rest[:LINE_LIMIT])
            self._rest = self._rest[LINE_LIMIT:]

    def close(self) -> None:
        """Ends the last line and the log file. More calls do nothing."""
        if self._rest:
            self._add(self._rest)
            self._rest = b""
        if self._log:
            self._log.close()
            self._log = None

    def subscribe(self, listener: Callable[[Line], None]) -> Callable[[], None]:
        """Hands every further line to `listener`; the result ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def tail(self, count: int = 20) -> list[str]:
        """The last lines, also the one that has no end yet."""
        texts = [line.text for line in list(self.lines)[-count:]]
        if self._rest:
            texts.append(_decode(self._rest))
        return texts[-count:]

    @property
    def text(self) -> str:
        """All lines that are kept."""
        return "\n".join(self.tail(KEPT_LINES + 1))

    def _add(self, raw: bytes) -> None:
        line = Line(self._clock.now(), _decode(raw))
        self.lines.append(line)
        for listener in list(self._listeners):
            listener(line)

    def _write(self, data: bytes) -> None:
        if self._log and self.bytes < LOG_LIMIT:
            try:
                self._log.write(data)
                if self.bytes + len(data) >= LOG_LIMIT:
                    self._log.write(b"\n[jobcheck: the log is full, the rest is not written]\n")
            except OSError:
                # A full disk ends the run where the journal is written; the lines are kept in memory anyway.
                self._log.close()
                self._log = None
        self.bytes += len(data)


def _decode(raw: bytes) -> str:
    return raw.rstrip(b"\r").decode("utf-8", "replace")
