"""Marks, opaque bytes, TLS detection and the registry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_feeding import FUZZ, feed, same_however_cut

from jobcheck.errors import UsageError
from jobcheck.wire.marks import MarkDecoder
from jobcheck.wire.opaque import OpaqueDecoder
from jobcheck.wire.registry import DECODERS, PROTOCOL_OF, decoder_for
from jobcheck.wire.unit import Change, Kind

TLS = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


def test_a_mark_is_a_change_that_is_answered():
    turns = [("client", b"mark sent invoice:17\nmark seen\r\n"), ("server", b"ok\nno such kind\n")]
    units = same_however_cut(MarkDecoder, turns, [2, 5])
    assert [(unit.shape, unit.change, unit.info["key"]) for unit in units["client"]] == [
        ("mark sent", Change.YES, "invoice:17"),
        ("mark seen", Change.YES, ""),
    ]
    assert [(unit.number, unit.change, unit.failed) for unit in units["server"]] == [
        (1, Change.YES, False),
        (2, Change.NO, True),
    ]


def test_what_is_no_mark_turns_opaque():
    (unit,) = MarkDecoder().client(b"hello\n")
    assert unit.kind is Kind.OPAQUE


def test_opaque_bytes_of_the_client_may_change_state():
    units = feed(OpaqueDecoder(), [("client", b"abc"), ("server", b"def"), ("client", b"")])
    assert [(unit.kind, unit.change, unit.shape) for unit in units["client"]] == [
        (Kind.OPAQUE, Change.MAYBE, "opaque bytes")
    ]
    assert [unit.change for unit in units["server"]] == [Change.NO]


@pytest.mark.parametrize("protocol", sorted(set(DECODERS) - {"opaque"}))
def test_tls_is_recognised_by_every_decoder_and_told_once(protocol):
    decoder = decoder_for(protocol)
    first, second = decoder.client(TLS[:5]) + decoder.client(TLS[5:])
    assert first.kind is second.kind is Kind.OPAQUE
    assert "TLS handshake" in first.note
    assert second.note == ""
    assert first.raw + second.raw == TLS


@pytest.mark.parametrize("protocol", sorted(DECODERS))
def test_a_decoder_knows_its_own_name(protocol):
    assert decoder_for(protocol).protocol == protocol


def test_every_kind_of_upstream_has_a_decoder():
    assert set(PROTOCOL_OF.values()) <= set(DECODERS)


def test_an_unknown_protocol_is_a_usage_error():
    with pytest.raises(UsageError, match="no decoder for 'gopher'"):
        decoder_for("gopher")


@FUZZ
@given(
    st.sampled_from(sorted(DECODERS)),
    st.lists(st.tuples(st.sampled_from(["client", "server"]), st.binary(max_size=60)), max_size=12),
)
def test_no_bytes_make_any_decoder_raise_or_lose_a_byte(protocol, turns):
    feed(decoder_for(protocol), turns)


LINES = st.sampled_from([b"mark a b\n", b"mark a\n", b"ok\n", b"mark", b" ", b"\n", b"no\n"])


@FUZZ
@given(
    st.lists(
        st.tuples(st.sampled_from(["client", "server"]), st.one_of(LINES, LINES, st.binary(max_size=5))), max_size=12
    ),
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
)
def test_any_bytes_give_the_same_marks_however_they_are_cut(turns, sizes):
    same_however_cut(MarkDecoder, turns, sizes)
