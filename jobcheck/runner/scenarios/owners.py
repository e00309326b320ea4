"""Whose call it is that a provider was just given, and whose job a relay enqueues: by the ids that cases own."""

from __future__ import annotations

from ...aio import wait_for
from ...checks.normalise import Ids
from ...checks.ownership import texts
from ...effects.answers import Call
from ...errors import WaitTimeout
from ...history.records import Effect
from .work import Producers, Work

MADE_WITHIN = 1.0
"""Seconds that a call of nobody's waits for the case that is being made: a job may be faster than who enqueued it."""


class Owners:
    """Asked for each call where an outage is meant for each case."""

    def __init__(self, work: Work, producers: Producers) -> None:
        self._work = work
        self._producers = producers
        self._ids = Ids()
        self._known = 0

    async def __call__(self, call: Call) -> str:
        """The id of the case that the call belongs to; empty: nobody's."""
        found = self._find(call)
        if not found and self._producers.in_hand is not None:
            try:
                await wait_for(
                    lambda: self._producers.in_hand is None or len(self._work.cases) > self._known,
                    "the case in hand",
                    deadline=MADE_WITHIN,
                )
            except WaitTimeout:
                return ""  # the enqueue function itself waits for this very call
            found = self._find(call)
        return found

    def of_text(self, text: str) -> str:
        """The id of the case whose ids occur in this text; empty: nobody's, as far as is known by now."""
        self._learn()
        return next((hit.owner for hit in self._ids.find(text)), "")

    def _find(self, call: Call) -> str:
        seen = Effect(0, 0.0, "", call.body, {"path": call.path, "headers": call.headers})
        return next((owner for text in texts(seen) if (owner := self.of_text(text))), "")

    def _learn(self) -> None:
        for case in self._work.cases[self._known :]:
            for name, value in case.record.ids.items():
                self._ids.add(case.record.id, name, value)
        self._known = len(self._work.cases)
