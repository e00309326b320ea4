"""What all decoders share: the bytes of one direction, and the turn to opaque.

A decoder is a `StreamDecoder` with one *step* method a direction. A step looks at one item (a line, a message) of the
buffer and answers with the position behind it, or with the same position when it needs more; it says then how much.
Bytes that were stepped over belong to the unit under construction until `take` gives them out. So the time is linear
in the bytes, however they are cut: what is held is joined only when a step can make progress.
"""

from __future__ import annotations

from collections.abc import Callable

from .tls import TLS_UNDECIDED, client_hello, tls_note
from .unit import MAX_HELD, Change, Kind, Unit, WireError

MAX_LINE = 64 * 1024
"""Bytes of one protocol line; a longer one is not this protocol."""

LINE_START = 512
"""Bytes of a line that are looked at before its end is here."""

SKIP_FROM = 64 * 1024
"""A length-prefixed body of more bytes than this is passed through without being joined first."""

OPAQUE_SHAPE = "opaque bytes"

Step = Callable[[bytes, int], int]


class Side:
    """The bytes of one direction: what is parsed but not given out yet, and what is not parsed yet."""

    __slots__ = (
        "capture",
        "capture_max",
        "longest",
        "needed",
        "parts",
        "scanned",
        "size",
        "skip",
        "spilled",
        "start",
        "tail",
    )

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        """Bytes of the unit under construction that earlier calls parsed."""
        self.size = 0
        """Bytes in `parts`."""
        self.tail = bytearray()
        """Bytes that no step has accepted."""
        self.needed = 0
        """Bytes that `tail` must have before a step is worth it; 0: it must have a further line end."""
        self.longest = MAX_LINE
        """Bytes that `tail` may have without a line end."""
        self.scanned = 0
        self.start = 0
        """Where, in the buffer of this call, the unit under construction begins."""
        self.skip = 0
        """Bytes to pass through without a step."""
        self.capture: bytearray | None = None
        """Gets the first `capture_max` bytes of what is skipped."""
        self.capture_max = 0
        self.spilled = False
        """The head of the unit under construction was given out; the rest are PART units."""

    def want(self, count: int) -> None:
        """The next step needs `count` bytes from the position it answered with."""
        self.needed = count

    def want_line(self, buf: bytes, pos: int, limit: int = MAX_LINE) -> None:
        """The next step needs a line end. Raises WireError when the line is already longer than `limit`."""
        if len(buf) - pos > limit:
            raise WireError(f"a line is longer than {limit} bytes")
        self.needed = 0
        self.longest = limit

    def want_start(self, buf: bytes, pos: int) -> bytes:
        """Asks for the rest of a line, and answers with its first bytes, by which another protocol shows at once.

        The step is called again for every byte of those, so that nothing foreign is held until a line end.
        """
        have = len(buf) - pos
        if have < LINE_START:
            self.needed = have + 1
        else:
            self.want_line(buf, pos)
        return buf[pos : pos + LINE_START]

    def pass_over(self, buf: bytes, count: int, capture: int = 0) -> int:
        """Leaves `count` bytes beyond the buffer to be passed through; answers with the end of the buffer."""
        self.skip = count
        self.capture_max = capture
        if not capture:
            self.capture = None
        return len(buf)

    def offer(self, data: bytes) -> bytes | None:
        """The buffer to step through, or None when nothing can complete yet."""
        tail = self.tail
        if not tail:
            return data
        tail += data
        if self.needed:
            if len(tail) < self.needed:
                return None
        elif tail.find(b"\n", self.scanned) < 0:
            self.scanned = len(tail)
            if len(tail) <= self.longest:
                return None
        buf = bytes(tail)
        tail.clear()
        self.needed = self.scanned = 0
        return buf

    def keep(self, buf: bytes, pos: int) -> None:
        """Keeps what a call did not give out: up to `pos` parsed, the rest not."""
        if pos > self.start:
            self.parts.append(buf[self.start : pos])
            self.size += pos - self.start
        if pos < len(buf):
            self.tail += buf[pos:] if pos else buf
            self.scanned = len(self.tail)
        self.start = 0

    def take(self, buf: bytes, end: int) -> bytes:
        """The bytes of the unit that ends at `end`."""
        raw = buf[self.start : end]
        self.start = end
        if self.parts:
            self.parts.append(raw)
            raw = b"".join(self.parts)
            self.parts.clear()
            self.size = 0
        return raw

    def flush(self, buf: bytes = b"") -> bytes:
        """Everything that is held, and what this call brought and no unit has."""
        raw = b"".join([*self.parts, bytes(self.tail), buf[self.start :]])
        self.parts.clear()
        self.tail.clear()
        self.size = self.skip = self.start = 0
        return raw


