"""How long the body of an HTTP/1.1 message is, and where it ends. Bodies are consumed as they come, never joined."""

from __future__ import annotations

import enum

from .stream import Side
from .unit import WireError

BODY_CAP = 256 * 1024
"""Bytes of one body that are kept."""
MAX_CHUNK_LINE = 4096

_HEX = frozenset(b"0123456789abcdefABCDEF")


class Ends(enum.Enum):
    """What ends a body."""

    NOW = enum.auto()
    """There is none."""
    LENGTH = enum.auto()
    CHUNKS = enum.auto()
    CLOSE = enum.auto()
    """The end of the connection."""


class Body:
    """One body on its way."""

    def __init__(self, ends: Ends, length: int = 0) -> None:
        self.ends = ends
        self.kept = bytearray()
        """The first `BODY_CAP` bytes, without the framing of chunks."""
        self.done = ends is Ends.NOW or (ends is Ends.LENGTH and length == 0)
        self._left = length
        self._part = "size"
        """Of a chunked body: `size`, `data`, `end`, `trailer`."""

    def step(self, side: Side, buf: bytes, pos: int) -> int:
        """Consumes what belongs to the body; the same position when it needs more. Raises WireError."""
        if self.ends is Ends.CLOSE:
            self._keep(buf, pos, len(buf))
            return len(buf)
        if self.ends is Ends.LENGTH:
            pos = self._take(buf, pos)
            self.done = self._left == 0
            return pos
        if self._part == "data":
            pos = self._take(buf, pos)
            if self._left == 0:
                self._part = "end"
            return pos
        end = buf.find(b"\n", pos)
        if end < 0:
            side.want_line(buf, pos, MAX_CHUNK_LINE)
            return pos
        line = buf[pos:end].rstrip(b"\r")
        if self._part == "end":
            if line:
                raise WireError("a chunk is longer than its size says")
            self._part = "size"
        elif self._part == "trailer":
            self.done = not line
        else:
            digits = line.partition(b";")[0].strip()
            if not digits or len(digits) > 16 or not _HEX.issuperset(digits):
                raise WireError(f"expected the size of a chunk, got {line[:20]!r}")
            self._left = int(digits, 16)
            self._part = "data" if self._left else "trailer"
        return end + 1

    def _take(self, buf: bytes, pos: int) -> int:
        stop = min(len(buf), pos + self._left)
        self._keep(buf, pos, stop)
        self._left -= stop - pos
        return stop

    def _keep(self, buf: bytes, pos: int, stop: int) -> None:
        room = BODY_CAP - len(self.kept)
        if room > 0:
            self.kept += buf[pos : min(stop, pos + room)]


def request_body(headers: dict[str, str]) -> Body:
    """The body that follows the head of a request. Raises WireError."""
    if coding := headers.get("transfer-encoding"):
        if coding.lower().rpartition(",")[2].strip() != "chunked":
            raise WireError(f"a request with transfer-encoding {coding!r} has no end")
        return Body(Ends.CHUNKS)
    length = _content_length(headers)
    return Body(Ends.LENGTH, length) if length else Body(Ends.NOW)


def reply_body(headers: dict[str, str], method: str, status: int) -> Body:
    """The body that follows the head of the answer to a request with `method`. Raises WireError."""
    if method == "HEAD" or status in (204, 304) or status < 200 or (method == "CONNECT" and status < 300):
        return Body(Ends.NOW)
    if coding := headers.get("transfer-encoding"):
        chunked = coding.lower().rpartition(",")[2].strip() == "chunked"
        return Body(Ends.CHUNKS if chunked else Ends.CLOSE)
    length = _content_length(headers)
    return Body(Ends.CLOSE) if length is None else Body(Ends.LENGTH, length)


def _content_length(headers: dict[str, str]) -> int | None:
    text = headers.get("content-length")
    if text is None:
        return None
    lengths = {part.strip() for part in text.split(",")}
    first = lengths.pop()
    if lengths or not (first.isascii() and first.isdigit()) or len(first) > 18:
        raise WireError(f"content-length is {text[:40]!r}")
    return int(first)
