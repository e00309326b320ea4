"""How much a provider can do: calls are served one after the other, and those beyond the queue are refused."""

from __future__ import annotations

from collections import deque

from ..clock import Clock
from ..faults.outages import SLOW, Capacity


class Counter:
    """The counter at which calls queue. Its times follow from each other, so a late timer does not add up."""

    def __init__(self, clock: Clock, capacity: Capacity) -> None:
        self.capacity = capacity
        self.refused = 0
        """Calls that were sent away."""
        self.waited = 0
        """Calls that had to wait."""
        self.longest = 0.0
        """Seconds that a call waited at most."""
        self._clock = clock
        self._free_at = clock.now()
        self._turns: deque[float] = deque()
        """When those that wait have their turn."""

    def arrive(self) -> float | None:
        """Seconds until the call's turn; None: it is refused. A caller that is gone meanwhile keeps its turn, as its
        call is in the other side's queue."""
        now = self._clock.now()
        while self._turns and self._turns[0] <= now:
            self._turns.popleft()
        turn = max(now, self._free_at)
        if turn > now and self._full:
            self.refused += 1
            return None
        self._free_at = turn + 1 / self.capacity.rate
        if turn > now:
            self._turns.append(turn)
            self.waited += 1
            self.longest = max(self.longest, turn - now)
        return turn - now

    @property
    def _full(self) -> bool:
        queue = self.capacity.queue
        return queue is not None and self.capacity.beyond != SLOW and len(self._turns) >= queue
