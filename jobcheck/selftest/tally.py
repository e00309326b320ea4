"""The self-test in words: a line for each handler, one for each further round, and the sum. Pure."""

from __future__ import annotations

from .compare import Compared
from .expected import expected
from .kinds import SCENARIO_MODE, Planted
from .rounds import Round


class Tally:
    """Counts over all rounds. A handler is as planted when it was so in every round and mode."""

    def __init__(self) -> None:
        self.rounds = 0
        self.bad_rounds = 0
        self.broken_off = 0
        self.seconds = 0.0
        self._handlers: dict[str, bool] = {}
        """Names, and whether they were as planted so far."""
        self._deviations: dict[tuple[str, str], int] = {}

    def add(self, played: Round) -> None:
        self.rounds += 1
        self.seconds += played.seconds
        self.bad_rounds += not played.good
        self.broken_off += bool(played.broke)
        for item in played.compared:
            name = item.planted.name
            self._handlers[name] = self._handlers.get(name, True) and item.good
            if not item.good:
                key = (name, item.mode)
                self._deviations[key] = self._deviations.get(key, 0) + 1

    @property
    def good(self) -> bool:
        """At least one round, and every one came out as planted."""
        return self.rounds > 0 and self.bad_rounds == 0

    @property
    def text(self) -> str:
        """`34 handlers, 34 as planted; 3 rounds in 41 s`."""
        good = sum(self._handlers.values())
        words = f"{_plural(len(self._handlers), 'handler')}, {good} as planted; {_plural(self.rounds, 'round')} in "
        words += f"{self.seconds:.0f} s"
        if self.broken_off:
            words += f", {self.broken_off} broken off"
        return words

    def deviations(self) -> list[str]:
        """`half_a_file, handler mode: in 3 of 200 rounds`."""
        return [
            f"{name}, {mode} mode: in {count} of {_plural(self.rounds, 'round')}"
            for (name, mode), count in self._deviations.items()
        ]


def found_words(item: Compared) -> str:
    """What was planted, and found: `duplicated before db COMMIT`, `nothing to find`."""
    return ", ".join(places(item.planted, item.mode)) or "nothing to find"


def places(planted: Planted, mode: str) -> list[str]:
    """Each place where a handler is broken by its own code or its settings, with its verdict; in a scenario, what must
    be found and what fails there: `lost: mail, broker wiped`."""
    if mode == SCENARIO_MODE:
        return in_scenario(planted)
    wanted = expected(planted, mode)
    return [f"{outcome.verdict} {place}" for place, outcome in wanted.bad.items() if outcome.layer != "transport"]


def in_scenario(planted: Planted) -> list[str]:
    """What must be found in a handler's scenario; of what a person can see in any case, nothing."""
    found = dict.fromkeys(f"{bad.verdict}: {bad.effect}" for bad in planted.bad)
    return [f"{words}, {planted.trouble}" for words in (found or [f"broken: {text}" for text in planted.breaks])]


def round_words(played: Round, count: int) -> str:
    """`round 2 of 3: 28 as planted, 9 s`."""
    good = sum(item.good for item in played.compared)
    text = f"round {played.number} of {count}: {good} of {len(played.compared)} as planted, {played.seconds:.0f} s"
    return text if not played.broke else f"round {played.number} of {count} broke off: {played.broke}"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
