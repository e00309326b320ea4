"""The toxic engine that drives a real Toxiproxy server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from ..errors import ServiceError, UsageError
from ..faults.toxics import Down, Toxic, to_json
from ..seeds import token
from .toxiproxy_api import ToxiproxyApi
from .toxiproxy_server import GET_IT, PROGRAM, P, Starter, find_server, given, last_lines, launch

T = TypeVar("T")


@dataclass(slots=True)
class _Proxy:
    """One proxy of ours."""

    server_name: str
    address: tuple[str, int]
    toxics: dict[str, str] = field(default_factory=dict)
    """Our name -> the server's name."""
    down: set[str] = field(default_factory=set)
    """Why it is down: names of toxics, and the empty one for `disable`; none: it is enabled."""
    enabled: bool = True
    """What the server was told."""


class ToxiproxyEngine(Generic[P]):
    """Satisfies `network.engine.ToxicEngine`.

    With `url` (`http://127.0.0.1:8474`) that server is used: proxies of our own are made there, and nothing of
    anybody else's is touched. Without it, `starter` (the run's supervisor) starts `program`, or the one found on PATH.
    """

    def __init__(self, starter: Starter[P] | None = None, *, url: str = "", program: Path | None = None) -> None:
        self._starter = starter
        self._url = url
        self._program = program
        self._api: ToxiproxyApi | None = None
        self._process: P | None = None
        self._version = ""
        self._origin = ""
        self._prefix = ""
        self._proxies: dict[str, _Proxy] = {}
        self._named = 0

    @property
    def describe(self) -> str:
        return f"{PROGRAM} {self._version} ({self._origin})" if self._version else f"{PROGRAM} (not started)"

    async def start(self) -> None:
        """Finds or starts the server. Raises ServiceError, and UsageError for a url that cannot be used."""
        if self._api is not None:
            return
        if self._url:
            self._api = given(self._url)
            self._origin = f"given: {self._url}"
            self._prefix = f"jobcheck-{token()}-"
        else:
            self._process, self._api = await launch(self._starter, self._program)
            self._origin = f"found: {self._program or find_server()}"
        self._version = await self._ask(self._api.version)
        if self._version.startswith(("0.", "1.")):
            raise ServiceError(f"expected Toxiproxy 2 or later, got {self._version} ({self._origin})", hint=GET_IT)

    async def proxy(self, name: str, upstream_host: str, upstream_port: int) -> tuple[str, int]:
        """A new proxy. Raises UsageError for a taken name, ServiceError when the server refuses."""
        if name in self._proxies:
            raise UsageError(f"expected a new name for a proxy, and there is a {name!r} already")
        api, server_name = self._running(), self._server_name(name)
        address = await self._ask(lambda: api.create(server_name, f"{upstream_host}:{upstream_port}"))
        self._proxies[name] = _Proxy(server_name, address)
        return address

    async def add(self, proxy: str, toxic: Toxic, *, name: str = "") -> str:
        """Adds a toxic and gives its name. Raises UsageError for an unknown proxy or a name that is taken."""
        found = self._found(proxy)
        name = name or toxic.default_name
        if name in found.toxics or name in found.down:
            raise UsageError(f"{proxy}: expected a new name for a toxic, and there is a {name!r} already")
        if isinstance(toxic, Down):
            found.down.add(name)
            await self._settle(found)
        else:
            api, server_name = self._running(), self._server_name(name)
            await self._ask(lambda: api.add(found.server_name, to_json(toxic, server_name)))
            found.toxics[name] = server_name
        return name

    async def remove(self, proxy: str, name: str) -> None:
        """Removes a toxic; what it held is handed on. Raises UsageError when there is none of that name."""
        found = self._found(proxy)
        if name in found.down:
            found.down.discard(name)
            await self._settle(found)
        elif name in found.toxics:
            await self._take_off(found, name)
        else:
            there = ", ".join([*found.toxics, *sorted(found.down)]) or "none"
            raise UsageError(f"{proxy}: expected the name of a toxic that acts ({there}), got {name!r}")

    async def disable(self, proxy: str) -> None:
        """Refuses connections and cuts those that exist. More calls do nothing."""
        found = self._found(proxy)
        found.down.add("")
        await self._settle(found)

    async def enable(self, proxy: str) -> None:
        """Takes back `disable`; a `Down` that acts goes on. More calls do nothing."""
        found = self._found(proxy)
        found.down.discard("")
        await self._settle(found)

    async def reset(self) -> None:
        """Heals all proxies of ours. All of it is tried; raises the first ServiceError."""
        failed: list[ServiceError] = []
        for found in list(self._proxies.values()):
            # The last one first: Toxiproxy throws away what a removed toxic cannot hand on to the next within 5 s.
            for name in reversed(list(found.toxics)):
                try:
                    await self._take_off(found, name)
                except ServiceError as error:
                    failed.append(error)
            found.down.clear()
            try:
                await self._settle(found)
            except ServiceError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    async def close(self) -> None:
        """Gives up all proxies, and ends the server if it is ours. More calls do nothing."""
        api, self._api = self._api, None
        proxies, self._proxies = self._proxies, {}
        process, self._process = self._process, None
        if process is not None and self._starter is not None:
            await self._starter.forget(process)
        elif api is not None:
            for found in proxies.values():
                await asyncio.to_thread(api.delete, found.server_name)

    # Inside

    async def _take_off(self, found: _Proxy, name: str) -> None:
        api, server_name = self._running(), found.toxics[name]
        await self._ask(lambda: api.remove(found.server_name, server_name))
        del found.toxics[name]

    async def _settle(self, found: _Proxy) -> None:
        api, wanted = self._running(), not found.down
        if wanted is not found.enabled:
            await self._ask(lambda: api.enable(found.server_name, wanted))
            found.enabled = wanted

    async def _ask(self, call: Callable[[], T]) -> T:
        """The library blocks, so it is called in a thread."""
        try:
            return await asyncio.to_thread(call)
        except ServiceError as error:
            if self._process is None or self._process.alive:
                raise
            raise ServiceError(
                f"{PROGRAM} ({self._origin}) {self._process.how_it_ended()} during the run; {last_lines(self._process)}"
            ) from error

    def _running(self) -> ToxiproxyApi:
        if self._api is None:
            raise ServiceError(f"expected {PROGRAM} to be started before it is used")
        return self._api

    def _found(self, proxy: str) -> _Proxy:
        if (found := self._proxies.get(proxy)) is None:
            known = ", ".join(sorted(self._proxies)) or "none"
            raise UsageError(f"expected a proxy that is there ({known}), got {proxy!r}")
        return found

    def _server_name(self, name: str) -> str:
        """A name that fits into a URL and that no other has."""
        self._named += 1
        return f"{self._prefix}{self._named}-{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}"
