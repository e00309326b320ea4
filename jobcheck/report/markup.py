"""HTML and SVG that are escaped by construction: a plain text becomes markup only through here."""

from __future__ import annotations

import html
from collections.abc import Iterable

from .text import clean

_VOID = frozenset({"br", "hr", "meta", "line", "path", "circle", "rect", "polyline"})


class Markup(str):
    """Text that is markup already. Everything else is escaped when it is put into an element."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """`text` as it should be shown, in an element or a quoted attribute."""
    return Markup(html.escape(clean(text), quote=True))


def el(name: str, *children: str, **attributes: str | int | float | bool | None) -> Markup:
    """An element. A trailing `_` of an attribute's name is dropped, other `_` become `-`; None and False leave it out,
    True gives it without a value."""
    head = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        head.append(word if value is True else f'{word}="{escape(str(value))}"')
    opened = f"<{' '.join(head)}>"
    if name in _VOID and not children:
        return Markup(opened[:-1] + "/>")
    return Markup(f"{opened}{join(children)}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Markup:
    """The parts one after the other, each escaped unless it is markup."""
    return Markup(between.join(part if isinstance(part, Markup) else escape(part) for part in parts))
