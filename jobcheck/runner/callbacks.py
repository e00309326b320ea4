"""The providers of a lane call back in another way than the rig says: twice, early, late, in the opposite order."""

from __future__ import annotations

from ..explore.causes import CALLS_BACK
from ..faults.strikes import WEBHOOK, detail_of, kind_of
from ..history.records import Strike
from .lane import Lane
from .trial import Running


def varied(strike: Strike | None) -> bool:
    """Whether this strike is one of callbacks. It waits for no message of the job."""
    return strike is not None and kind_of(strike.fault) == WEBHOOK


def vary(lane: Lane, strike: Strike) -> None:
    """The callbacks of the case that comes are the strike's, until `heal`."""
    for provider in lane.providers.values():
        provider.courier.begin(detail_of(strike.fault))


def heal(lane: Lane) -> None:
    """Providers call back as the rig says again. What was kept back and not handed over never comes."""
    for provider in lane.providers.values():
        provider.courier.begin()


def made(lane: Lane) -> int:
    """Events that providers made since the case began."""
    return sum(provider.courier.made for provider in lane.providers.values())


async def hand_over(lane: Lane, strike: Strike, running: Running) -> None:
    """The jobs of the case have ended: what comes late comes now. The strike has fired if there was a callback."""
    running.fired = made(lane) > 0
    running.notes.append(f"the provider {CALLS_BACK[detail_of(strike.fault)]}")
    for provider in lane.providers.values():
        await provider.courier.hand_over()
        running.notes += provider.courier.refused
