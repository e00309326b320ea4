"""Real mail clients and marks against the stand-in servers: what they are told, and what the ledger says of it."""

from __future__ import annotations

import asyncio
import json
import smtplib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from typing import Any

import pytest
import requests

from jobcheck.aio import within
from jobcheck.clock import REAL
from jobcheck.effects.ledger import Ledger
from jobcheck.effects.mail import SmtpSink
from jobcheck.effects.marks import MarkServer
from jobcheck.effects.provider import HttpProvider
from jobcheck.errors import UsageError
from jobcheck.marks import mark
from jobcheck.services.spec import Provider

KEYED = Provider(idempotency="Idempotency-Key")


@asynccontextmanager
async def provider(spec: Provider = KEYED) -> AsyncIterator[HttpProvider]:
    server = HttpProvider("payments", spec, Ledger(REAL))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
    assert server.failures == []


def seen(server: HttpProvider | SmtpSink | MarkServer) -> list[tuple[str, str, bool, str]]:
    return [(item.name, item.body, item.applied, item.note) for item in server.ledger.since(0)]


def post(server: HttpProvider, body: Any = None, key: str = "", path: str = "/charges") -> requests.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return requests.post(server.url + path, json=body, headers=headers, timeout=10)


# Mail


@asynccontextmanager
async def sink() -> AsyncIterator[SmtpSink]:
    server = SmtpSink("mail", Ledger(REAL))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def message(to: str = "ann@example.org", subject: str = "Invoice 1000017", text: str = "Grüße, Zoë\n") -> EmailMessage:
    mail = EmailMessage()
    mail["To"], mail["From"], mail["Subject"], mail["Message-ID"] = to, "shop@example.org", subject, "<1@shop>"
    mail.set_content(text)
    return mail


def send(server: SmtpSink, mail: EmailMessage, *, login: bool = False) -> None:
    with smtplib.SMTP(server.host, server.port, timeout=10) as client:
        if login:
            client.login("user", "pass")
        client.send_message(mail)


def test_a_mail_is_an_effect_with_its_decoded_parts() -> None:
    async def main() -> None:
        async with sink() as server:
            mail = message()
            mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="invoice-1000017.pdf")
            await asyncio.to_thread(send, server, mail, login=True)
            (effect,) = server.ledger.since(0)
            assert effect.name == "mail"
            assert effect.body == "to=ann@example.org subject=Invoice 1000017 text=Grüße, Zoë"
            assert effect.fields["from"] == "shop@example.org"
            assert effect.fields["message_id"] == "<1@shop>"
            assert effect.fields["attachments"][0]["name"] == "invoice-1000017.pdf"

    asyncio.run(main())


def test_html_and_international_addresses_are_taken() -> None:
    async def main() -> None:
        async with sink() as server:
            mail = message(to="zoë@example.org")
            mail.set_content("<b>17</b>", subtype="html")
            await asyncio.to_thread(send, server, mail)
            assert seen(server)[0][1] == "to=zoë@example.org subject=Invoice 1000017 text=<b>17</b>"

    asyncio.run(main())


def test_a_refused_mail_is_no_effect_and_the_next_one_is() -> None:
    async def main() -> None:
        async with sink() as server:
            server.refuse(times=1)
            with pytest.raises(smtplib.SMTPDataError, match="451"):
                await asyncio.to_thread(send, server, message())
            await asyncio.to_thread(send, server, message())
            server.outage("554 5.7.1 No")
            with pytest.raises(smtplib.SMTPDataError, match="554"):
                await asyncio.to_thread(send, server, message())
            server.clear()
            await asyncio.to_thread(send, server, message())
            assert [item[2:] for item in seen(server)] == [(False, "451"), (True, ""), (False, "554"), (True, "")]
            with pytest.raises(UsageError, match="expected an SMTP refusal"):
                server.refuse("250 fine")

    asyncio.run(main())


def test_a_mail_whose_data_is_not_complete_is_no_effect() -> None:
    def half(server: SmtpSink) -> None:
        with socket.create_connection((server.host, server.port), 10) as link, link.makefile("rwb") as file:
            for line in (b"", b"EHLO x", b"MAIL FROM:<a@x>", b"RCPT TO:<b@x>", b"DATA"):
                if line:
                    file.write(line + b"\r\n")
                    file.flush()
                while file.readline()[3:4] == b"-":
                    pass
            file.write(b"Subject: half\r\n\r\nno end\r\n")
            file.flush()

    async def main() -> None:
        async with sink() as server:
            await asyncio.to_thread(half, server)
            await asyncio.to_thread(send, server, message())
            assert [item.fields["subject"] for item in server.ledger.since(0)] == ["Invoice 1000017"]

    asyncio.run(main())


def test_the_sink_ends_while_a_client_is_connected() -> None:
    async def main() -> None:
        async with sink() as server:
            with socket.create_connection((server.host, server.port), 10) as link:
                link.setblocking(False)
                greeting = await within(asyncio.get_running_loop().sock_recv(link, 100), 10, "the greeting")
                assert greeting.startswith(b"220 localhost")
                await within(server.stop(), 10, "the end")

    asyncio.run(main())


# Marks


@asynccontextmanager
async def marks(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MarkServer]:
    server = MarkServer("mark", Ledger(REAL))
    await server.start()
    monkeypatch.setenv("JOBCHECK_MARKS", server.address)
    try:
        yield server
    finally:
        await server.stop()
    assert server.failures == []


def test_a_mark_is_answered_and_is_an_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with marks(monkeypatch) as server:
            await asyncio.to_thread(mark, "sent", "invoice 1000017")
            await asyncio.to_thread(mark, "done")
            assert [item[:2] for item in seen(server)] == [("mark sent", "invoice 1000017"), ("mark done", "")]

    asyncio.run(main())


def test_any_language_can_mark_with_one_line_of_text(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with marks(monkeypatch) as server:
            reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(b"mark a 1\nmark b 2\r\nhello\nmark \nmark \xff x\n")
            lines = [(await within(reader.readline(), 10, "an answer")).decode() for _ in range(5)]
            assert lines[:2] == ["ok\n", "ok\n"]
            assert all(line.startswith("error: ") for line in lines[2:])
            writer.write(b"x" * 200_000)
            assert await within(reader.readline(), 10, "the refusal") == b"error: the line is too long\n"
            writer.close()
            assert [item[:2] for item in seen(server)] == [("mark a", "1"), ("mark b", "2")]

    asyncio.run(main())


def test_a_refused_mark_is_an_error_in_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"error: not now\n")
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        monkeypatch.setenv("JOBCHECK_MARKS", f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(RuntimeError, match="refused the mark: error: not now"):
            await asyncio.to_thread(mark, "sent", "17")
        server.close()
        await server.wait_closed()

    asyncio.run(main())


def test_everything_that_is_recorded_is_plain_json() -> None:
    async def main() -> None:
        async with provider() as server, sink() as mails:
            await asyncio.to_thread(post, server, {"a": [1, None]}, "k")
            await asyncio.to_thread(send, mails, message())
            for effect in (*server.ledger.since(0), *mails.ledger.since(0)):
                assert json.loads(json.dumps(effect.fields)) == effect.fields

    asyncio.run(main())
