"""The same fuzz with tiny limits: every decoder gives out heads and parts all the time, and still loses nothing."""

from __future__ import annotations

import pytest
import test_wire_amqp
import test_wire_http
import test_wire_postgres
import test_wire_resp
import test_wire_smtp
from hypothesis import given
from hypothesis import strategies as st
from wire_feeding import FUZZ, cut_at, feed, single, tiny, whole

from jobcheck.wire.unit import Kind

DECODERS = {
    "redis": (test_wire_resp.RespDecoder, test_wire_resp.TURNS),
    "postgres": (test_wire_postgres.connected, test_wire_postgres.TURNS),
    "http": (test_wire_http.HttpDecoder, test_wire_http.TURNS),
    "smtp": (test_wire_smtp.SmtpDecoder, test_wire_smtp.TURNS),
    "amqp": (test_wire_amqp.connected, test_wire_amqp.TURNS),
}


@pytest.mark.parametrize("protocol", DECODERS)
def test_what_is_too_big_to_hold_is_given_out_in_order_and_whole(protocol):
    make, turns = DECODERS[protocol]

    @FUZZ
    @given(turns, st.lists(st.integers(1, 40), min_size=1, max_size=5))
    def check(turns, sizes):
        with tiny():
            for cut in (whole, single, cut_at(sizes)):
                got = feed(make(), turns, cut)
                for units in got.values():
                    assert not any("decoder failed" in unit.note for unit in units)
                    heads = [unit for unit in units if not unit.last and unit.kind is not Kind.PART]
                    assert all(unit.shape for unit in heads)

    check()
