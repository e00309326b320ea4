"""A stand-in for an HTTP provider: a real HTTP/1.1 server that answers sensibly and writes down every call.

A call counts as applied at the moment its complete request was received, before the answer is written, even if the
client is gone by then: this is what makes "charged, but the worker never heard" visible.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import h11

from ..aio import Listener
from ..faults.outages import Reply
from ..services.spec import Provider
from .answers import Answer, Call, Programmed, Routes, Silence, resolve
from .backend import Backend, plain_conflict
from .bodies import read_body
from .capacity import Counter
from .idempotency import IdempotencyKeys, Stored
from .ledger import Ledger
from .outages import CaseOf, Outages, Spell, json_answer, nobody, outage_note, spoiled, told_pause, with_pause
from .paths import label
from .resources import Resources
from .webhooks import Courier

_READS = ("GET", "HEAD", "OPTIONS")
_READ = 64 * 1024


class HttpProvider(Listener):
    """One provider on a free loopback port. Keeps connections alive, takes chunked bodies, pipelined requests and
    `Expect: 100-continue`."""

    def __init__(
        self,
        name: str,
        spec: Provider,
        ledger: Ledger,
        backend: Backend | None = None,
        to: Callable[[str], str] = lambda text: text,
    ) -> None:
        """`to` fills the address of a callback."""
        super().__init__(name)
        self.courier = Courier(spec.webhooks, ledger.clock, to)
        self.backend = backend
        self.spec = spec
        self.ledger = ledger
        self.keys = IdempotencyKeys(ledger.clock, spec.keys_live)
        self._routes = Routes(spec.routes)
        self.outages = Outages(ledger.clock)
        self.counter = None if spec.limit is None else Counter(ledger.clock, spec.limit)
        """Of its own capacity."""
        self.waiting = 0
        """Calls that wait for their turn now."""
        self._resources = Resources(name)

    @property
    def counters(self) -> list[Counter]:
        """Where calls queued: by its own capacity, and in outages."""
        return [*([self.counter] if self.counter else []), *self.outages.counters]

    @property
    def url(self) -> str:
        """`http://127.0.0.1:port`, without a trailing slash."""
        return f"http://{self.host}:{self.port}"

    def program(self, route: str, *answers: Programmed) -> None:
        """Answers the next calls of `route` (`POST /charges`, `GET /charges/*`, `*`) with these, one each; then the
        route's own answer is given again. Raises UsageError when a route or an answer is wrong."""
        self._routes.program(route, answers)

    def set(self, route: str, answer: Programmed | None) -> None:
        """Answers `route` with this from now on; None: by default again."""
        self._routes.set(route, answer)

    def begin_outage(self, name: str, reply: Reply, case_of: CaseOf = nobody) -> None:
        """From now on the calls that `reply` is meant for are answered so, whatever was programmed; `name` ends it."""
        self.outages.begin(name, reply, case_of)

    def end_outage(self, name: str) -> None:
        """What was slow goes on at once, and what hung is cut. Nothing happens when there is none of that name."""
        self.outages.end(name)

    def clear(self) -> None:
        """Forgets programmed answers that were not used, and ends every outage."""
        self._routes.clear()
        self.outages.end_all()

    async def stop(self) -> None:
        await self.courier.close()
        await super().stop()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = h11.Connection(h11.SERVER)
        while await self._one(wire, reader, writer):
            wire.start_next_cycle()

    async def _one(self, wire: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; True when another one may follow on this connection."""
        try:
            call = await _receive(wire, reader, writer)
        except h11.RemoteProtocolError as error:
            if wire.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                stored = json_answer(error.error_status_hint, {"error": str(error)})
                await _send(wire, writer, replace(stored, headers={**stored.headers, "connection": "close"}))
            return False
        if call is None:
            return False
        answer, spell = await self._answer(call)
        if answer is Silence.HANG:
            if spell is not None:
                if spell.over.is_set():
                    return False
                spell.hung.add(writer.transport)
            while await reader.read(_READ):
                pass  # until the client gives up, or the outage is over
        if isinstance(answer, Silence):
            return False
        if call.whole:
            answer = replace(answer, headers={**answer.headers, "connection": "close"})
        await _send(wire, writer, answer, head_only=call.method == "HEAD")
        return wire.our_state is h11.DONE and wire.their_state is h11.DONE

    async def _answer(self, call: Call) -> tuple[Stored | Silence, Spell | None]:
        """What to say to a complete request, and the outage that it met."""
        header = self.spec.idempotency.lower()
        key = call.headers.get(header, "") if header else ""
        if (refused := await self._queue(call, key)) is not None:
            return refused, None
        spell = await self.outages.meets(call, key)
        if spell is None:
            return await self._in_order(call, key), None
        if spell.reply.happens:
            answer = await self._in_order(call, key)
        else:
            answer = json_answer(spell.reply.status or 200, {})
            if call.method not in _READS:
                pause = told_pause(spell.reply.retry_after)
                self._record(call, key, applied=False, note=outage_note(spell.reply), pause=pause)
        if spell.reply.slow:
            await spell.pause(spell.reply.slow)
        return spoiled(answer, spell.reply), spell

    async def _queue(self, call: Call, key: str) -> Stored | None:
        """Waits for the call's turn; what a call beyond the provider's capacity is told."""
        spell = self.outages.narrow
        counter = self.counter if spell is None else spell.counter
        if counter is None:
            return None
        wait = counter.arrive()
        if spell is not None and wait != 0:
            spell.hits += 1
        if wait is None:
            status, pause = counter.capacity.beyond, counter.capacity.retry_after
            assert status != "slow"
            if call.method not in _READS:
                self._record(call, key, applied=False, note=f"{status} beyond capacity", pause=told_pause(pause))
            return with_pause(json_answer(status, {"error": "over capacity"}), pause)
        self.waiting += 1
        try:
            await (asyncio.sleep(wait) if spell is None else spell.pause(wait))
        finally:
            self.waiting -= 1
        return None

    async def _in_order(self, call: Call, key: str) -> Stored | Silence:
        """What is said where there is no outage."""
        if not key or call.method in _READS:
            return (await self._carry_out(call, ""))[0]
        begun = self.keys.begin(key, f"{call.method} {call.path}\n{call.body}")
        if isinstance(begun, Stored):
            self._record(call, key, applied=False, note="replayed")
            return replace(begun, headers={**begun.headers, "idempotent-replayed": "true"})
        if begun:
            self._record(call, key, applied=False, note=begun)
            refused = (self.backend.conflict if self.backend else plain_conflict)(int(begun[:3]), begun[4:])
            return _stored(refused, refused.status or 409, refused.json)
        try:
            answer, remembered = await self._carry_out(call, key)
        except BaseException:
            self.keys.forget(key)
            raise
        if remembered is None:
            self.keys.forget(key)
        else:
            self.keys.finish(key, remembered)
        return answer

    async def _carry_out(self, call: Call, key: str) -> tuple[Stored | Silence, Stored | None]:
        """What to say, and what an idempotency key remembers: only calls that were accepted."""
        programmed, where = self._routes.take(call.method, call.path)
        answer = await resolve(programmed, call, where)
        if self.backend is not None and answer.status is None and answer.empty:
            answer = await self._by_backend(self.backend, call, answer)
        status = answer.status or (201 if call.method == "POST" else 200)
        reads = call.method in _READS or answer.silent
        applied = answer.applied
        if applied is None:
            applied = 200 <= status < 300 and not reads and not answer.hang and not answer.drop
        content = answer.json
        if answer.empty:
            content = self._default_content(call, applied) if status < 400 else {"error": f"status {status}"}
        if applied:
            made = str(content.get("id", "")) if isinstance(content, dict) else ""
            self._record(call, key, made=made, says=answer.says)
            await self.courier.tell(call, content)
        elif not reads:
            note = answer.note or _why(answer, status)
            self._record(call, key, applied=False, note=note, says=answer.says, pause=_asked(answer))
        stored = _stored(answer, status, content)
        if answer.delay:
            await asyncio.sleep(answer.delay)
        remembered = stored if applied and status < 300 else None
        if answer.hang:
            return Silence.HANG, remembered
        return (Silence.DROP if answer.drop else stored), remembered

    async def _by_backend(self, backend: Backend, call: Call, programmed: Answer) -> Answer:
        """What the backend says; what was programmed beside content (a delay, a closed connection) stays. A call that
        was programmed to be lost without an effect never reaches it."""
        lost = programmed.hang or programmed.drop
        if programmed.applied is False or (lost and programmed.applied is None):
            return programmed
        said = await backend.answer(call)
        return replace(
            said,
            delay=programmed.delay,
            hang=programmed.hang,
            drop=programmed.drop,
            applied=programmed.applied if programmed.applied is not None else said.applied,
        )

    def _default_content(self, call: Call, applied: bool) -> Any:
        if call.method in ("GET", "HEAD"):
            return self._resources.get(call.path)
        if not applied:
            return {}
        if call.method == "POST":
            return self._resources.create(call.path, call.json)
        if call.method == "DELETE":
            return self._resources.remove(call.path)
        return self._resources.change(call.path, call.json)

    def _record(
        self,
        call: Call,
        key: str,
        *,
        applied: bool = True,
        note: str = "",
        made: str = "",
        says: str = "",
        pause: int = 0,
    ) -> None:
        """`pause`: the seconds that a refused one is told to wait."""
        fields: dict[str, Any] = {
            "method": call.method,
            "path": call.path,
            "headers": dict(call.headers),
            "json": call.json,
        }
        if made:
            fields["id"] = made
        if pause:
            fields["retry_after"] = pause
        name = f"{self.name} {label(call.method, call.path, call.headers, call.json)}"
        self.ledger.record(name, says or call.body, fields=fields, key=key, applied=applied, note=note)


def _asked(answer: Answer) -> int:
    """The seconds of a programmed answer's `Retry-After`; 0 where there are none, or a date."""
    headers = {name.lower(): str(value) for name, value in answer.headers.items()}
    said = headers.get("retry-after", "")
    return int(said) if said.isascii() and said.isdigit() else 0


def _stored(answer: Answer, status: int, content: Any) -> Stored:
    kind = "application/json" if answer.body is None else "text/plain; charset=utf-8"
    headers = {
        **({} if answer.raw is not None else {"content-type": kind}),
        **{name.lower(): value for name, value in answer.headers.items()},
    }
    if status in (204, 304):
        return Stored(status, headers, b"")
    return Stored(status, headers, replace(answer, json=content).content())


def _why(answer: Answer, status: int) -> str:
    if answer.hang:
        return "no answer"
    return "connection closed" if answer.drop else str(status)


async def _receive(wire: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Call | None:
    """The next complete request; None when the client is gone."""
    request: h11.Request | None = None
    body = bytearray()
    while True:
        event = wire.next_event()
        if event is h11.NEED_DATA:
            if wire.they_are_waiting_for_100_continue:
                writer.write(wire.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
                await writer.drain()
            wire.receive_data(await reader.read(_READ))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            return _call(request, bytes(body))
        else:
            return None


def _call(request: h11.Request, raw: bytes) -> Call:
    headers: dict[str, str] = {}
    for name, value in request.headers:
        lower, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[lower] = f"{headers[lower]}, {text}" if lower in headers else text
    body, value = read_body(raw, headers.get("content-type", "").lower())
    target = request.target.decode("latin-1")
    whole = "://" in target.partition("?")[0]
    if whole:
        target = "/" + target.partition("://")[2].partition("/")[2]
    return Call(request.method.decode("latin-1").upper(), target, headers, body, value, raw, whole)


async def _send(wire: h11.Connection, writer: asyncio.StreamWriter, answer: Stored, *, head_only: bool = False) -> None:
    headers = list(answer.headers.items())
    if answer.status not in (204, 304) and "content-length" not in answer.headers:
        headers.append(("content-length", str(len(answer.content))))
    out = wire.send(h11.Response(status_code=answer.status, headers=headers)) or b""
    if answer.content and not head_only and answer.status not in (204, 304):
        out += wire.send(h11.Data(data=answer.content)) or b""
    writer.write(out + (wire.send(h11.EndOfMessage()) or b""))
    await writer.drain()
