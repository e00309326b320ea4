"""A mail server that accepts everything and delivers nothing: every message is an effect.

A message counts as applied when its DATA was complete, before the `250` is written. It talks plain SMTP with SMTPUTF8
and 8BITMIME, and takes any login. It offers STARTTLS only where a tap in front of it speaks the TLS.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import lru_cache
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from ..errors import UsageError
from .ledger import Ledger


class SmtpSink:
    """One mail server on a free loopback port; effects are named like the upstream, `mail`."""

    def __init__(self, name: str, ledger: Ledger, *, tls: bool = False) -> None:
        self.tls = tls
        self.name = name
        self.ledger = ledger
        self.host = ""
        self.port = 0
        self._server: asyncio.Server | None = None
        self._sessions: set[_Protocol] = set()
        self._refusals: deque[str] = deque()
        self._outage = ""

    async def start(self) -> None:
        """Listens on a free loopback port. Raises OSError when that fails."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Protocol(self, loop), "127.0.0.1", 0)
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    async def stop(self) -> None:
        """Closes the listener and every session. May be called twice."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        for session in list(self._sessions):
            await session.end()
        await server.wait_closed()

    def refuse(self, reply: str = "451 4.3.0 Try again later", times: int = 1) -> None:
        """Answers the next `times` messages with this reply (4xx or 5xx) and does not take them."""
        self._refusals.extend([_refusal(reply)] * times)

    def outage(self, reply: str | None) -> None:
        """Refuses every message with this reply from now on; None ends it."""
        self._outage = _refusal(reply) if reply else ""

    def clear(self) -> None:
        """Forgets refusals that were not used, and an outage."""
        self._refusals.clear()
        self._outage = ""

    async def handle_EHLO(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        """Called by aiosmtpd; what the server can do."""
        session.host_name = hostname
        return [*responses[:-1], "250-STARTTLS", responses[-1]] if self.tls else responses

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Called by aiosmtpd with a complete message; returns the reply."""
        raw = envelope.content if isinstance(envelope.content, bytes) else str(envelope.content or "").encode()
        fields = message_fields(raw)
        fields["to"] = ", ".join(str(address) for address in envelope.rcpt_tos)
        fields["from"] = str(envelope.mail_from or "")
        body = f"to={fields['to']} subject={fields['subject']} text={fields['text']}"
        reply = self._outage or (self._refusals.popleft() if self._refusals else "")
        if reply:
            self.ledger.record(self.name, body, fields=fields, applied=False, note=reply[:3])
            return reply
        self.ledger.record(self.name, body, fields=fields)
        return "250 2.0.0 Message accepted"


class _Session(Session):
    """A session whose old-style login name is a plain attribute: aiosmtpd's own writes a warning at every login."""

    login_data: Any = None


class _Protocol(SMTP):
    """aiosmtpd's protocol, which can be ended together with its own task."""

    def __init__(self, sink: SmtpSink, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            sink,
            loop=loop,
            hostname="localhost",  # given, so that no name is looked up
            ident="jobcheck",
            enable_SMTPUTF8=True,
            auth_require_tls=False,
            authenticator=lambda *_: AuthResult(success=True),
        )
        self._sink = sink

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._sink._sessions.add(self)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._sink._sessions.discard(self)
        super().connection_lost(error)

    def _create_session(self) -> Session:
        return _Session(self.loop)

    async def smtp_STARTTLS(self, arg: str) -> None:  # noqa: N802
        """The tap begins TLS when it sees the answer."""
        if not self._sink.tls:
            await self.push("454 TLS not available")
            return
        await self.push("220 Ready to start TLS")
        self._set_rset_state()  # type: ignore[no-untyped-call]
        self.session = self._create_session()
        self.session.peer = self.transport.get_extra_info("peername") if self.transport else None

    async def end(self) -> None:
        """Closes the connection and waits for the session's task."""
        task = self._handler_coroutine
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._sink._sessions.discard(self)


def _refusal(reply: str) -> str:
    if not (reply[:3].isdigit() and reply[0] in "45" and (len(reply) == 3 or reply[3] == " ")):
        raise UsageError(f"expected an SMTP refusal such as '451 4.3.0 Try again later', got {reply!r}")
    return reply if len(reply) > 3 else f"{reply} Refused"


@lru_cache(maxsize=256)
def _parsed(name: str, value: str) -> Any:
    return policy.default.header_fetch_parse(name, value)


class _Once(policy.EmailPolicy):
    """The default policy parses a header each time it is looked at, some ten times for one mail, at 0.2 ms each."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        return _parsed(name, value) if type(value) is str else super().header_fetch_parse(name, value)


_POLICY = _Once()


def message_fields(raw: bytes) -> dict[str, Any]:
    """What a message says; `to` and `from` are those of its headers."""
    message = cast(EmailMessage, message_from_bytes(raw, policy=_POLICY))
    headers: dict[str, str] = {}
    for name, value in message.items():
        lower = name.lower()
        headers[lower] = f"{headers[lower]}, {value}" if lower in headers else str(value)
    fields: dict[str, Any] = {
        "to": headers.get("to", ""),
        "from": headers.get("from", ""),
        "subject": headers.get("subject", ""),
        "text": _text(message),
        "message_id": headers.get("message-id", ""),
        "headers": headers,
    }
    if attachments := _attachments(message):
        fields["attachments"] = attachments
    return fields


def _text(message: EmailMessage) -> str:
    """The plain text, else the HTML, decoded; a message that cannot be decoded gives what can be read of it."""
    part = message.get_body(preferencelist=("plain", "html"))
    if part is None:
        return ""
    try:
        text = part.get_content()
    except (LookupError, ValueError, KeyError):
        payload = part.get_payload(decode=True)
        text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else str(part.get_payload())
    return str(text).replace("\r\n", "\n").strip()


def _attachments(message: EmailMessage) -> list[dict[str, Any]]:
    found = []
    for part in message.iter_attachments():
        payload = part.get_payload(decode=True)
        content = payload if isinstance(payload, bytes) else b""
        digest = hashlib.sha256(content).hexdigest()
        found.append({"name": part.get_filename() or "", "size": len(content), "sha256": digest})
    return found
