"""Rule 2: what in a payload should rather be read by id."""

from __future__ import annotations

import base64
import pickle

import pytest

from jobcheck.payloads.content import LARGE, concerns

JSON = "application/json"


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ([17, "invoice-17", "2026-11-29T10:00:00Z", "eu"], {"notify": True}, []),
        ([["a", "b"], [1, 2, 3]], {}, []),
        ([{"id": 1, "rows": [1]}], {}, []),
        ([{"id": 1, "total": 2, "status": "x", "created": "y"}], {}, ["record args[0]"]),
        ([[{"id": 1, "total": 2, "status": "x", "created": "y"}] * 50], {}, ["record args[0][]"]),
        ([[[[[1]]]]], {}, ["deep args[0]"]),
        (["ada@example.com"], {}, ["personal args[0]"]),
        ([], {"lastName": "Lovelace"}, ["personal kwargs.lastName"]),
        ([{"street": "Main Street 1"}], {}, ["personal args[0].street"]),
        (["DE89 3704 0044 0532 0130 00"], {}, ["personal args[0]"]),
        ([4111111111111111], {}, ["secret args[0]"]),
        ([], {"api_token": "abcdef"}, ["secret kwargs.api_token"]),
        ([base64.b64encode(pickle.dumps(list(range(9)))).decode()], {}, ["pickle args[0]"]),
    ],
)
def test_each_concern_is_found_where_it_is(args: list[object], kwargs: dict[str, object], expected: list[str]) -> None:
    """And nothing where there is nothing."""
    assert [f"{one.kind} {one.where}" for one in concerns(args, kwargs, JSON, 100)] == expected


def test_evidence_is_masked() -> None:
    """A warning about personal data spreads none."""
    args = ["ada@example.com", "4111 1111 1111 1111", {"phone": "+49 30 123456"}]
    told = " ".join(one.evidence for one in concerns(args, {}, JSON, 100))
    assert "ada@" not in told
    assert "4111" not in told
    assert "123456" not in told


def test_bodies_that_are_large_or_no_json_are_named() -> None:
    """They are judged as a whole."""
    assert [one.kind for one in concerns([1], {}, JSON, LARGE)] == ["large"]
    assert [one.kind for one in concerns(None, None, "application/x-python-serialize", 10)] == ["pickle"]
    assert [one.kind for one in concerns(None, None, "application/x-msgpack", 10)] == ["opaque"]
