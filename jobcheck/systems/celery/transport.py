"""What differs between Celery's brokers: how jobs lie there, how they come back, and where they can be lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...services.spec import Address
from ...wire.unit import Unit
from ..contract import AgentCall, Blame, Broker, Dialect, Settings


class Transport(Protocol):
    """One kind of broker under Celery."""

    name: str
    """`celery-redis`."""
    preload: tuple[str, ...]
    """Modules that a zygote imports for it."""
    lease_owner: str
    """Whose clock says when a job that was not acknowledged is given out again, in words."""

    def dialect(self) -> Dialect: ...

    def lease(self, told: dict[str, object]) -> float:
        """Seconds until the broker redelivers by itself; 0: at once."""
        ...

    def sweep(self, told: dict[str, object]) -> float:
        """Seconds at most from the end of a lease until a worker that lives looks for it; 0: at once."""
        ...

    def limits(self, told: dict[str, object]) -> dict[str, float]:
        """Seconds after which the broker gives a job out again that is being worked on, by the setting's name."""
        ...

    async def depth(self, broker: Broker, address: Address, settings: Settings) -> int: ...

    async def rewind(
        self, address: Address, held: Sequence[str], settings: Settings, call: AgentCall, app: str
    ) -> str: ...

    async def duplicate(
        self, address: Address, delivery: Unit, call: AgentCall, app: str, *, next_up: bool
    ) -> None: ...

    async def halt(self, address: Address, settings: Settings, call: AgentCall, app: str) -> None: ...

    async def go_on(
        self, address: Address, settings: Settings, call: AgentCall, jobs: Sequence[str], kept: Sequence[str]
    ) -> None: ...

    async def put_back(self, address: Address, settings: Settings, call: AgentCall, jobs: Sequence[str]) -> None: ...

    def blame_storage(self, durable: bool, settings: Settings) -> Blame: ...

    def blame_publish(self, settings: Settings) -> Blame: ...

    def blame_loss(self, passed: Sequence[str], settings: Settings) -> Blame: ...
