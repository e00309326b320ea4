"""Shapes: types and names without values, and what differs between two of them."""

from __future__ import annotations

import pytest

from jobcheck.payloads.shape import Parameter, difference, in_words, ordinal, payload_shape, shape_id, shape_of

INVOICE = Parameter("invoice_id", True)
NOTIFY = Parameter("notify", True)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "integer"),
        (1.5, "number"),
        ("a", "string"),
        ([], "[nothing]"),
        ([1, 2], "[integer]"),
        ([1, "a", 2], "[integer|string]"),
        ({"b": 1, "a": {"c": []}}, "{a: {c: [nothing]}, b: integer}"),
        ({"700001": 3, "700002": 4}, "{*: integer}"),
    ],
)
def test_a_shape_has_types_and_names_and_no_values(value: object, words: str) -> None:
    """Ids as names count as values."""
    assert in_words(shape_of(value)) == words


def test_values_do_not_change_the_id_of_a_shape_and_types_do() -> None:
    """The file's name is the same for every payload of a kind."""
    one, other, third = (payload_shape([value], {"a": "b"}, "") for value in (1, 2, "3"))
    assert shape_id("t", one) == shape_id("t", other) != shape_id("t", third)
    assert shape_id("t", one) != shape_id("u", one)


def test_a_shape_nested_without_end_is_cut() -> None:
    """A payload of a thousand brackets is described, not recursed into."""
    value: object = 1
    for _ in range(1000):
        value = [value]
    assert "deeper" in in_words(shape_of(value))


def shape(*args: object, **kwargs: object) -> dict[str, object]:
    return dict(payload_shape(args, kwargs, "application/json"))


@pytest.mark.parametrize(
    ("old", "new", "old_parameters", "new_parameters", "expected"),
    [
        (shape(1), shape(2), [INVOICE], [INVOICE], ()),
        (shape(1), shape(1, True), [INVOICE], [INVOICE, NOTIFY], ("notify added: boolean (required)",)),
        (shape(1), shape(1, True), [], [], ("2nd argument added: boolean",)),
        (shape(1, True), shape(1), [INVOICE, NOTIFY], [INVOICE], ("notify removed",)),
        (shape(user=1), shape(customer=1), [], [], ("user renamed to customer",)),
        (shape(user=1), shape(customer="a"), [], [], ("user removed", "customer added: string")),
        (shape(1), shape("1"), [INVOICE], [INVOICE], ("invoice_id: integer -> string",)),
        (shape(1), shape(invoice_id=1), [INVOICE], [INVOICE], ()),
        (
            shape(1),
            shape(1),
            [INVOICE],
            [INVOICE, Parameter("notify", False)],
            ("notify accepted now (optional), not sent",),
        ),
        (shape(1), shape(1), [INVOICE, Parameter("x", False)], [INVOICE], ("x no longer accepted",)),
        (
            shape({"colour": 1, "n": [{"a": 1}]}),
            shape({"color": 1, "n": [{"a": 1}]}),
            [INVOICE],
            [INVOICE],
            ("invoice_id.colour renamed to invoice_id.color",),
        ),
        (shape(a=[{"b": 1}]), shape(a=[{"b": "x"}]), [], [], ("a[].b: integer -> string",)),
        (shape(a={}), shape(a={"b": 1}), [], [], ("a removed", "a.b added: integer")),
        (shape(1), {"opaque": "application/x-msgpack"}, [], [], ("JSON -> application/x-msgpack",)),
    ],
)
def test_differences_name_the_arguments(
    old: dict[str, object],
    new: dict[str, object],
    old_parameters: list[Parameter],
    new_parameters: list[Parameter],
    expected: tuple[str, ...],
) -> None:
    """Positional ones by their parameter, where the code tells it."""
    assert difference(old, new, old_parameters, new_parameters) == expected


def test_ordinals() -> None:
    """As people write them."""
    assert [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st")
    ]
