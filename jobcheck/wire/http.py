"""HTTP/1.1: requests whole, replies as soon as their head is here.

A request is one REQUEST unit, head and body, held until its body is complete; with `Expect: 100-continue` the head is
given out first (`last` is false) and the body follows as PART units. A reply is a REPLY unit with as much of its body
as came together with the head, then PART units. Interim 1xx replies are CONTROL. After an upgrade, a CONNECT or HTTP/2
prior knowledge the connection is opaque.

`info` of a request: `method`, `path`, `query`, `headers` (lower-case names), `body` (at most 256 KiB, chunks joined).
`info` of a reply: `status`, `headers`, `body` (as far as it came with the head; the last PART has all of it).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from .http_body import Body, Ends, reply_body, request_body
from .http_head import (
    MAX_HEAD,
    READING,
    ReplyHead,
    RequestHead,
    may_begin_request,
    read_reply,
    read_request,
    readable,
    request_labels,
)
from .shapes import one_line
from .stream import StreamDecoder
from .unit import Change, Kind, Unit, WireError

_PREFACE = b"PRI * HTTP/2.0"


@dataclass(slots=True)
class _Pending:
    """A request whose reply is due."""

    number: int
    method: str
    shape: str
    change: Change


_NOBODY = _Pending(0, "GET", "http unasked", Change.NO)


class _Lines:
    """A head under construction."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> bool:
        """Takes a line; true when it was the blank one behind the head. Raises WireError."""
        if not line:
            return bool(self.lines)  # blank lines before a message do not count
        self._size += len(line)
        if self._size > MAX_HEAD:
            raise WireError(f"a head is longer than {MAX_HEAD} bytes")
        self.lines.append(line)
        return False

    def take(self) -> list[bytes]:
        lines, self.lines, self._size = self.lines, [], 0
        return lines


