"""PostgreSQL's protocol 3, frontend and backend.

One REQUEST is a simple Query, a function call, or everything of the extended protocol up to Sync or Flush: it is held
and released as a whole. Its REPLY is everything up to ReadyForQuery, or up to the last answer that is due to a batch
that ended with Flush. A COPY from the client is two requests: the statement, and the end of its data, which is the
change; the data between are PART units. Start-up and authentication are CONTROL, notifications PUSH.

`info` of an SSLRequest: `starts_tls`, what follows its answer is TLS.
`info` of a request: `sql` and `params`, one entry for each statement that is carried out; `tables`, `functions` (those
not known to be harmless), `writes`, `locks`, and `wrote`: labels of the writes that it makes true, as far as known.
`info` of a reply: `tags`, `status` (I, T or E; empty after Flush), `error` (SQLSTATE and message, or None), `wrote`,
`notifications` (channel and payload). The CONTROL unit that ends the start-up has `backend_pid` and `parameters`, the
StartupMessage `user` and `database`.
"""

from __future__ import annotations

import struct

from .postgres_messages import (
    BODY_CAP,
    CANCEL_REQUEST,
    CLIENT_TYPES,
    GSS_REQUEST,
    MAX_LENGTH,
    MAX_STARTUP,
    SSL_REQUEST,
    startup_parameters,
)
from .postgres_replies import Replies
from .postgres_session import Session
from .stream import SKIP_FROM, StreamDecoder
from .unit import MAX_HELD, Kind, Unit, WireError

_HEADER = struct.Struct(">BI")
_STARTUP = struct.Struct(">II")
_DATA_ROW, _COPY_DATA = b"Dd"
_EMPTY_BODIES = frozenset(b"SHXc")
_MAY_BE_LONG = frozenset(b"PBQFd")
_LONG = 1024 * 1024


