"""Programmed answers of a stand-in provider: what a route says, how often, and how long it takes."""

from __future__ import annotations

import enum
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import UsageError
from ..faults.routes import fits, split
from .answer_words import plain

KEYS = ("status", "json", "body", "headers", "delay", "hang", "drop", "applied")


@dataclass(frozen=True, slots=True)
class Call:
    """One complete request, as a programmed function sees it."""

    method: str
    path: str
    """With the query."""
    headers: dict[str, str]
    """Lower-case names."""
    body: str
    """Canonical text."""
    json: Any = None
    raw: bytes = b""
    """The body as it came."""
    whole: bool = False
    """It named its whole URL, as clients do to a proxy: the next one on this connection may be meant for another."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the provider says to one call."""

    status: int | None = None
    """None: 201 for POST, else 200."""
    json: Any = None
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds between the complete request and the answer; the effect has happened before it."""
    hang: bool = False
    """Never answer; the connection stays open."""
    drop: bool = False
    """Close the connection without an answer."""
    applied: bool | None = None
    """Whether the effect happened whatever the status says. None: a 2xx to a call that is not a GET."""
    first: int = 0
    """Only the first so many calls of a route are answered so; 0: all."""
    raw: bytes | None = None
    """The body as bytes. This field and the following ones are for backends."""
    note: str = ""
    """Why a call had no effect."""
    silent: bool = False
    """The call only reads, whatever its method says: it is not written down."""
    says: str = ""
    """What the call asked for, where its own body is new each time."""

    @property
    def empty(self) -> bool:
        """Nothing is said about the content, so the default content is given."""
        return self.json is None and self.body is None and self.raw is None

    def content(self) -> bytes:
        """The bytes of the answer's body."""
        if self.raw is not None:
            return self.raw
        if self.body is not None:
            return self.body.encode()
        return json.dumps(self.json).encode()


class Silence(enum.Enum):
    """Not to answer."""

    HANG = "hang"
    """Keep the connection open until the client gives up."""
    DROP = "drop"
    """Close the connection."""


Programmed = Answer | Mapping[str, Any] | int | Callable[[Call], Any]
"""An answer, its fields as a mapping, a bare status, or a function (plain or async) of the call that gives one of
these; the function may give None for the default."""


def to_answer(value: Any, where: str) -> Answer:
    """Raises UsageError when `value` is no answer; `where` names the route."""
    if isinstance(value, Answer):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        value = {"status": value}
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: expected an answer such as {{'status': 503}}, got {value!r}")
    answer = Answer(**plain(value, KEYS, where))
    if answer.status is not None and not (isinstance(answer.status, int) and 200 <= answer.status <= 599):
        raise UsageError(f"{where}: expected a status from 200 to 599, got {answer.status!r}")
    return answer


async def resolve(programmed: Programmed | None, call: Call, where: str) -> Answer:
    """The answer to `call`; a function is called and, where it is async, awaited."""
    value: Any = programmed
    if callable(value) and not isinstance(value, Answer):
        value = value(call)
        if isinstance(value, Awaitable):
            value = await value
    return Answer() if value is None else to_answer(value, where)


class Routes:
    """Programmed routes by `METHOD /path`, where `*` stands for any method or one path segment and `**` for the rest.

    The most exact route that matches is taken: routes without wildcards before those with.
    """

    def __init__(self, fixed: Mapping[str, Any]) -> None:
        self._fixed: dict[str, Programmed] = {}
        self._queues: dict[str, deque[Programmed]] = {}
        self._used: dict[str, int] = {}
        """Calls of the routes whose answer is for the first ones."""
        for route, programmed in fixed.items():
            split(route)
            self._fixed[route] = programmed if callable(programmed) else to_answer(programmed, route)

    def program(self, route: str, answers: Iterable[Programmed]) -> None:
        """Queues answers for `route`, each used once; afterwards the fixed or default answer is given again."""
        split(route)
        checked = [item if callable(item) else to_answer(item, route) for item in answers]
        self._queues.setdefault(route, deque()).extend(checked)

    def set(self, route: str, answer: Programmed | None) -> None:
        """From now on `route` is answered like this; None: by default again."""
        split(route)
        self._used.pop(route, None)
        if answer is None:
            self._fixed.pop(route, None)
        else:
            self._fixed[route] = answer if callable(answer) else to_answer(answer, route)

    def clear(self) -> None:
        """Forgets answers that were queued and not used."""
        self._queues.clear()

    def take(self, method: str, path: str) -> tuple[Programmed | None, str]:
        """The answer to give now, and the route that it came from; None when nothing was programmed."""
        for route in _most_exact_first(self._queues):
            if self._queues[route] and fits(route, method, path):
                return self._queues[route].popleft(), route
        for route in _most_exact_first(self._fixed):
            if fits(route, method, path) and not self._used_up(route):
                return self._fixed[route], route
        return None, f"{method} {path}"

    def _used_up(self, route: str) -> bool:
        """Whether a route's answer was for the first calls only, and they have been made. This one is counted."""
        answer = self._fixed[route]
        if not isinstance(answer, Answer) or not answer.first:
            return False
        self._used[route] = self._used.get(route, 0) + 1
        return self._used[route] > answer.first


def _most_exact_first(routes: Iterable[str]) -> list[str]:
    return sorted(routes, key=lambda route: (route.count("*"), -len(route)))
