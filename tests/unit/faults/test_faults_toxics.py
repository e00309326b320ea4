"""Toxics as data: Toxiproxy's words and defaults, and errors that say what is right."""

from __future__ import annotations

import contextlib
import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcheck.errors import UsageError
from jobcheck.faults.toxics import (
    TOXICS,
    Bandwidth,
    Down,
    Latency,
    LimitData,
    ResetPeer,
    Slicer,
    SlowClose,
    Stream,
    Timeout,
    Toxic,
    fields_of,
    from_json,
    make,
    parse,
    to_json,
)

ONE_OF_EACH = [
    Latency(200, jitter=50),
    Bandwidth(10),
    SlowClose(1000),
    Timeout(0),
    ResetPeer(100),
    Slicer(10, 5, 20),
    LimitData(1000),
]


def test_toxics_have_toxiproxys_names_and_parameters() -> None:
    assert {one.kind: list(one.attributes) for one in ONE_OF_EACH} == {
        "latency": ["latency", "jitter"],
        "bandwidth": ["rate"],
        "slow_close": ["delay"],
        "timeout": ["timeout"],
        "reset_peer": ["timeout"],
        "slicer": ["average_size", "size_variation", "delay"],
        "limit_data": ["bytes"],
    }
    assert set(TOXICS) == {"down", *(one.kind for one in ONE_OF_EACH)}


def test_a_scenario_mapping_becomes_a_toxic_and_its_triggers_are_left_to_others() -> None:
    entry = {"toxic": "latency", "upstream": "db", "latency": 200, "jitter": 50, "at": "0s", "for": "20s"}
    assert parse(entry) == ("db", Latency(200, jitter=50))
    more = {**entry, "stream": "upstream", "toxicity": 0.5}
    assert parse(more) == ("db", Latency(200, 50, stream=Stream.UPSTREAM, toxicity=0.5))
    assert parse({"toxic": "down", "upstream": "db", "every": "5s"}) == ("db", Down())


@pytest.mark.parametrize("toxic", ONE_OF_EACH, ids=lambda one: one.kind)
def test_what_goes_to_toxiproxy_comes_back_the_same(toxic: Toxic) -> None:
    for one in (toxic, dataclasses.replace(toxic, stream=Stream.UPSTREAM, toxicity=0.25)):
        body = json.loads(json.dumps(to_json(one)))
        assert from_json(body) == one
        assert body["name"] == f"{one.kind}_{one.stream}"


def test_toxiproxys_defaults_are_downstream_and_every_connection() -> None:
    toxic = from_json({"type": "timeout", "attributes": {"timeout": 5}})
    assert (toxic.stream, toxic.toxicity) == (Stream.DOWNSTREAM, 1.0)


def test_down_is_no_toxic_of_the_http_api() -> None:
    with pytest.raises(UsageError, match="its proxy is disabled instead"):
        to_json(Down())


def test_toxics_can_be_keys_and_never_change() -> None:
    assert len({Latency(1), Latency(1), Latency(1, stream=Stream.UPSTREAM)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Latency(1).latency = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        ({"toxic": "latncy"}, "expected one of latency, down, bandwidth", "latency"),
        ({"toxic": "slow-close"}, "got 'slow-close'", "slow_close"),
        ({"toxic": 5}, "got 5", ""),
        ({}, "got None", ""),
        ({"toxic": "latency", "upstream": "db", "latncy": 3}, "unknown key 'latncy'", "latency"),
        ({"toxic": "latency", "upstream": "db", "latency": 3, "durng": "5s"}, "unknown key 'durng'", "during"),
        ({"toxic": "latency", "upstream": "db"}, "expected latency in milliseconds, and it is missing", ""),
        ({"toxic": "latency", "latency": 3}, "expected upstream", ""),
        ({"toxic": "latency", "upstream": "db", "latency": "200ms"}, "got '200ms'", "latency: 200"),
        ({"toxic": "latency", "upstream": "db", "latency": -1}, "at least 0, got -1", ""),
        ({"toxic": "latency", "upstream": "db", "latency": True}, "got True", ""),
        ({"toxic": "latency", "upstream": "db", "latency": 1.5}, "got 1.5", ""),
        ({"toxic": "latency", "upstream": "db", "latency": 2**63}, "got 9223372036854775808", ""),
        ({"toxic": "latency", "upstream": "db", "latency": 3, "toxicity": 1.1}, "from 0 to 1, got 1.1", ""),
        ({"toxic": "latency", "upstream": "db", "latency": 3, "toxicity": "50%"}, "from 0 to 1, got '50%'", ""),
        ({"toxic": "latency", "upstream": "db", "latency": 3, "stream": "upsteam"}, "got 'upsteam'", "upstream"),
        ({"toxic": "slicer", "upstream": "db", "average_size": 4, "size_variation": 4}, "less than average_size", ""),
        ({"toxic": "slicer", "upstream": "db", "average_size": 0}, "at least 1, got 0", ""),
        ({"toxic": "down", "upstream": "db", "stream": "upstream"}, "unknown key 'stream'", ""),
    ],
)
def test_a_mistake_names_what_was_expected_and_the_nearest_right_word(
    entry: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse(entry)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_the_same_checks_hold_without_a_scenario() -> None:
    assert make("limit_data", {"bytes": 5}) == LimitData(5)
    with pytest.raises(UsageError, match="unknown key 'byte'"):
        make("limit_data", {"byte": 5})
    with pytest.raises(UsageError, match="unknown key 'late'"):
        from_json({"type": "latency", "attributes": {"late": 5}})
    with pytest.raises(UsageError, match="attributes to be a mapping"):
        from_json({"type": "latency", "attributes": 5})
    with pytest.raises(UsageError, match="neither stream nor toxicity"):
        Down(toxicity=0.5)
    assert fields_of("bandwidth") == ("rate", "stream", "toxicity")
    assert fields_of("down") == ()


def test_the_text_of_a_toxic_says_everything_about_it() -> None:
    assert Latency(200, 50, toxicity=0.5).text == "latency latency=200 jitter=50 downstream on 50% of the connections"
    assert Down().text == "down"


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["toxic", "latency", "rate", "stream", "upstream", "x"]), st.none() | st.text()))
def test_any_mapping_is_a_toxic_or_a_usage_error(entry: dict[str, object]) -> None:
    with contextlib.suppress(UsageError):
        upstream, toxic = parse({"toxic": "latency", **entry})
        assert upstream
        assert isinstance(toxic, Toxic)
