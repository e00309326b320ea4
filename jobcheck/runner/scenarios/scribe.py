"""Who fills the book: it reads along with a process's dialect, and writes down what becomes of each job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...systems.contract import Dialect, Meaning
from ...tap.listener import Slot
from ...wire.unit import Kind, Unit
from .book import Book, Delivery


class Scribe:
    """Reads along with a worker's dialect and writes into the book. A `Dialect` itself."""

    def __init__(self, inner: Dialect, book: Book, name: str) -> None:
        self._inner = inner
        self._book = book
        self.name = name
        self.generation = 0
        self.version = ""
        self.slot: Slot | None = None
        """Set when the slot is there."""
        self.producer = False
        self.relay = False
        """A process that enqueues for whoever left it something to do, sooner or later."""
        self._asked: dict[int, tuple[Unit, str]] = {}
        """Requests to take a job that have no answer yet."""
        self._unreserved: list[tuple[str, Delivery]] = []
        self._tags: dict[str, list[tuple[str, Delivery]]] = {}

    @property
    def due(self) -> Mapping[str, str]:
        """When jobs are due that are held until then (ISO 8601), as their messages say it; empty: at once."""
        return getattr(self._inner, "due", {})

    @property
    def tasks(self) -> Mapping[str, str]:
        """Names of tasks by their jobs' ids, as far as messages say them."""
        return getattr(self._inner, "tasks", {})

    def held(self) -> Sequence[str]:
        return self._inner.held()

    def reset(self) -> None:
        self._inner.reset()
        self._asked.clear()
        self._unreserved.clear()
        self._tags.clear()

    def read(self, unit: Unit, request: Unit | None, role: str) -> Meaning:
        before = set(self._inner.held())
        meaning = self._inner.read(unit, request, role)
        if meaning.role == "enqueue" and unit.kind is Kind.REQUEST and meaning.job:
            # The last delivery is the guess where the message does not say; with prefetched jobs it may be another one.
            parent = meaning.parent or (self.slot.job if self.slot is not None else "")
            text = meaning.text if self.relay else ""
            made = self.producer or self.relay
            self._book.enqueued(meaning.job, parent=parent, producer=made, version=self.version, text=text)
            self._ask(unit, meaning.job)
        elif meaning.role == "enqueue" and request is not None and not unit.failed:
            if (asked := self._asked.pop(id(request), None)) is not None:
                self._book.job(asked[1]).untaken = False
        elif meaning.role == "delivery" and meaning.job:
            self._delivered(meaning.job, unit, before)
        elif meaning.role == "restore":
            self._book.put_back.add(meaning.job)
        elif meaning.role in ("reserve", "ack") and not unit.failed:
            if meaning.role == "reserve" and unit.kind is not Kind.REQUEST:
                self._reserved(before)
            self._settle(before)
        return meaning

    def _ask(self, unit: Unit, number: str) -> None:
        """The broker is asked to take a job, and will answer. What it has taken once it has for good."""
        job = self._book.job(number)
        if not unit.info.get("no_reply", False) and (job.untaken or not job.asked):
            job.untaken = True
            self._asked[id(unit)] = unit, number
        job.asked = True

    def _delivered(self, number: str, unit: Unit, before: set[str]) -> None:
        held = self._book.until(self.due.get(number, ""))
        delivery = Delivery(self.name, self.generation, self.version, self._book.now(), held=held)
        if tags := set(self._inner.held()) - before:  # a broker on which a delivery is a reservation
            delivery.reserved = True
            self._tag(tags.pop(), number, delivery)
        else:
            self._unreserved.append((number, delivery))
        self._book.delivered(number, unit, delivery)

    def _reserved(self, before: set[str]) -> None:
        """A reservation is that of the oldest delivery without one, on a connection that is still there."""
        self._unreserved = [pair for pair in self._unreserved if not pair[1].stranded]
        if self._unreserved:
            number, delivery = self._unreserved.pop(0)
            delivery.reserved = True
            fresh = set(self._inner.held()) - before
            self._tag(fresh.pop() if fresh else "", number, delivery)

    def _settle(self, before: set[str]) -> None:
        """An ack is known by the tags that it settles; where it has no answer, it counts when it is sent."""
        for tag in before - set(self._inner.held()):
            for number, delivery in self._tags.pop(tag, ()):
                self._book.settled(number, delivery)

    def _tag(self, tag: str, number: str, delivery: Delivery) -> None:
        delivery.tag = tag
        self._tags.setdefault(tag, []).append((number, delivery))
