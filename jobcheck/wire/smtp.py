"""SMTP: one mail is one change, at the dot that ends it (or at `BDAT ... LAST`); everything else is CONTROL.

After an accepted STARTTLS the connection is opaque, unless the tap ends the TLS (`info` of the reply: `starts_tls`).

`info` of the REQUEST `smtp DATA`: `mail_from`, `rcpt` (a tuple, without refused ones), `subject`.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from email.header import decode_header, make_header
from typing import Any

from .shapes import one_line
from .stream import StreamDecoder
from .unit import Change, Kind, Unit, WireError

MAX_RCPT = 1000
"""Recipients of one mail that are remembered."""
MAX_SUBJECT_AT = 64 * 1024
"""Bytes of a mail in which its subject is looked for."""

_VERB = re.compile(rb"[A-Za-z]{1,16}")
_VERB_START = re.compile(rb"[A-Za-z]{1,16}(?:\r*| .*)", re.S)
_REPLY_START = re.compile(rb"[2-5](?:[0-9](?:[0-9](?:\r+|[ -].*)?)?)?", re.S)
_REPLY = re.compile(rb"([2-5][0-9][0-9])([ -]|$)(.*)", re.S)
_PATH = re.compile(r"\s*(?:FROM|TO)\s*:\s*(?:<([^>]*)>|(\S+))", re.I)
_SUBJECT = re.compile(rb"(?:\A|\n)subject:[ \t]*((?:[^\r\n]|\r?\n[ \t])*)", re.I)
_BDAT = re.compile(r"\s*([0-9]{1,18})(\s+LAST)?\s*", re.I)


@dataclass(slots=True)
class _Mail:
    sender: str = ""
    rcpt: list[str] = field(default_factory=list)
    start: bytearray = field(default_factory=bytearray)
    """The first bytes of the content."""


@dataclass(slots=True)
class _Pending:
    """A command whose reply is due."""

    verb: str
    argument: str
    number: int = 0
    """Of a REQUEST."""
    shape: str = ""


class SmtpDecoder(StreamDecoder):
    """Both directions of one connection to a mail server."""

    protocol = "smtp"
    tls_advice = "say smtp(tls=True) in the rig, or turn SSL off in the app's mail settings in the tests"

    def __init__(self, *, tls: bool = False) -> None:
        super().__init__()
        self.asks_for_tls = tls
        self._number = 0
        self._mail = _Mail()
        self._pending: deque[_Pending] = deque()
        self._expect = "command"
        """What the client sends next: `command`, `data`, `chunk` (of BDAT), `login` (a line of AUTH)."""
        self._chunk_left = 0
        self._chunk_last = False
        self._line_start = True
        """The content is at the start of a line."""
        self._greeted = False
        self._reply_lines: list[str] = []

    # Client.

    def _client_step(self, buf: bytes, pos: int) -> int:
        side = self._from_client
        if self._expect == "data":
            return self._data(buf, pos)
        if self._expect == "chunk":
            return self._chunk(buf, pos)
        end = buf.find(b"\n", pos)
        if end < 0:
            start = side.want_start(buf, pos)
            if self._expect == "command" and not _VERB_START.fullmatch(start):
                raise WireError(f"expected a command, got {buf[pos : pos + 20]!r}")
            return pos
        line = buf[pos:end].rstrip(b"\r").decode("utf-8", "replace")
        if self._expect == "login":
            self._expect = "command"
            self._pending.append(_Pending("AUTH", ""))
            self._finish(side, buf, end + 1, Unit(b"", Kind.CONTROL, "smtp AUTH", summary="AUTH ***"))
            return end + 1
        verb, _, argument = line.partition(" ")
        verb = verb.upper()
        if not _VERB.fullmatch(verb.encode("utf-8", "replace")):
            raise WireError(f"expected a command, got {line[:20]!r}")
        if verb == "BDAT":
            return self._begin_chunk(buf, end + 1, argument)
        self._pending.append(_Pending(verb, argument))
        if verb == "MAIL":
            self._mail = _Mail(_address(argument))
        elif verb == "RCPT" and len(self._mail.rcpt) < MAX_RCPT:
            self._mail.rcpt.append(_address(argument))
        elif verb in ("RSET", "HELO", "EHLO"):
            self._mail = _Mail()
        if verb == "DATA":
            # The client waits for 354 before it sends the content, so a refusal is known by then.
            self._expect = "data"
            self._line_start = True
        shown = "AUTH ***" if verb == "AUTH" else one_line(line)
        self._finish(side, buf, end + 1, Unit(b"", Kind.CONTROL, f"smtp {verb}", summary=shown))
        return end + 1

    def _data(self, buf: bytes, pos: int) -> int:
        """Content up to the line that is a single dot."""
        side = self._from_client
        if self._line_start:
            if (end := _dot(buf, pos)) < 0:
                side.want_line(buf, pos)
                return pos
            if end > pos:
                self._finish_mail(buf, end, "smtp DATA")
                return end
        at = buf.find(b"\n.", pos)
        while at >= 0:
            end = _dot(buf, at + 1)
            if end > at + 1:
                self._keep(buf, pos, at + 1)
                self._finish_mail(buf, end, "smtp DATA")
                return end
            if end < 0:  # a dot whose line is not here
                self._keep(buf, pos, at + 1)
                self._line_start = True
                side.want_line(buf, at + 1)
                return at + 1
            at = buf.find(b"\n.", at + 1)
        self._keep(buf, pos, len(buf))
        self._line_start = buf[-1:] == b"\n"
        return len(buf)

    def _keep(self, buf: bytes, pos: int, end: int) -> None:
        room = MAX_SUBJECT_AT - len(self._mail.start)
        if room > 0:
            self._mail.start += buf[pos : min(end, pos + room)]

    def _finish_mail(self, buf: bytes, end: int, shape: str) -> None:
        side = self._from_client
        self._expect = "command"
        unit = Unit(b"", Kind.PART, number=self._number) if side.spilled else self._request(shape)
        self._finish(side, buf, end, unit)
        self._mail = _Mail()

    def _request(self, shape: str) -> Unit:
        self._number += 1
        self._pending.append(_Pending("content", "", self._number, shape))
        mail = self._mail
        subject = _subject(bytes(mail.start))
        info: dict[str, Any] = {"mail_from": mail.sender, "rcpt": tuple(mail.rcpt), "subject": subject}
        summary = one_line(f"mail to {', '.join(mail.rcpt[:5])}: {subject}".rstrip())
        return Unit(b"", Kind.REQUEST, shape, self._number, Change.YES, summary, info)

    def _client_head(self) -> Unit:
        if self._expect == "data" or (self._expect == "chunk" and self._chunk_last):
            return self._request("smtp DATA" if self._expect == "data" else "smtp BDAT")
        if self._expect == "chunk":
            self._pending.append(_Pending("BDAT", ""))
        return Unit(b"", Kind.CONTROL, "smtp BDAT")

    def _begin_chunk(self, buf: bytes, pos: int, argument: str) -> int:
        match = _BDAT.fullmatch(argument)
        if match is None:
            raise WireError(f"expected BDAT with a size, got {argument[:20]!r}")
        self._chunk_left = int(match.group(1))
        self._chunk_last = match.group(2) is not None
        self._expect = "chunk"
        return self._chunk(buf, pos)

    def _chunk(self, buf: bytes, pos: int) -> int:
        side = self._from_client
        stop = min(len(buf), pos + self._chunk_left)
        self._keep(buf, pos, stop)
        self._chunk_left -= stop - pos
        if self._chunk_left:
            return stop
        if self._chunk_last:
            self._finish_mail(buf, stop, "smtp BDAT")
        else:
            self._expect = "command"
            if not side.spilled:
                self._pending.append(_Pending("BDAT", ""))
            self._finish(side, buf, stop, Unit(b"", Kind.CONTROL, "smtp BDAT"))
        return stop

    # Server.

    def _server_step(self, buf: bytes, pos: int) -> int:
        side = self._from_server
        end = buf.find(b"\n", pos)
        if end < 0:
            if not _REPLY_START.fullmatch(side.want_start(buf, pos)):
                raise WireError(f"expected a reply, got {buf[pos : pos + 20]!r}")
            return pos
        match = _REPLY.fullmatch(buf[pos:end].rstrip(b"\r"))
        if match is None or len(self._reply_lines) > 1000:
            raise WireError(f"expected a reply, got {buf[pos : min(end, pos + 20)]!r}")
        self._reply_lines.append(match.group(3)[:200].decode("utf-8", "replace"))
        if match.group(2) != b"-":
            self._finish(side, buf, end + 1, self._reply(int(match.group(1))))
        return end + 1

    def _reply(self, code: int) -> Unit:
        lines, self._reply_lines = self._reply_lines, []
        summary = one_line(f"{code} {lines[0]}".rstrip())
        failed = code >= 400
        unit = Unit(b"", Kind.CONTROL, "smtp greeting", summary=summary, info={"code": code}, failed=failed)
        if not self._greeted:
            self._greeted = True
            return unit
        if not self._pending or code == 421:  # the server ends the connection by itself
            unit.shape = "smtp unasked"
            if not self._pending:
                return unit
        asked = self._pending.popleft()
        unit.shape = asked.shape or f"smtp {asked.verb}"
        if asked.number:
            unit.kind, unit.number = Kind.REPLY, asked.number
            unit.change = Change.NO if failed else Change.YES
        else:
            self._learn(asked, code)
            if asked.verb == "STARTTLS" and code == 220 and self.asks_for_tls:
                unit.info = {"code": code, "starts_tls": True}
        return unit

    def _learn(self, asked: _Pending, code: int) -> None:
        """What the answer to a command means for what comes next."""
        verb, argument = asked.verb, asked.argument
        if verb == "RCPT" and code >= 400:
            if (address := _address(argument)) in self._mail.rcpt:
                self._mail.rcpt.remove(address)
        elif verb == "DATA" and code >= 400 and self._expect == "data":
            self._expect = "command"
        elif verb == "AUTH" and code == 334:
            self._expect = "login"
        elif verb == "STARTTLS" and code == 220 and not self.asks_for_tls:
            self.turn_opaque(f"STARTTLS was accepted, so nothing on this connection can be decoded: {self.tls_advice}")

    def _server_head(self) -> Unit:
        return Unit(b"", Kind.CONTROL, "smtp reply")


def _dot(buf: bytes, pos: int) -> int:
    """The position behind a line that is a single dot; `pos` itself when it is another line; -1 when that is open."""
    start = buf[pos : pos + 3]
    if start[:1] != b".":
        return pos
    if start[:2] == b".\n":
        return pos + 2
    if start == b".\r\n":
        return pos + 3
    return -1 if start in (b".", b".\r") else pos


def _address(argument: str) -> str:
    match = _PATH.match(argument)
    return one_line((match.group(1) or match.group(2) or "") if match else argument)


def _subject(start: bytes) -> str:
    head, _, _ = start.replace(b"\r\n", b"\n").partition(b"\n\n")
    match = _SUBJECT.search(head)
    if match is None:
        return ""
    text = re.sub(r"\n[ \t]+", " ", match.group(1)[:2000].decode("utf-8", "replace"))
    try:
        text = str(make_header(decode_header(text)))
    except Exception:  # headers lie about their charset in more ways than can be named; the raw text is good enough
        pass
    return one_line(text)
