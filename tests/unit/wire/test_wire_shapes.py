"""Labels without ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_feeding import FUZZ

from jobcheck.wire.shapes import MAX_LABEL, MAX_SUMMARY, join_labels, normalise, one_line

UUID = "0b9cfd12-7c1e-4b9a-9f5e-2a8d6c1b7e11"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (f"celery-task-meta-{UUID}", "celery-task-meta-*"),
        (f"rq:job:{UUID}", "rq:job:*"),
        (f"rq:worker:{UUID.replace('-', '')}", "rq:worker:*"),
        (f"{UUID}.reply.celery.pidbox", "*.reply.celery.pidbox"),
        ("unacked_index", "unacked_index"),
        ("_kombu.binding.celeryev", "_kombu.binding.celeryev"),
        ("bull:payments:17", "bull:payments:*"),
        ("dramatiq:default.msgs", "dramatiq:default.msgs"),
        ("/v1/charges/ch_3MqLiJLkdIwHu7ix0snN0Zqz/refunds", "/v1/charges/ch_*/refunds"),
        ("order-2026-11-29T22:18:04.123Z", "order-*"),
        ("window:2026-11-29", "window:*"),
        ("lock:1764455884.1234", "lock:*"),
        ("worker@10.0.0.17", "worker@*"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "*"),
        ("V1StGXR8_Z5jdHi6B-myT", "V1StGXR8_Z5jdHi6B-myT"),  # short pieces between separators look like words
        ("payments_2026_11", "payments_*_*"),
        ("events_p20261129", "events_p*"),
        ("order123", "order*"),
        ("utf8", "utf8"),
        ("w2", "w2"),
        ("queue1", "queue1"),
        ("SendInvoiceReminder", "SendInvoiceReminder"),
        ("deadbeefcafe0001", "*"),
        ("facade", "facade"),
        ("celery\x06\x163", "celery·*"),
        ("Übersicht", "Übersicht"),
        ("", ""),
    ],
)
def test_ids_and_times_become_stars_and_words_stay(text, label):
    assert normalise(text) == label


def test_ids_go_before_the_cut():
    long = "a" * 20 + ":" + "word:" * 30
    assert normalise(f"{long}{UUID}") == normalise(f"{long}{UUID[::-1]}")
    assert len(normalise(long)) == MAX_LABEL


@FUZZ
@given(st.text())
def test_a_label_is_one_printable_line_of_bounded_length(text):
    for out in (normalise(text), one_line(text)):
        assert "\n" not in out
        assert "\x00" not in out
        assert len(out) <= MAX_SUMMARY
    assert normalise(normalise(text)) == normalise(normalise(normalise(text)))


def test_repeated_labels_are_said_once_and_long_lists_are_cut():
    assert join_labels(["BEGIN", "INSERT a", "INSERT a", "COMMIT"]) == "BEGIN+INSERT a+COMMIT"
    assert join_labels([str(n) for n in range(9)]) == "0+1+2+3+4+5+…"
