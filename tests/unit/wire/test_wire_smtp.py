"""The SMTP decoder: the dot is the change, everything else is control."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_feeding import FUZZ, cut_at, feed, replies, requests, same_however_cut

from jobcheck.wire.smtp import SmtpDecoder
from jobcheck.wire.unit import MAX_HELD, Change, Kind

GREETING = b"220 hi\r\n"
MAIL = b"Subject: Your invoice\r\nTo: a@b\r\n\r\n.. dot\r\nbye\r\n"


def talk(*turns: bytes, sizes: tuple[int, ...] = (3, 1, 9)):
    """Server and client in turn."""
    sides = ("server", "client")
    return same_however_cut(SmtpDecoder, [(sides[n % 2], data) for n, data in enumerate(turns)], list(sizes))


def envelope(rcpt: tuple[str, ...] = ("a@b.test",)) -> list[bytes]:
    turns = [GREETING, b"EHLO me\r\n", b"250-hi\r\n250 SIZE\r\n", b"MAIL FROM:<shop@b.test> SIZE=10\r\n", b"250 ok\r\n"]
    for address in rcpt:
        turns += [f"RCPT TO:<{address}>\r\n".encode(), b"250 ok\r\n"]
    return turns


def test_the_content_is_one_unit_and_the_only_change():
    units = talk(
        *envelope(), b"DATA\r\n", b"354 go\r\n", MAIL + b".\r\n", b"250 queued\r\n", b"QUIT\r\n", b"221 bye\r\n"
    )
    (request,) = requests(units)
    assert (request.shape, request.change, request.number) == ("smtp DATA", Change.YES, 1)
    assert request.raw == MAIL + b".\r\n"
    assert request.summary == "mail to a@b.test: Your invoice"
    assert request.info == {"mail_from": "shop@b.test", "rcpt": ("a@b.test",), "subject": "Your invoice"}
    (reply,) = replies(units)
    assert (reply.number, reply.change, reply.failed) == (1, Change.YES, False)
    others = [unit for side in units.values() for unit in side if unit not in (request, reply)]
    assert {unit.kind for unit in others} == {Kind.CONTROL}


@pytest.mark.parametrize("code", [b"451", b"554"])
def test_a_refused_mail_is_no_change(code):
    units = talk(*envelope(), b"DATA\r\n", b"354 go\r\n", MAIL + b".\r\n", code + b" no\r\n")
    assert (replies(units)[0].change, replies(units)[0].failed) == (Change.NO, True)


def test_a_refused_data_leads_back_to_commands():
    units = talk(*envelope(), b"DATA\r\n", b"451 later\r\n", b"RSET\r\n", b"250 ok\r\n")
    assert units["client"][-1].shape == "smtp RSET"
    assert not requests(units)


def test_pipelined_commands_and_refused_recipients_are_matched():
    sent = b"MAIL FROM:<s@b>\r\nRCPT TO:<one@b>\r\nRCPT TO:<two@b>\r\nDATA\r\n"
    units = talk(GREETING, sent, b"250 ok\r\n550 no\r\n250 ok\r\n354 go\r\n", b"Subject: x\r\n\r\n.\r\n", b"250 ok\r\n")
    assert requests(units)[0].info["rcpt"] == ("two@b",)
    assert [unit.shape for unit in units["server"]][1:] == [
        "smtp MAIL",
        "smtp RCPT",
        "smtp RCPT",
        "smtp DATA",
        "smtp DATA",
    ]


def test_two_mails_on_one_connection_do_not_mix():
    once = [b"DATA\r\n", b"354 go\r\n", MAIL + b".\r\n", b"250 ok\r\n"]
    units = talk(
        *envelope(("a@b",)), *once, b"MAIL FROM:<t@b>\r\n", b"250 ok\r\n", b"RCPT TO:<c@d>\r\n", b"250 ok\r\n", *once
    )
    assert [unit.info["rcpt"] for unit in requests(units)] == [("a@b",), ("c@d",)]
    assert [unit.number for unit in replies(units)] == [1, 2]


def test_auth_steps_are_control_and_not_shown():
    login = [b"AUTH LOGIN\r\n", b"334 VXNlcg==\r\n", b"bWU=\r\n", b"334 UGFzcw==\r\n", b"c2VjcmV0\r\n", b"235 ok\r\n"]
    units = talk(GREETING, *login, b"AUTH PLAIN AG1lAHNlY3JldA==\r\n", b"235 ok\r\n", b"NOOP\r\n")
    assert [unit.summary for unit in units["client"]] == ["AUTH ***"] * 4 + ["NOOP"]


def test_starttls_turns_opaque_only_when_it_is_accepted():
    units = talk(
        GREETING,
        b"STARTTLS\r\n",
        b"454 no\r\n",
        b"NOOP\r\n",
        b"250 ok\r\n",
        b"STARTTLS\r\n",
        b"220 go\r\n",
        b"\x16\x03\x01",
    )
    assert units["client"][1].shape == "smtp NOOP"
    assert units["client"][-1].kind is Kind.OPAQUE
    assert "STARTTLS" in units["client"][-1].note


def test_bdat_is_a_change_at_its_last_chunk():
    sent = b"MAIL FROM:<s@b>\r\nRCPT TO:<a@b>\r\nBDAT 14\r\nSubject: hi\r\n\r" + b"BDAT 5 LAST\r\n\n.\r\nx"
    units = talk(GREETING, sent, b"250 ok\r\n250 ok\r\n250 ok\r\n250 done\r\n", b"BDAT 0 LAST\r\n", b"503 no\r\n")
    assert [unit.summary for unit in requests(units)] == ["mail to a@b: hi", "mail to :"]
    assert [(unit.number, unit.change) for unit in replies(units)] == [(1, Change.YES), (2, Change.NO)]


def test_encoded_and_folded_subjects_are_readable():
    mail = b"From: x\r\nsubject: =?utf-8?q?Caf=C3=A9?=\r\n  two\r\nX: y\r\n\r\nSubject: no\r\n.\r\n"
    units = talk(*envelope(), b"DATA\r\n", b"354 go\r\n", mail)
    assert requests(units)[0].info["subject"] == "Café two"


def test_an_empty_mail_is_a_mail():
    units = talk(*envelope(), b"DATA\r\n", b"354 go\r\n", b".\r\nQUIT\r\n")
    assert requests(units)[0].raw == b".\r\n"
    assert units["client"][-1].shape == "smtp QUIT"


def test_a_server_that_hangs_up_is_control():
    units = talk(GREETING, b"", b"421 timeout\r\n")
    assert units["server"][-1].failed


def test_a_long_mail_is_given_out_as_head_and_parts():
    line = b"x" * 70 + b"\r\n"
    turns = [("server", GREETING), ("client", b"DATA\r\n"), ("server", b"354 go\r\n")]
    turns += [("client", b"Subject: big\r\n\r\n" + line * (MAX_HELD // 60) + b".\r\n"), ("server", b"250 ok\r\n")]
    got = feed(SmtpDecoder(), turns, cut_at([65536]))
    (head,) = requests(got)
    assert (head.change, head.last, head.info["subject"]) == (Change.YES, False, "big")
    assert got["client"][-1].last
    assert replies(got)[0].change is Change.YES


def test_another_protocol_turns_opaque_at_once():
    for data in (b"\x00\x00", b"*1\r\n", b"HELO\x01"):
        (unit,) = SmtpDecoder().client(data)
        assert unit.kind is Kind.OPAQUE
    (unit,) = SmtpDecoder().server(b"SSH-2.0")
    assert unit.kind is Kind.OPAQUE


SAID = st.sampled_from(
    [b"EHLO x\r\n", b"MAIL FROM:<a@b>\r\n", b"RCPT TO:<c@d>\r\n", b"DATA\r\n", MAIL, b".\r\n", b"..\r\n", b"\r\n.",
     b"\r\n", b".\n", b"AUTH LOGIN\r\n", b"STARTTLS\r\n", b"BDAT 3\r\nabc", b"BDAT 2 LAST\r\nab", b"BDAT x\r\n",
     b"QUIT\r\n", b"Subject: =?x?q?=\r\n"]
)  # fmt: skip
HEARD = st.sampled_from(
    [GREETING, b"250-a\r\n", b"250 b\r\n", b"354 go\r\n", b"334 x\r\n", b"421 x\r\n", b"550 no\r\n", b"250\r\n"]
)  # fmt: skip
TURNS = st.lists(
    st.one_of(
        st.tuples(st.just("client"), st.one_of(SAID, SAID, st.binary(max_size=8))),
        st.tuples(st.just("server"), st.one_of(HEARD, HEARD, st.binary(max_size=8))),
    ),
    max_size=25,
)


@FUZZ
@given(TURNS, st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_any_bytes_give_the_same_units_however_they_are_cut(turns, sizes):
    got = same_however_cut(SmtpDecoder, turns, sizes)
    assert not any("decoder failed" in unit.note for units in got.values() for unit in units)


def test_starttls_goes_on_where_the_tap_ends_the_tls() -> None:
    decoder = SmtpDecoder(tls=True)
    decoder.server(b"220 here\r\n")
    decoder.client(b"EHLO me\r\n")
    decoder.server(b"250-here\r\n250 STARTTLS\r\n")
    decoder.client(b"STARTTLS\r\n")
    (agreed,) = decoder.server(b"220 go ahead\r\n")
    assert agreed.info["starts_tls"]
    assert not agreed.note
    assert decoder.client(b"EHLO me\r\n")[0].shape == "smtp EHLO"
