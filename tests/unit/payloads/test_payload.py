"""Payload files: complete, without secrets, and left alone when nothing is new."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from jobcheck.errors import UsageError
from jobcheck.payloads.messages import decode
from jobcheck.payloads.payload import Payload, from_json, from_message, read, write
from jobcheck.payloads.rebind import occurs, rebind
from jobcheck.payloads.shape import Parameter

from .kombu import message


def payload(raw: str, parameters: tuple[Parameter, ...] = (), **changes: Any) -> Payload:
    told: dict[str, Any] = {
        "version": "v1",
        "recorded": "2026-11-29T10:00:00Z",
        "function": "new_invoice",
        "system": "celery-redis",
        "queue": "celery",
        "ids": {"invoice": "17"},
        **changes,
    }
    return from_message(raw, decode(raw), parameters=parameters, **told)


def test_a_file_gives_back_what_was_written() -> None:
    """Every field."""
    one = payload(message(kwargs={"notify": True}), (Parameter("invoice_id", True),))
    again = from_json(one.to_json(), "here")
    assert again.to_json() == one.to_json()
    assert again.parameters == (Parameter("invoice_id", True),)


def test_secrets_are_nowhere_in_the_file_and_the_message_stays_sendable() -> None:
    """Also not in the body, nor in Celery's own copy of the arguments; equal runs give equal files."""
    raw = message(args=(17, "sekret-1"), kwargs={"api_token": "sekret-2", "note": "password=sekret-3"})
    one = payload(raw, (Parameter("invoice_id", True), Parameter("password", True)))
    text = one.to_json()
    body = base64.b64decode(json.loads(one.raw)["body"]).decode()
    assert "sekret" not in text + body
    assert one.redacted == ("args[1]", "kwargs.api_token", "kwargs.note")
    assert not one.unfit
    assert decode(one.raw).kwargs == {"api_token": "<redacted>", "note": "password=<redacted>"}
    assert payload(raw, one.parameters).to_json() == text  # type: ignore[arg-type]


def test_a_secret_number_makes_a_payload_unfit() -> None:
    """A text in its place is another shape."""
    one = payload(message(args=(4111111111111111,)))
    assert "args[0]" in one.unfit
    assert "4111111111111111" not in one.to_json()


def test_a_shape_that_is_there_already_is_left_as_it_is(tmp_path: Path) -> None:
    """A second recording changes nothing in a repository."""
    (first,) = write(tmp_path, [payload(message())])
    text = first.path.read_text()
    (second,) = write(tmp_path, [payload(message(args=(18,)), recorded="2026-12-01T00:00:00Z")])
    assert (first.fresh, second.fresh, second.path) == (True, False, first.path)
    assert first.path.read_text() == text
    assert first.path.parent == tmp_path / "v1" / "shop.charge"


def test_the_version_that_was_recorded_last_is_read_by_default(tmp_path: Path) -> None:
    """Not the one whose name comes last."""
    write(tmp_path, [payload(message(), version="z", recorded="2026-01-01T00:00:00Z")])
    write(tmp_path, [payload(message(), version="a", recorded="2026-02-01T00:00:00Z")])
    assert [one.version for one in read(tmp_path)] == ["a"]
    assert [one.version for one in read(tmp_path, "z")] == ["z"]
    assert read(tmp_path / "none") == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "task": "a"}'])
def test_a_file_that_is_none_is_named(text: str) -> None:
    """With its path."""
    with pytest.raises(UsageError, match=r"some/file\.json"):
        from_json(text, "some/file.json")


def test_ids_are_replaced_by_name_wherever_they_stand_alone() -> None:
    """A number that only contains an id is another number."""
    value = [17, "17", "invoice:17/x", 170, "a17", True, {"id": 17, "n": 1.7}, None]
    assert rebind(value, {"invoice": "17"}, {"invoice": "99"}) == [
        *(99, "99", "invoice:99/x", 170, "a17", True, {"id": 99, "n": 1.7}, None)
    ]
    assert rebind([1], {"invoice": "1"}, {"invoice": "one"}) == [1]
    assert rebind([1], {"invoice": "1"}, {}) == [1]


def test_an_id_occurs_only_as_a_whole() -> None:
    """So that it is known whether a payload names rows at all."""
    assert occurs([["x:17"]], {"invoice": "17"})
    assert not occurs([170, "a17"], {"invoice": "17"})
    assert not occurs([17], {})
