"""Faults that are set by hand: Toxiproxy's HTTP API over the taps of a run, for clients of any language."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..network.api import Api
from ..network.api_server import ApiServer
from ..tap.listener import Slot
from ..tap.toxic_engine import EmbeddedToxics

VARIABLE = "TOXIPROXY_URL"
"""Where the processes of the app find it."""
NOT_YET = "jobcheck records a clean case: faults can be set as soon as the workload runs"
OVER = "the faults of this jobcheck run are over, and all is healed"


@dataclass(frozen=True, slots=True)
class Hands:
    """Whoever sets faults by hand while a scenario runs, and has it wait."""

    ready: Callable[[str], None]
    """Is told the API's address, once the workload runs."""
    done: Callable[[], bool]
    """Nothing is healed before this is true."""


class ByHand:
    """The taps of a run as proxies: `db` is all of them in front of `db`, `w1:db` that of one worker."""

    def __init__(self, engine: EmbeddedToxics) -> None:
        self.api = Api(engine)
        self.api.over = NOT_YET
        self._server = ApiServer(self.api)

    @property
    def url(self) -> str:
        """What clients are given."""
        return f"http://{self._server.host}:{self._server.port}"

    async def start(self) -> None:
        """Answers on a free port. Raises ServiceError."""
        await self._server.start()

    async def close(self) -> None:
        """May be called twice."""
        await self._server.stop()

    def show(self, slot: Slot, upstreams: Iterable[str]) -> None:
        """The taps of a slot, which the engine acts on already, are proxies from now on."""
        for upstream in upstreams:
            listener = slot.listeners[upstream]
            for name in (upstream, f"{slot.name}:{upstream}"):
                self.api.adopt(name, (slot.host, listener.port), listener.target)

    def open(self) -> None:
        """From now on the network may be spoilt."""
        self.api.over = ""

    async def heal(self) -> None:
        """Ends all that was set, and lets nothing be set any more. Raises ServiceError."""
        await self.api.heal(OVER)
