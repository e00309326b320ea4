"""The embedded toxic engine: toxics on the taps of workers, and on proxies of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from ..clock import REAL
from ..errors import ServiceError, UsageError
from ..faults.toxics import Down, Toxic
from ..seeds import Seeds
from ..wire.opaque import OpaqueDecoder
from ..wire.unit import Unit
from .link import Link
from .listener import Listener, Slot
from .sight import Sight, Trace
from .toxics import Chance


@dataclass(slots=True)
class _State:
    """What acts on one proxy."""

    toxics: dict[str, Toxic] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    """Why it is down: names of toxics, and the empty one for `disable`; none: it is enabled."""


class EmbeddedToxics:
    """Satisfies `network.engine.ToxicEngine`.

    A proxy's name is that of an upstream, which means the taps of it in all attached slots; `w1:db` means the tap of
    slot `w1` alone; or it is one that `proxy` made. Toxics on `db` and on `w1:db` add up.
    """

    def __init__(self, seeds: Seeds) -> None:
        self._seeds = seeds
        self._slots: list[Slot] = []
        self._own: dict[str, Slot] = {}
        self._states: dict[str, _State] = {}

    @property
    def describe(self) -> str:
        return f"embedded in the tap, seed {self._seeds.seed}"

    async def start(self) -> None:
        """Nothing is needed."""

    # Where it acts

    async def attach(self, slot: Slot) -> None:
        """Acts on the taps that `slot` has now, at once with what is active."""
        self._slots.append(slot)
        for listener in slot.listeners.values():
            for name in _names(listener):
                state = self._states.setdefault(name, _State())
                for toxic_name, toxic in state.toxics.items():
                    self._put(listener, name, toxic_name, toxic)
            await self._settle(listener)

    async def detach(self, slot: Slot) -> None:
        """Heals the taps of `slot` and leaves them alone from now on. Nothing happens when it is not attached."""
        if slot not in self._slots:
            return
        self._slots.remove(slot)
        for listener in slot.listeners.values():
            for name in _names(listener):
                for toxic_name in self._states[name].toxics:
                    listener.toxics.remove(_inner(name, toxic_name), listener.links)
            await _bring_up(listener)

    async def proxy(self, name: str, upstream_host: str, upstream_port: int) -> tuple[str, int]:
        """A tap of our own in front of a server. Raises UsageError for a taken name, ServiceError without a port."""
        self.place(name, ("127.0.0.1", 0), (upstream_host, upstream_port))
        try:
            return await self.open(name)
        except OSError as error:
            await self.drop(name)
            raise ServiceError(f"cannot listen on 127.0.0.1 for the proxy {name}: {error}") from None

    def place(self, name: str, listen: tuple[str, int], upstream: tuple[str, int]) -> None:
        """A new proxy of our own that does not listen yet. Raises UsageError for a name that is taken."""
        if name in self._states:
            raise UsageError(f"expected a new name for a proxy, and there is a {name!r} already")
        slot = Slot(name, _Unrecorded(), listen[0])
        slot.listeners[name] = listener = Listener(slot, name, upstream, OpaqueDecoder, None)
        listener.port, listener.down = listen[1], True
        self._own[name] = slot
        self._states[name] = _State(down={""})

    async def open(self, name: str) -> tuple[str, int]:
        """Makes a proxy of our own listen; gives where. Raises OSError when it cannot, and it stays as it was."""
        slot, state = self._own[name], self._states[name]
        if state.down <= {""}:
            await slot.listeners[name].bring_up()
        state.down.discard("")
        return slot.host, slot.listeners[name].port

    def aim(self, name: str, listen: tuple[str, int], upstream: tuple[str, int]) -> None:
        """Gives a proxy of our own, while it does not listen, other addresses."""
        slot = self._own[name]
        slot.host, slot.listeners[name].port = listen
        slot.listeners[name].target = upstream

    async def drop(self, name: str) -> None:
        """Gives up a proxy of our own and cuts its connections."""
        await self._own.pop(name).close()
        del self._states[name]

    # The toxics

    async def add(self, proxy: str, toxic: Toxic, *, name: str = "") -> str:
        """Adds a toxic and gives its name. Raises UsageError for an unknown proxy or a name that is taken."""
        state = self._state(proxy)
        name = name or toxic.default_name
        if name in state.toxics or name in state.down:
            raise UsageError(f"{proxy}: expected a new name for a toxic, and there is a {name!r} already")
        if isinstance(toxic, Down):
            state.down.add(name)
            await self._settle_all(proxy)
        else:
            state.toxics[name] = toxic
            for listener in self._listeners(proxy):
                self._put(listener, proxy, name, toxic)
        return name

    async def change(self, proxy: str, name: str, toxic: Toxic) -> None:
        """Other settings for a toxic that acts; it keeps its place, and what it held is handed on.

        Raises UsageError when there is none of that name.
        """
        state = self._state(proxy)
        if name not in state.toxics:
            raise UsageError(f"{proxy}: expected the name of a toxic that acts, got {name!r}")
        state.toxics[name] = toxic
        for listener in self._listeners(proxy):
            chances = self._chances("toxic", proxy, name, listener.slot.name)
            listener.toxics.change(_inner(proxy, name), toxic, chances, list(listener.links), _loop())

    async def remove(self, proxy: str, name: str) -> None:
        """Removes a toxic; what it held is handed on. Raises UsageError when there is none of that name."""
        state = self._state(proxy)
        if name in state.down:
            state.down.discard(name)
            await self._settle_all(proxy)
        elif state.toxics.pop(name, None) is not None:
            for listener in self._listeners(proxy):
                listener.toxics.remove(_inner(proxy, name), listener.links)
        else:
            there = ", ".join([*state.toxics, *sorted(state.down)]) or "none"
            raise UsageError(f"{proxy}: expected the name of a toxic that acts ({there}), got {name!r}")

    async def disable(self, proxy: str) -> None:
        """Refuses connections and cuts those that exist. More calls do nothing."""
        self._state(proxy).down.add("")
        await self._settle_all(proxy)

    async def enable(self, proxy: str) -> None:
        """Takes back `disable`; a `Down` that acts goes on. More calls do nothing."""
        self._state(proxy).down.discard("")
        await self._settle_all(proxy)

    async def reset(self) -> None:
        """Heals everything. All of it is tried; raises the first ServiceError, of a port that was taken meanwhile."""
        failed: list[ServiceError] = []
        for proxy, state in list(self._states.items()):
            for name in list(state.toxics):
                await self.remove(proxy, name)
            state.down.clear()
            try:
                await self._settle_all(proxy)
            except ServiceError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    async def close(self) -> None:
        """Heals what is attached, and closes the proxies of its own. More calls do nothing."""
        for slot in list(self._slots):
            await self.detach(slot)
        for slot in self._own.values():
            await slot.close()
        self._own.clear()
        self._states.clear()

    # Inside

    def _state(self, proxy: str) -> _State:
        if (state := self._states.get(proxy)) is None:
            known = ", ".join(sorted(self._states)) or "none"
            raise UsageError(f"expected a proxy that is there ({known}), got {proxy!r}")
        return state

    def _listeners(self, proxy: str) -> list[Listener]:
        slots = [self._own[proxy]] if proxy in self._own else self._slots
        return [one for slot in slots for one in slot.listeners.values() if proxy in _names(one)]

    def _put(self, listener: Listener, proxy: str, name: str, toxic: Toxic) -> None:
        chances = self._chances("toxic", proxy, name, listener.slot.name)
        listener.toxics.add(_inner(proxy, name), toxic, chances, list(listener.links), _loop())

    def _chances(self, *name: str) -> Callable[[int], Chance]:
        # Each connection has a stream of its own, so that the draws do not depend on how connections interleave.
        return lambda ordinal: self._seeds.stream(*name, ordinal)

    async def _settle_all(self, proxy: str) -> None:
        for listener in self._listeners(proxy):
            await self._settle(listener)

    async def _settle(self, listener: Listener) -> None:
        down = any(self._states[name].down for name in _names(listener) if name in self._states)
        if down and not listener.down:
            await listener.take_down()
        elif not down:
            await _bring_up(listener)


def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def _names(listener: Listener) -> tuple[str, str]:
    """The proxies that a listener belongs to."""
    return listener.upstream, f"{listener.slot.name}:{listener.upstream}"


def _inner(proxy: str, name: str) -> str:
    """A toxic's name on its listener, where those of two proxies meet."""
    return f"{proxy}/{name}"


async def _bring_up(listener: Listener) -> None:
    try:
        await listener.bring_up()
    except OSError as error:
        raise ServiceError(
            f"{listener.upstream}: expected port {listener.port} to be free again, and it was taken meanwhile: {error}"
        ) from None


class _Unrecorded(Trace):
    """Keeps nothing of what passes: a proxy of our own is not part of a history."""

    def __init__(self) -> None:
        super().__init__(REAL)

    def add(self, worker: str, upstream: str, link: Link, way: str, unit: Unit) -> Sight:
        return Sight(0, 0.0, worker, upstream, link, way, unit)
