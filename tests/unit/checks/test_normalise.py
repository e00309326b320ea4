"""Ids are found at token boundaries, and what differs from run to run is taken out before texts are compared."""

from __future__ import annotations

import pytest

from jobcheck.checks.normalise import Ids, normalise, shorten


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("17", True),
        ("inv-17", True),
        ("inv_17", True),
        ("invoice-email:17", True),
        ('{"invoice":17}', True),
        ("[16,17,18]", True),
        ("/invoices/17/pay", True),
        ("Invoice 17.", True),
        ("170", False),
        ("a17", False),
        ("17a", False),
        ("amount 17.50", False),
        ("amount 3.17", False),
        ("2026-11-17T10:17:00Z", False),
        ("6f1c8a52-0017-4c7e-9d5f-17aa00bb17cc", False),
        ("at 2026-11-17T10:17:00Z for 17", True),
    ],
)
def test_an_id_is_found_at_token_boundaries_only(text: str, found: bool) -> None:
    assert bool(Ids.of({"invoice": "17"}).find(text)) is found


def test_a_uuid_is_found_without_dashes_and_in_any_case() -> None:
    ids = Ids.of({"order": "6f1c8a52-1b0e-4c7e-9d5f-0a1b2c3d4e5f"})
    assert ids.find("6F1C8A52-1B0E-4C7E-9D5F-0A1B2C3D4E5F")
    assert ids.find("key=6f1c8a521b0e4c7e9d5f0a1b2c3d4e5f;")


def test_of_two_ids_in_one_place_the_longer_one_is_found() -> None:
    index = Ids()
    index.add("a", "number", "17")
    index.add("b", "code", "INV-17")
    assert [(hit.owner, hit.value) for hit in index.find("pay INV-17 now")] == [("b", "INV-17")]
    assert [(hit.owner, hit.value) for hit in index.find("pay 17 now")] == [("a", "17")]


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ('{"invoice":1000017}', '{"invoice":{invoice}}'),
        ("charge:1000017:1", "charge:{invoice}:1"),
        ("id 6f1c8a52-1b0e-4c7e-9d5f-0a1b2c3d4e5f", "id {uuid}"),
        ("at 2026-11-17T10:17:00.123456+00:00.", "at {time}."),
        ("at 2026-11-17 10:17:00", "at {time}"),
        ("due 2026-11-17", "due 2026-11-17"),
        ("Sat, 29 Nov 2026 22:00:00 +0000", "{time}"),
        ("ts=1763000000", "ts={time}"),
        ("ts=1763000000.25 ms=1763000000123", "ts={time} ms={time}"),
        ("amount=2763000000", "amount=2763000000"),
        ("etag 0123456789abcdef0123", "etag {hex}"),
        ("http://127.0.0.1:40123/done", "http://{host}/done"),
        ("nothing here", "nothing here"),
    ],
)
def test_ids_and_times_become_placeholders(text: str, normal: str) -> None:
    assert normalise(text, Ids.of({"invoice": "1000017"})) == normal


def test_an_owned_id_that_looks_like_a_time_is_still_the_cases_own() -> None:
    assert normalise("order 1763000000", Ids.of({"order": "1763000000"})) == "order {order}"


def test_bodies_of_two_cases_are_equal_once_normalised() -> None:
    first = normalise('{"id":17,"note":"order 17 of ann"}', Ids.of({"order": "17", "who": "ann"}))
    second = normalise('{"id":9,"note":"order 9 of bob"}', Ids.of({"order": "9", "who": "bob"}))
    assert first == second


def test_finding_ids_costs_one_pass_over_the_text_however_many_there_are() -> None:
    """Ten thousand ids and a long text: a search by each id alone would take minutes."""
    index = Ids()
    for number in range(10_000):
        index.add(f"case-{number}", "invoice", str(1_000_000 + number))
    text = " ".join(f"word{number}" for number in range(20_000)) + " 1004321"
    assert [hit.owner for hit in index.find(text)] == ["case-4321"]


def test_shorten_gives_one_line() -> None:
    assert shorten("a\n  b") == "a b"
    assert shorten("x" * 500, 20) == "x" * 17 + "..."
