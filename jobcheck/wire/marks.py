"""jobcheck's own protocol of one line: `mark <kind> <key>` and the answer `ok`, from any language.

`info`: `mark` (the kind) and `key`.

Beside it, one line of output: `jobcheck-mark: <kind> <key>`, which nobody answers (`told`).
"""

from __future__ import annotations

import re
from collections import deque

from .shapes import normalise, one_line
from .stream import StreamDecoder
from .unit import Change, Kind, Unit, WireError

_TOLD = re.compile(r"""jobcheck-mark: ([^\s"'\\]+)(?: ([^"\x1b\\]*))?""")
"""A log format may have put something before it, a quote or a colour behind it."""


def told(line: str) -> tuple[str, str] | None:
    """Kind and key of the mark that a line of output tells; None where it tells none."""
    found = _TOLD.search(line)
    return (found[1], (found[2] or "").rstrip()) if found else None


class MarkDecoder(StreamDecoder):
    """Each line of the client is a REQUEST, each line of the server the REPLY to the oldest one."""

    protocol = "marks"

    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        self._pending: deque[tuple[int, str]] = deque()

    def _client_step(self, buf: bytes, pos: int) -> int:
        end = buf.find(b"\n", pos)
        if end < 0:
            self._from_client.want_line(buf, pos)
            return pos
        line = buf[pos:end].rstrip(b"\r").decode("utf-8", "replace")
        verb, _, rest = line.partition(" ")
        kind, _, key = rest.partition(" ")
        if verb != "mark" or not kind:
            raise WireError(f"expected a line `mark <kind> <key>`, got {one_line(line, 60)!r}")
        self._number += 1
        shape = f"mark {normalise(kind)}"
        self._pending.append((self._number, shape))
        info = {"mark": kind, "key": key}
        unit = Unit(b"", Kind.REQUEST, shape, self._number, Change.YES, one_line(line), info)
        self._finish(self._from_client, buf, end + 1, unit)
        return end + 1

    def _server_step(self, buf: bytes, pos: int) -> int:
        end = buf.find(b"\n", pos)
        if end < 0:
            self._from_server.want_line(buf, pos)
            return pos
        line = buf[pos:end].rstrip(b"\r").decode("utf-8", "replace")
        if not self._pending:
            raise WireError("an answer without a mark")
        number, shape = self._pending.popleft()
        failed = line != "ok"
        change = Change.NO if failed else Change.YES
        unit = Unit(b"", Kind.REPLY, shape, number, change, one_line(line), failed=failed)
        self._finish(self._from_server, buf, end + 1, unit)
        return end + 1
