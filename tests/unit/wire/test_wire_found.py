"""What the coverage-guided fuzzing (`make fuzz`) found, and what holds since; and all inputs that it learnt from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import test_wire_postgres as pg
from wire_feeding import same_however_cut, single, tiny

from jobcheck.wire.http import HttpDecoder
from jobcheck.wire.registry import decoder_for
from jobcheck.wire.resp import RespDecoder
from jobcheck.wire.smtp import SmtpDecoder
from jobcheck.wire.unit import Change, Kind

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fuzz"))

import talk

TARGETS = sorted(path.name for path in talk.CORPUS.iterdir())
GET = ("client", b"GET / HTTP/1.1\r\nhost: pay\r\n\r\n")


def kinds(units):
    return [unit.kind for unit in units]


def test_a_reply_whose_body_is_wrong_was_still_a_reply():
    body = b"3\r\nabcX\r\n0\r\n\r\n"
    reply = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + body
    units = same_however_cut(HttpDecoder, [GET, ("server", reply)], [7], ("body", "summary"))["server"]
    assert kinds(units) == [Kind.REPLY, Kind.OPAQUE]
    assert (units[0].number, units[0].last, units[1].raw) == (1, False, b"X\r\n0\r\n\r\n")


def test_a_reply_whose_head_is_wrong_is_none():
    reply = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"
    units = same_however_cut(HttpDecoder, [GET, ("server", reply)], [7])["server"]
    assert kinds(units) == [Kind.OPAQUE]


def test_the_rows_of_a_copy_before_what_is_wrong_were_rows():
    wrong = b"c\x00\x00\x00'\x04"
    turns = [("client", pg.query("copy a from stdin") + pg.msg("d", b"5\n") + wrong)]
    units = same_however_cut(pg.connected, turns, [3])["client"]
    assert kinds(units) == [Kind.REQUEST, Kind.PART, Kind.OPAQUE]
    assert units[-1].raw == wrong


@pytest.mark.parametrize("length", [3, 0x7FFFFFFF])
@pytest.mark.parametrize("side", ["client", "server"])
def test_a_row_with_a_wrong_length_is_no_message(side, length):
    start = [("client", pg.query("copy a from stdin"))] if side == "client" else []
    row = pg.msg("d", b"5\n") if side == "client" else pg.row(b"x")
    wrong = row[:1] + length.to_bytes(4, "big")
    units = same_however_cut(pg.connected, [*start, (side, row + wrong)], [3])[side]
    assert units[-1].raw.endswith(wrong)
    assert "expected a message" in units[-1].note


def test_a_line_of_mail_may_end_with_two_carriage_returns():
    turns = [("server", b"220 hi\r\r\n"), ("client", b"EHLO\r\r\n"), ("server", b"250 hi\r\r\n")]
    units = same_however_cut(SmtpDecoder, turns, [2])
    assert [unit.shape for unit in units["client"]] == ["smtp EHLO"]
    assert [unit.info["code"] for unit in units["server"]] == [220, 250]


def test_a_path_has_no_control_characters():
    units = same_however_cut(HttpDecoder, [("client", b"GET /\x7f HTTP/1.1\r\n\r\n")], [3])["client"]
    assert kinds(units) == [Kind.OPAQUE]


def test_a_blank_line_before_a_reply_may_come_in_pieces():
    turns = [GET, ("server", b"\r"), ("server", b"\r\n"), ("server", b"HTTP/1.1 204 None\r\n\r\n")]
    units = same_however_cut(HttpDecoder, turns, [1])["server"]
    assert kinds(units) == [Kind.REPLY]


def test_what_looks_like_a_length_and_never_ends_is_not_held():
    decoder = RespDecoder()
    given = [unit for data in single(b"*2\r" + bytes(100)) for unit in decoder.client(data)]
    assert "longer than 64 bytes" in given[0].note
    assert {unit.change for unit in given} == {Change.MAYBE}
    assert b"".join(unit.raw for unit in given) == b"*2\r" + bytes(100)


@pytest.mark.parametrize("target", TARGETS)
def test_all_that_the_fuzzing_learnt_from_holds(target):
    for path in sorted((talk.CORPUS / target).iterdir()):
        try:
            talk.check(target, path.read_bytes())
        except AssertionError as error:
            raise AssertionError(f"{path.name}: {error}") from error


@pytest.mark.parametrize("target", sorted(set(TARGETS) - {talk.SQL}))
def test_it_holds_with_tiny_limits(target):
    with tiny():
        for path in sorted((talk.CORPUS / target).iterdir()):
            talk.check(target, path.read_bytes(), tiny=True)


def test_a_conversation_can_be_written_down_and_read_again():
    turns = [("client", b"ab"), ("server", b"c"), ("client", b"\xfe")]
    assert talk.as_turns(talk.as_bytes(turns, piece=4)) == (5, turns)
    assert talk.as_turns(b"") == (1, [])


def test_what_does_not_hold_is_told(monkeypatch):
    class Lossy:
        def __init__(self):
            self.real = decoder_for("opaque")

        def __getattr__(self, name):
            return getattr(self.real, name)

        def client(self, data):
            return self.real.client(data[:-1])

    monkeypatch.setattr(talk, "decoder_for", lambda target: Lossy())
    with pytest.raises(AssertionError):
        talk.check("opaque", talk.as_bytes([("client", b"abc")]))