class HttpDecoder(StreamDecoder):
    """Both directions of one connection to an HTTP server, or to a proxy in front of one."""

    protocol = "http"
    tls_advice = "say provider(tls=True) in the rig, or give the app an http:// URL of the provider in the tests"

    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        self._pending: deque[_Pending] = deque()
        self._request_lines = _Lines()
        self._request: RequestHead | None = None
        self._request_body = Body(Ends.NOW)
        self._reply_lines = _Lines()
        self._reply: ReplyHead | None = None
        self._reply_body = Body(Ends.NOW)
        self._answered = _NOBODY

    # Client.

    def _client_step(self, buf: bytes, pos: int) -> int:
        side = self._from_client
        if self._request is None:
            end = buf.find(b"\n", pos)
            if end < 0:
                if self._request_lines.lines:
                    side.want_line(buf, pos)
                elif not may_begin_request(side.want_start(buf, pos)):
                    raise WireError(f"expected a request, got {buf[pos : pos + 20]!r}")
                return pos
            line = buf[pos:end].rstrip(b"\r")
            if not self._request_lines.lines and line == _PREFACE:
                self.turn_opaque("HTTP/2 is not decoded: let the app's client speak HTTP/1.1 in the tests")
                return pos
            if not self._request_lines.add(line):
                if len(self._request_lines.lines) == 1 and line:
                    read_request([line])  # at once, so that another protocol is not held
                return end + 1
            self._begin_request(read_request(self._request_lines.take()))
            pos = end + 1
            if not self._request_body.done:
                self._give_head_if_expected(buf, pos)
                return pos
        else:
            new = self._request_body.step(side, buf, pos)
            if not self._request_body.done:
                return new
            pos = new
        self._end_request(buf, pos)
        return pos

    def _begin_request(self, head: RequestHead) -> None:
        self._request = head
        self._request_body = request_body(head.headers)

    def _give_head_if_expected(self, buf: bytes, pos: int) -> None:
        """The client may wait for `100 Continue` before it sends the body."""
        side = self._from_client
        if self._request and "100-continue" in self._request.headers.get("expect", "").lower():
            unit = self._client_head()
            self._finish(side, buf, pos, unit)
            unit.last = False
            side.spilled = True

    def _client_head(self) -> Unit:
        head = self._request
        if head is None:  # a head of more bytes than are ever held is an error long before
            return Unit(b"", Kind.REQUEST, "http ?", change=Change.MAYBE)
        body = bytes(self._request_body.kept)
        labels = request_labels(head, body)
        self._number += 1
        self._pending.append(_Pending(self._number, head.method, labels.shape, labels.change))
        info: dict[str, Any] = {
            "method": head.method,
            "path": head.path,
            "query": head.query,
            "headers": head.headers,
            "body": body,
        }
        return Unit(b"", Kind.REQUEST, labels.shape, self._number, labels.change, labels.summary, info)

    def _end_request(self, buf: bytes, pos: int) -> None:
        side = self._from_client
        if side.spilled:
            unit = Unit(b"", Kind.PART, number=self._number, info={"body": bytes(self._request_body.kept)})
        else:
            unit = self._client_head()
        self._finish(side, buf, pos, unit)
        self._request = None

    # Server.

    def _server_step(self, buf: bytes, pos: int) -> int:
        side = self._from_server
        if self._reply is None:
            end = buf.find(b"\n", pos)
            if end < 0:
                if self._reply_lines.lines:
                    side.want_line(buf, pos)
                elif not _may_begin_reply(side.want_start(buf, pos)):
                    raise WireError(f"expected a reply, got {buf[pos : pos + 20]!r}")
                return pos
            line = buf[pos:end].rstrip(b"\r")
            if not self._reply_lines.add(line):
                if len(self._reply_lines.lines) == 1 and line:
                    read_reply([line])
                return end + 1
            return self._begin_reply(buf, end + 1, read_reply(self._reply_lines.take()))
        pos = self._reply_body.step(side, buf, pos)
        if self._reply_body.done:
            self._end_reply(buf, pos)
        return pos

    def _begin_reply(self, buf: bytes, pos: int, head: ReplyHead) -> int:
        side = self._from_server
        asked = self._pending[0] if self._pending else _NOBODY
        if head.status < 200 and head.status != 101:
            text = f"{head.status} {head.reason}".rstrip()
            info = {"status": head.status, "headers": head.headers}
            # Without a number: it does not answer the request.
            self._finish(side, buf, pos, Unit(b"", Kind.CONTROL, "http interim", summary=text, info=info))
            return pos
        if self._pending:
            self._pending.popleft()
        self._answered = asked
        self._reply_body = reply_body(head.headers, asked.method, head.status)
        self._reply = head
        if head.status == 101 or (asked.method == "CONNECT" and head.status < 300):
            self._finish(side, buf, pos, self._reply_unit(head))
            what = head.headers.get("upgrade", "another protocol") if head.status == 101 else "a tunnel"
            self.turn_opaque(f"the connection became {one_line(what, 40)}, from here on the bytes pass undecoded")
        elif self._reply_body.done:
            self._end_reply(buf, pos)
        return pos

    def _reply_unit(self, head: ReplyHead) -> Unit:
        asked = self._answered
        body = bytes(self._reply_body.kept)
        summary = one_line(f"{head.status} {head.reason} {readable(head.headers, body)}".rstrip())
        info: dict[str, Any] = {"status": head.status, "headers": head.headers, "body": body}
        kind = Kind.REPLY if asked is not _NOBODY else Kind.CONTROL
        failed = head.status >= 400
        return Unit(b"", kind, asked.shape, asked.number, _truth(asked, head.status), summary, info, failed)

    def _end_reply(self, buf: bytes, pos: int) -> None:
        side = self._from_server
        head, self._reply = self._reply, None
        if head is None or side.spilled:
            status = head.status if head else 0
            info = {"body": bytes(self._reply_body.kept)}
            unit = Unit(b"", Kind.PART, "", self._answered.number, _truth(self._answered, status), info=info)
        else:
            unit = self._reply_unit(head)
        self._finish(side, buf, pos, unit)

    def _server_pause(self, buf: bytes, pos: int) -> None:
        """A reply is not held for its body."""
        side = self._from_server
        if self._reply is not None and not side.spilled and not self._opaque:
            unit = self._reply_unit(self._reply)
            self._finish(side, buf, pos, unit)
            unit.last = False
            side.spilled = True

    def server_end(self) -> list[Unit]:
        """The end of the connection ends a body that has no other end."""
        ends_here = self._reply is not None and self._reply_body.ends is Ends.CLOSE and self._from_server.spilled
        units = super().server_end()
        head = self._reply
        if ends_here and head is not None and not self._opaque:
            self._reply = None
            info = {"body": bytes(self._reply_body.kept)}
            truth = _truth(self._answered, head.status)
            units.append(Unit(b"", Kind.PART, "", self._answered.number, truth, info=info))
        return units


def _may_begin_reply(start: bytes) -> bool:
    return b"HTTP/1.".startswith(start[:7]) or not start.strip(b"\r")


def _truth(asked: _Pending, status: int) -> Change:
    """What a status proves. A 5xx may come from a provider that has acted already."""
    if asked.change is Change.NO or asked.method in READING:
        return Change.NO
    if status >= 500:
        return Change.MAYBE
    return Change.NO if status >= 400 else asked.change