class PostgresDecoder(StreamDecoder):
    """Both directions of one connection to PostgreSQL."""

    protocol = "postgres"
    tls_advice = "add sslmode=disable (and no sslnegotiation=direct) to the database URL in the tests"

    def __init__(self, *, tls: bool = False) -> None:
        super().__init__()
        self.asks_for_tls = tls
        self._session = Session()
        self._replies = Replies(self._session)
        self._started = False
        self._refused_tls = False
        self._long = 0
        """Type of the client's message that is passed through because it is long."""
        self._copying = False
        """CopyData of the client is passed through."""
        self._long_reply = 0

    @property
    def backend_pid(self) -> int:
        """The server process of this connection, 0 before it is known."""
        return self._replies.backend_pid

    def client_end(self) -> list[Unit]:
        """As of every decoder; a client that leaves because it was refused TLS is told of in a note."""
        units = super().client_end()
        if self._refused_tls and not self._started:
            self._refused_tls = False
            note = f"the client left because it insists on TLS: say postgres(tls=True) in the rig, or {self.tls_advice}"
            units.append(Unit(b"", Kind.CONTROL, "postgres TLS refused", note=note))
        return units

    # Client.

    def _client_step(self, buf: bytes, pos: int) -> int:
        if not self._started:
            return self._startup(buf, pos)
        side = self._from_client
        if self._long:
            kind, self._long = self._long, 0
            body = bytes(side.capture or b"")
            side.capture = None
            return self._client_message(kind, body + buf[pos : pos + 1], buf, pos, pos + 1)
        size = len(buf)
        if size - pos < 5:
            side.want(5)
            return pos
        kind, length = _HEADER.unpack_from(buf, pos)
        if kind not in CLIENT_TYPES or not 4 <= length <= MAX_LENGTH or (kind in _EMPTY_BODIES and length != 4):
            raise WireError(f"expected a message of a client, got {buf[pos : pos + 5]!r}")
        end = pos + 1 + length
        if kind == _COPY_DATA:
            return self._copy_data(buf, pos, end)
        if end > size:
            if length <= SKIP_FROM:
                side.want(end - pos)
                return pos
            if kind not in _MAY_BE_LONG and length > _LONG:
                raise WireError(f"a message of type {chr(kind)} has {length} bytes")
            side.capture = bytearray(buf[pos + 5 : pos + 5 + BODY_CAP])
            self._long = kind
            return side.pass_over(buf, end - 1 - size, BODY_CAP)
        return self._client_message(kind, buf[pos + 5 : min(end, pos + 5 + BODY_CAP)], buf, pos, end)

    def _startup(self, buf: bytes, pos: int) -> int:
        side = self._from_client
        if len(buf) - pos < 8:
            side.want(8)
            return pos
        length, code = _STARTUP.unpack_from(buf, pos)
        if not 8 <= length <= MAX_STARTUP:
            raise WireError(f"expected a start-up message, got {buf[pos : pos + 8]!r}")
        end = pos + int(length)
        if end > len(buf):
            side.want(length)
            return pos
        unit = Unit(b"", Kind.CONTROL)
        if code in (SSL_REQUEST, GSS_REQUEST):
            unit.shape = "postgres SSLRequest" if code == SSL_REQUEST else "postgres GSSENCRequest"
            agreed = self.asks_for_tls and code == SSL_REQUEST
            unit.answer = b"S" if agreed else b"N"
            unit.info = {"starts_tls": agreed}
            self._refused_tls = code == SSL_REQUEST and not agreed
        elif code == CANCEL_REQUEST:
            unit.shape = "postgres CancelRequest"
            self._started = True
        elif code >> 16 == 3:
            parameters = startup_parameters(buf[pos:end])
            unit.shape = "postgres startup"
            unit.summary = f"startup user={parameters.get('user', '')} database={parameters.get('database', '')}"[:200]
            unit.info = {
                "user": parameters.get("user", ""),
                "database": parameters.get("database", "") or parameters.get("user", ""),
                "parameters": parameters,
            }
            self._started = True
        else:
            raise WireError(f"protocol version {code >> 16}.{code & 0xFFFF} instead of 3")
        self._finish(side, buf, end, unit)
        return end

    def _client_message(self, kind: int, body: bytes, buf: bytes, pos: int, end: int) -> int:
        side = self._from_client
        session = self._session
        code = chr(kind)
        if self._copying:
            self._end_copy_data(buf, pos)
        if side.spilled:  # its head said it all
            self._finish(side, buf, end, Unit(b"", Kind.PART))
        elif code in "PBDEC":
            session.message(code, body)
        elif code in "QF":
            session.message(code, body)
            self._request(buf, end, "query", synced=True)
        elif code == "S":
            self._request(buf, end, "sync", synced=True, copy_done=session.copy_ends)
        elif code == "H":
            self._request(buf, end, "flush", synced=False)
        elif code in "cf":
            extended = session.copy_end(failed=code == "f")
            if not extended:
                self._request(buf, end, "query", synced=True, copy_done=True)
        else:
            if session.ops:
                self._request(buf, pos, "flush", synced=False)
            shape = "postgres terminate" if code == "X" else "postgres password"
            self._finish(side, buf, end, Unit(b"", Kind.CONTROL, shape))
        return end

    def _request(self, buf: bytes, end: int, how: str, *, synced: bool, copy_done: bool = False) -> None:
        unit, batch = self._session.end_batch(how, synced=synced, copy_done=copy_done)
        if batch is not None:
            self._replies.batches.append(batch)
        self._finish(self._from_client, buf, end, unit)

    def _copy_data(self, buf: bytes, pos: int, end: int) -> int:
        """Data of a COPY: passed through as PART units."""
        side = self._from_client
        if not self._copying:
            if self._session.ops:
                self._request(buf, pos, "flush", synced=False)
            self._copying = side.spilled = True
        size = len(buf)
        while end <= size:
            pos = end
            if size - pos < 5 or buf[pos] != _COPY_DATA:
                return pos
            length = _HEADER.unpack_from(buf, pos)[1]
            if not 4 <= length <= MAX_LENGTH:
                return pos  # the next step says what is wrong
            end = pos + 1 + length
        if end - pos > SKIP_FROM:
            return side.pass_over(buf, end - size)
        side.want(end - pos)
        return pos

    def _end_copy_data(self, buf: bytes, pos: int) -> None:
        side = self._from_client
        self._copying = side.spilled = False
        if raw := side.take(buf, pos):
            self._units.append(Unit(raw, Kind.PART, last=False))

    def _client_head(self) -> Unit:
        self._session.message(chr(self._long), bytes(self._from_client.capture or b""))
        synced = chr(self._long) in "QF"
        unit, batch = self._session.end_batch("query" if synced else "flush", synced=synced)
        if batch is not None:
            self._replies.batches.append(batch)
        return unit

    def _client_pause(self, buf: bytes, pos: int) -> None:
        side = self._from_client
        if self._session.ops and not self._long and side.size + pos - side.start > MAX_HELD:
            # A pipeline without an end: what is here goes out, and is answered message by message.
            self._request(buf, pos, "flush", synced=False)

    # Server.

    def _server_step(self, buf: bytes, pos: int) -> int:
        side = self._from_server
        if self._long_reply:
            kind, self._long_reply = self._long_reply, 0
            body = bytes(side.capture or b"")
            side.capture = None
            return self._server_message(kind, body + buf[pos : pos + 1], buf, pos + 1)
        size = len(buf)
        if size - pos < 5:
            side.want(5)
            return pos
        kind, length = _HEADER.unpack_from(buf, pos)
        if kind not in Replies.TYPES or not 4 <= length <= MAX_LENGTH:
            raise WireError(f"expected a message of a server, got {buf[pos : pos + 5]!r}")
        end = pos + 1 + length
        if kind in (_DATA_ROW, _COPY_DATA):
            return self._rows(buf, pos, end, kind)
        if end > size:
            if length <= SKIP_FROM:
                side.want(end - pos)
                return pos
            side.capture = bytearray(buf[pos + 5 : pos + 5 + BODY_CAP])
            self._long_reply = kind
            return side.pass_over(buf, end - 1 - size, BODY_CAP)
        return self._server_message(kind, buf[pos + 5 : min(end, pos + 5 + BODY_CAP)], buf, end)

    def _rows(self, buf: bytes, pos: int, end: int, kind: int) -> int:
        """DataRow and CopyData are counted by no one and looked into by no one."""
        side = self._from_server
        self._replies.open = True
        size = len(buf)
        unpack = _HEADER.unpack_from
        while end <= size:
            pos = end
            if size - pos < 5:
                return pos
            found, length = unpack(buf, pos)
            if found != kind:
                return pos
            if not 4 <= length <= MAX_LENGTH:
                return pos  # the next step says what is wrong
            end = pos + 1 + length
        if end - pos > SKIP_FROM:
            return side.pass_over(buf, end - size)
        side.want(end - pos)
        return pos

    def _server_message(self, kind: int, body: bytes, buf: bytes, end: int) -> int:
        side = self._from_server
        done, spills = self._replies.message(chr(kind), body)
        for unit in done[:-1]:  # requests that the server skipped after an error
            self._units.append(unit)
        if done:
            self._finish(side, buf, end, done[-1])
        elif spills and not side.spilled:
            unit = self._server_head()
            self._finish(side, buf, end, unit)
            unit.last = False
            side.spilled = True
        return end

    def _server_head(self) -> Unit:
        return self._replies.head()

    def server_end(self) -> list[Unit]:
        """What is still held: a reply that was cut off may have been carried out."""
        cut_off = self._replies.cut_off()
        units = super().server_end()
        if units and cut_off is not None and units[0].kind is Kind.OPAQUE and not self._opaque:
            cut_off.raw = units[0].raw
            units = [cut_off]
        return units
