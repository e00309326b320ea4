"""Mail as smtplib sends it to a real server."""

from __future__ import annotations

import smtplib
from collections.abc import Iterator
from email.message import EmailMessage

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from wire_proxy import Proxy, World

from jobcheck.wire.unit import Change, Kind


class Sink:
    """Takes every mail but those to nobody and those about nothing."""

    def __init__(self) -> None:
        self.mails: list[Envelope] = []

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address.startswith("nobody"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if b"refuse me" in (envelope.content or b""):
            return "451 later"
        self.mails.append(envelope)
        return "250 OK"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("smtp"))
    yield world
    world.close()


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def proxy(world: World, sink: Sink) -> Iterator[Proxy]:
    def server() -> SMTP:
        return SMTP(sink, authenticator=lambda *_: AuthResult(success=True), auth_require_tls=False, loop=world.loop)

    async def listen() -> tuple[object, int]:
        listener = await world.loop.create_server(server, "127.0.0.1", 0)
        return listener, listener.sockets[0].getsockname()[1]

    listener, port = world.run(listen())
    with world.proxy("smtp", port) as proxy:
        yield proxy
    world.loop.call_soon_threadsafe(listener.close)
    world.settle(lambda: not listener.is_serving(), "the mail server to close")


def mail(to: str, subject: str, text: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "shop@b.test", to, subject
    message.set_content(text)
    return message


def test_smtplib_mails_are_one_change_each(proxy, sink):
    with smtplib.SMTP("127.0.0.1", proxy.port) as client:
        client.login("me", "secret")
        client.send_message(mail("a@b.test", "Your invoice 1000017", "line\n.\n..two dots\n"))
        client.send_message(mail("c@d.test, e@f.test", "Rechnung für Käse", "x" * 5000))
        with pytest.raises(smtplib.SMTPDataError):
            client.send_message(mail("a@b.test", "no", "refuse me"))
        client.sendmail("shop@b.test", ["nobody@b.test", "g@h.test"], "Subject: partly\r\n\r\nhi")
        with pytest.raises(smtplib.SMTPRecipientsRefused):
            client.sendmail("shop@b.test", ["nobody@b.test"], "Subject: never\r\n\r\nhi")
        client.noop()
    assert len(sink.mails) == 3
    assert proxy.said() == [
        ("smtp DATA", Change.YES, Change.YES), ("smtp DATA", Change.YES, Change.YES),
        ("smtp DATA", Change.YES, Change.NO), ("smtp DATA", Change.YES, Change.YES),
    ]  # fmt: skip
    assert [unit.summary for unit in proxy.units() if unit.kind is Kind.REQUEST] == [
        "mail to a@b.test: Your invoice 1000017",
        "mail to c@d.test, e@f.test: Rechnung für Käse",
        "mail to a@b.test: no",
        "mail to g@h.test: partly",
    ]
    assert not any("secret" in unit.summary for unit in proxy.units())
