"""Celery's messages are read and made anew without running anything of the app."""

from __future__ import annotations

import json
import pickle

import pytest

from jobcheck.payloads.messages import NotAMessage, decode, renewed

from .kombu import first_protocol, message


def test_both_protocols_are_read() -> None:
    """Task, arguments and size, wherever the protocol keeps them."""
    second = decode(message(args=(17, "a"), kwargs={"notify": True}))
    assert (second.task, second.args, second.kwargs) == ("shop.charge", [17, "a"], {"notify": True})
    first = decode(first_protocol())
    assert (first.id, first.task, first.args, first.kwargs) == ("old-id", "shop.charge", [17], {})


def test_a_renewed_message_differs_in_identity_and_due_time_only() -> None:
    """A broker that keeps a body for byte keeps ours."""
    old = message(expires="2026-01-01T00:00:00", eta="2026-01-01T00:00:00", retries=2, custom="kept")
    new = renewed(old, job="new-id", tag="new-tag")
    before, after = json.loads(old), json.loads(new)
    assert after["body"] == before["body"]
    assert after["properties"] == {**before["properties"], "correlation_id": "new-id", "delivery_tag": "new-tag"}
    changed = {"id": "new-id", "root_id": "new-id", "eta": None, "expires": None, "retries": 0}
    assert after["headers"] == {**before["headers"], **changed}


def test_other_arguments_go_into_the_body_and_what_is_embedded_stays() -> None:
    """Also where the body is packed."""
    for old in (message(), message(compression="application/x-gzip")):
        new = renewed(old, job="j", tag="t", args=[18], kwargs={"x": 1})
        told = decode(new)
        assert (told.id, told.args, told.kwargs) == ("j", [18], {"x": 1})
        assert json.loads(new)["headers"]["argsrepr"] == "(18,)"
        assert told.size > len('[[18], {"x": 1}]')


def test_the_first_protocol_carries_its_new_id_in_the_body() -> None:
    """Its headers are empty."""
    told = decode(renewed(first_protocol(), job="new-id", tag="t", args=[18]))
    assert (told.id, told.args) == ("new-id", [18])


def test_a_pickle_is_left_alone() -> None:
    """Its task is known by the headers; its arguments are nobody's business but the app's."""
    body = pickle.dumps(((1,), {}, {}))
    old = message(body=body, content_type="application/x-python-serialize")
    told = decode(old)
    assert (told.task, told.args, told.kwargs, told.size) == ("shop.charge", None, None, len(body))
    assert json.loads(renewed(old, job="j", tag="t"))["body"] == json.loads(old)["body"]


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "[]",
        "{}",
        '{"body": "AAAA"}',
        message(body=b"not json"),
        '{"body": "%%%", "content-type": "application/json", "properties": {"body_encoding": "base64"}}',
    ],
)
def test_what_is_no_message_is_refused(raw: str) -> None:
    """With one kind of error."""
    with pytest.raises(NotAMessage):
        decode(raw)
