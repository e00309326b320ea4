"""The lane of a scenario: many cases at once, workers and producers of several versions, a network that can go bad."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

from ...checks.ownership import assign
from ...errors import UsageError
from ...faults.actions import AddToxic
from ...faults.model import EVERYBODY, PRODUCERS, WORKERS
from ...faults.toxics import Down
from ...history.records import CaseRecord, Effect
from ...network.engine import ToxicEngine
from ...network.toxiproxy import ToxiproxyEngine
from ...scenario.model import TOXIPROXY
from ...systems.contract import Dialect
from ...tap.link import Link
from ...tap.listener import Slot
from ...tap.sight import Sight, Trace
from ...tap.toxic_engine import EmbeddedToxics
from ...wire.unit import Unit
from ..byhand import VARIABLE, ByHand
from ..lane import MARKS, Lane
from ..rig import Rig
from ..stage import Stage

PRODUCER = "producer"


class PassingTrace(Trace):
    """Keeps nothing but the time of what passes: a scenario is too long to keep every message."""

    _count = 0

    def add(self, worker: str, upstream: str, link: Link, way: str, unit: Unit) -> Sight:
        self._count += 1
        if unit.note:
            self.note(f"{upstream}: {unit.note}")
        return Sight(self._count, self._clock.now() - self.started, worker, upstream, link, way, unit)


class ScenarioLane(Lane):
    """Use as an async context manager, as any lane."""

    def __init__(self, stage: Stage, rig: Rig, engine: str, *, by_hand: bool = False) -> None:
        super().__init__(stage, rig, 0)
        self.trace = PassingTrace(stage.clock)
        self.network = Network(stage, engine, by_hand=by_hand)

    async def __aenter__(self) -> ScenarioLane:
        await super().__aenter__()
        await self.network.start()
        return self

    async def __aexit__(self, *args: object) -> None:
        try:
            await super().__aexit__(*args)
        finally:
            await self.network.close()

    async def slot(self, name: str, dialect: Dialect | None = None) -> Slot:
        """A set of taps; on those of workers and producers toxics can act."""
        slot = Slot(name, self.trace, self.stage.host)
        for upstream, address in self.addresses.items():
            target = (address.host, address.port)
            if dialect is not None and upstream != MARKS:
                target = await self.network.behind(name, upstream, target)
            await self.tap(slot, upstream, target, dialect)
        if dialect is not None:
            await self.network.dress(slot)
        await self.finish(slot)
        return slot

    def environment(self, slot: Slot, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """With the address of the API by which faults are set by hand, where there is one."""
        mine = super().environment(slot, env)
        if self.network.by_hand is not None:
            mine.setdefault(VARIABLE, self.network.by_hand.url)
        return mine

    def of_version(self, rig: Rig) -> Lane:
        """The same lane with another version of the app in it."""
        other = copy.copy(self)
        other.rig = rig
        return other

    async def all_effects(self, since: int, cases: list[CaseRecord]) -> tuple[list[Effect], list[str]]:
        """The effects since then with their owners, secrets taken out, and what is wrong with their owners."""
        self._listen()
        for snapshot in self._snapshots:
            for seen in await snapshot.read():
                self.ledger.add(seen)
        owned, problems = assign(self.ledger.since(since), cases)
        clean = self.stage.redactor
        return [
            replace(effect, body=clean.text(effect.body), fields=clean.json(effect.fields), key=clean.text(effect.key))
            for effect in owned
        ], problems


class Network:
    """Toxics and outages by worker and upstream, on either engine. A proxy is called `w1:db`."""

    def __init__(self, stage: Stage, engine: str, *, by_hand: bool = False) -> None:
        self.by_hand: ByHand | None = None
        """The taps as proxies of Toxiproxy's API, where that was asked for."""
        self._embedded: EmbeddedToxics | None = None
        self._engine: ToxicEngine
        if engine == TOXIPROXY:
            self._engine = ToxiproxyEngine(stage.supervisor)
        else:
            self._engine = self._embedded = EmbeddedToxics(stage.seeds)
            self.by_hand = ByHand(self._embedded) if by_hand else None
        self._slots: dict[str, list[str]] = {}
        """Upstreams by slot."""
        self._added: dict[str, list[str]] = {}
        """Proxies by toxic."""

    @property
    def describe(self) -> str:
        return self._engine.describe

    async def start(self) -> None:
        """Raises ServiceError when the engine cannot be had."""
        await self._engine.start()
        if self.by_hand is not None:
            await self.by_hand.start()

    async def behind(self, slot: str, upstream: str, target: tuple[str, int]) -> tuple[str, int]:
        """Where a tap is to connect to: the engine's proxy where it is a server of its own."""
        self._slots.setdefault(slot, []).append(upstream)
        if self._embedded is not None:
            return target
        return await self._engine.proxy(f"{slot}:{upstream}", *target)

    async def dress(self, slot: Slot) -> None:
        if self._embedded is not None:
            await self._embedded.attach(slot)
        if self.by_hand is not None:
            self.by_hand.show(slot, self._slots[slot.name])

    def slots(self, role: str) -> list[str]:
        """Slots of a role. Raises UsageError when there are none."""
        producers = [name for name in self._slots if name.startswith(PRODUCER)]
        workers = [name for name in self._slots if name not in producers]
        found = {WORKERS: workers, PRODUCERS: producers, EVERYBODY: workers + producers}.get(role, [role])
        if not set(found) <= set(self._slots):
            raise UsageError(f"expected a worker of {', '.join(workers)}, got {role!r}")
        return found

    async def add(self, action: AddToxic) -> None:
        proxies = [f"{slot}:{action.upstream}" for slot in self.slots(action.role)]
        self._added[action.name] = proxies
        for proxy in proxies:
            await self._engine.add(proxy, action.toxic, name=action.name)

    async def remove(self, name: str) -> None:
        for proxy in self._added.pop(name, ()):
            await self._engine.remove(proxy, name)

    async def cut_off(self, upstream: str, name: str) -> None:
        """Nobody reaches the upstream, until `let_back` of this name and of every other one."""
        proxies = [f"{slot}:{upstream}" for slot in self.slots(EVERYBODY)]
        self._added[name] = proxies
        for proxy in proxies:
            await self._engine.add(proxy, Down(), name=name)

    async def let_back(self, name: str) -> None:
        """The upstream can be reached again. Nothing happens when it was not cut off under this name."""
        await self.remove(name)

    async def heal(self) -> None:
        """Nothing is left of any toxic or outage."""
        self._added.clear()
        try:
            if self.by_hand is not None:
                await self.by_hand.heal()
        finally:
            await self._engine.reset()

    async def close(self) -> None:
        if self.by_hand is not None:
            await self.by_hand.close()
        await self._engine.close()
