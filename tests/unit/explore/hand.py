"""Hand-written operations for the tests of explore."""

from __future__ import annotations

import itertools

from jobcheck.history.records import Operation


class Wire:
    """Writes operations down as a tap would see them: `wire.ask("db", "postgres COMMIT", "yes")`."""

    def __init__(self, worker: str = "w1", job: str = "") -> None:
        self.operations: list[Operation] = []
        self.worker = worker
        self.job = job
        self._numbers = itertools.count(1)

    def ask(
        self,
        upstream: str,
        shape: str,
        truth: str = "yes",
        *,
        guess: str = "yes",
        link: int = 0,
        role: str = "",
        code: str = "",
    ) -> Wire:
        """A request and its answer, whose truth outranks the guess."""
        number = next(self._numbers)
        link = link or sum(map(ord, upstream))
        self._add("out", upstream, shape, "request", guess, link, number, role, code)
        self._add("in", upstream, shape, "reply", truth, link, number, role)
        return self

    def say(self, upstream: str, shape: str, guess: str = "yes", *, role: str = "") -> Wire:
        """A request that gets no answer."""
        self._add("out", upstream, shape, "request", guess, sum(map(ord, upstream)), next(self._numbers), role)
        return self

    def deliver(self, upstream: str = "broker", shape: str = "redis BRPOP celery") -> Wire:
        number = next(self._numbers)
        link = sum(map(ord, upstream))
        self._add("out", upstream, shape, "request", "maybe", link, number, "poll")
        self._add("in", upstream, shape, "reply", "yes", link, number, "delivery")
        return self

    def _add(
        self,
        way: str,
        upstream: str,
        shape: str,
        kind: str,
        change: str,
        link: int,
        number: int,
        role: str,
        code: str = "",
    ) -> None:
        seq = len(self.operations) + 1
        self.operations.append(
            Operation(
                seq=seq,
                at=seq / 100,
                worker=self.worker,
                upstream=upstream,
                link=link,
                way=way,
                kind=kind,
                shape=shape,
                number=number,
                change=change,
                role=role,
                job=self.job,
                code=code,
            )
        )