class StreamDecoder:
    """Base of the decoders: runs the steps, keeps the promises of `wire.unit`."""

    protocol = ""
    asks_for_tls = False
    tls_advice = ""
    """What a user does when this connection turns out to be TLS."""

    def __init__(self) -> None:
        self._from_client = Side()
        self._from_server = Side()
        self._units: list[Unit] = []
        self._opaque = False
        self._note = ""
        self._sniffing = True

    # What a decoder defines.

    def _client_step(self, buf: bytes, pos: int) -> int:
        raise NotImplementedError

    def _server_step(self, buf: bytes, pos: int) -> int:
        raise NotImplementedError

    def _client_head(self) -> Unit:
        """The labelled head of the client's unit that grew too big to be held; `raw` is filled in."""
        return Unit(b"", Kind.OPAQUE, OPAQUE_SHAPE, change=Change.MAYBE, last=False)

    def _server_head(self) -> Unit:
        """The same for the server's direction."""
        return Unit(b"", Kind.OPAQUE, OPAQUE_SHAPE, last=False)

    def _client_pause(self, buf: bytes, pos: int) -> None:
        """Called when a call's bytes are used up, before the rest is kept: to give out what must not be held."""

    def _server_pause(self, buf: bytes, pos: int) -> None:
        """The same for the server's direction."""

    # What the tap calls.

    def client(self, data: bytes) -> list[Unit]:
        """Units completed by these bytes from the client. Never raises."""
        self._units = []
        if not data:
            return []
        if self._opaque:
            return self._pass(self._from_client, data, Change.MAYBE)
        if self._sniffing:
            hello = client_hello(bytes(self._from_client.tail[:3]) + data[:3])
            if hello is TLS_UNDECIDED:
                self._from_client.tail += data
                self._from_client.needed = len(self._from_client.tail) + 1
                return []
            self._sniffing = False
            if hello:
                self.turn_opaque(tls_note(self.protocol, self.tls_advice))
                return self._pass(self._from_client, data, Change.MAYBE)
        self._feed(self._from_client, data, self._client_step, self._client_head, self._client_pause, Change.MAYBE)
        return self._units

    def server(self, data: bytes) -> list[Unit]:
        """Units completed by these bytes from the server. Never raises."""
        self._units = []
        if not data:
            return []
        if self._opaque:
            return self._pass(self._from_server, data, Change.NO)
        self._feed(self._from_server, data, self._server_step, self._server_head, self._server_pause, Change.NO)
        return self._units

    def client_end(self) -> list[Unit]:
        """What is still held of the client's direction, when it ends: an unfinished message changes nothing."""
        return self._rest(self._from_client, Change.MAYBE if self._opaque else Change.NO)

    def server_end(self) -> list[Unit]:
        """What is still held of the server's direction, when it ends."""
        return self._rest(self._from_server, Change.NO)

    def turn_opaque(self, note: str) -> None:
        """All that follows, in both directions, is given out as OPAQUE units; the first of them carries `note`."""
        self._opaque = True
        self._note = note

    # The machinery.

    def _finish(self, side: Side, buf: bytes, end: int, unit: Unit) -> None:
        """Gives out the unit that ends at `end`; when its head was given out before, as the last PART."""
        unit.raw = side.take(buf, end)
        if side.spilled:
            side.spilled = False
            unit.kind = Kind.PART
            unit.shape = ""
        self._units.append(unit)

    def _feed(
        self,
        side: Side,
        data: bytes,
        step: Step,
        head: Callable[[], Unit],
        pause: Callable[[bytes, int], None],
        change: Change,
    ) -> None:
        if side.skip and not (data := self._skip(side, data)):
            self._spill(side, head)
            return
        buf = side.offer(data)
        if buf is None:
            self._spill(side, head)
            return
        pos = side.start = 0
        end = len(buf)
        try:
            while pos < end:
                new = step(buf, pos)
                if new == pos or self._opaque:
                    pos = new
                    break
                pos = new
            pause(buf, pos)
        except WireError as error:
            self._give_open(side, buf, pos, pause)
            self.turn_opaque(f"not {self.protocol} as expected, from here on the bytes pass undecoded: {error}")
        except Exception as error:  # the promise never to raise outranks the wish to see the bug here
            self.turn_opaque(f"the {self.protocol} decoder failed, from here on the bytes pass undecoded: {error!r}")
        if self._opaque:
            self._give_rest(side, side.flush(buf), change)
            return
        side.keep(buf, pos)
        self._spill(side, head)

    def _give_open(self, side: Side, buf: bytes, pos: int, pause: Callable[[bytes, int], None]) -> None:
        """Before the error at `pos`: what would be given out by now, had the bytes up to there come alone."""
        pause(buf, pos)
        if side.spilled and (side.parts or pos > side.start):
            self._units.append(Unit(side.take(buf, pos), Kind.PART, last=False))

    def _skip(self, side: Side, data: bytes) -> bytes:
        """Passes bytes over; answers with those that are left for steps."""
        count = min(side.skip, len(data))
        chunk = data[:count]
        side.skip -= count
        side.parts.append(chunk)
        side.size += count
        if side.capture is not None and len(side.capture) < side.capture_max:
            side.capture += chunk[: side.capture_max - len(side.capture)]
        return data[count:]

    def _spill(self, side: Side, head: Callable[[], Unit]) -> None:
        """Gives out what is held when it is too much, or when its head is out already."""
        if side.spilled:
            if side.parts:
                self._units.append(Unit(side.take(b"", 0), Kind.PART, last=False))
        elif side.size > MAX_HELD:
            unit = head()
            unit.raw = side.take(b"", 0)
            unit.last = False
            side.spilled = True
            self._units.append(unit)

    def _pass(self, side: Side, data: bytes, change: Change) -> list[Unit]:
        self._give_rest(side, side.flush() + data, change)
        return self._units

    def _give_rest(self, side: Side, raw: bytes, change: Change) -> None:
        if not raw:
            return
        note, self._note = self._note, ""
        self._units.append(Unit(raw, Kind.OPAQUE, OPAQUE_SHAPE, change=change, note=note))

    def _rest(self, side: Side, change: Change) -> list[Unit]:
        self._units = []
        spilled, side.spilled = side.spilled, False
        if not spilled:
            self._give_rest(side, side.flush(), change)
        elif raw := side.flush():
            self._units.append(Unit(raw, Kind.PART))
        return self._units
