"""Toxiproxy's HTTP API over a toxic engine of our own: what each request does, and what it is answered.

Sans I/O but for the engine: `Api.answer` is given a request and gives an answer. Statuses, bodies and error texts are
those of toxiproxy-server 2.12.0; one suite is run on both (tests/conformance/test_toxiproxy_api.py). On purpose:

* a proxy without a host (`:8080`) listens on this machine only, and Toxiproxy's on all of its addresses;
* values that would have no meaning (a slicer for pieces of 0 bytes, which ends Toxiproxy's server) act as the nearest
  ones that have, and are shown as they were given.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import unquote

from ..errors import ServiceError
from ..faults.toxics import Toxic
from . import api_answers, api_json
from .api_answers import Answer
from .api_json import BadBody
from .api_values import (
    NOOP,
    POPULATED,
    STRUCTS,
    Address,
    ApiProxy,
    ApiToxic,
    Refused,
    attributes_of,
    check_needed,
    listen_address,
    listen_error,
    proxy_of,
    upstream_address,
    values_of,
)

VERSION = "2.12.0"
"""Whose API this is."""


class Engine(Protocol):
    """What is needed of `tap.toxic_engine.EmbeddedToxics`."""

    def place(self, name: str, listen: Address, upstream: Address) -> None:
        """A new proxy that does not listen yet."""
        ...

    async def open(self, name: str) -> Address:
        """Makes it listen; gives where. Raises OSError."""
        ...

    async def disable(self, proxy: str) -> None: ...
    async def enable(self, proxy: str) -> None: ...
    def aim(self, name: str, listen: Address, upstream: Address) -> None:
        """Other addresses for a proxy that does not listen."""
        ...

    async def drop(self, name: str) -> None: ...
    async def add(self, proxy: str, toxic: Toxic, *, name: str = "") -> str: ...
    async def change(self, proxy: str, name: str, toxic: Toxic) -> None: ...
    async def remove(self, proxy: str, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Changed:
    """One thing that a client of the API has done to the network."""

    proxy: str
    name: str
    """The toxic's; empty: the proxy itself was disabled."""
    what: str
    """For people: `latency latency=200 jitter=0 downstream`, `disabled`."""
    acts: bool
    """It acts from now on; else it is over."""


def nobody(change: Changed) -> None:
    """Where nobody wants to know."""


NO_PROXY = (404, "proxy not found")
NO_TOXIC = (404, "toxic not found")


class Api:
    """The proxies of one engine, as the API shows them. One request at a time."""

    def __init__(self, engine: Engine, changed: Callable[[Changed], None] = nobody) -> None:
        self._engine = engine
        self._proxies: dict[str, ApiProxy] = {}
        self.changed = changed
        """Hears of every change, after it was made."""
        self.over = ""
        """Why nothing may be spoilt any more; empty: it may."""

    def adopt(self, name: str, listen: Address, upstream: Address) -> None:
        """Shows a tap that somebody else made, and which the engine acts on under this name, as a proxy.

        It can be disabled and given toxics; its addresses stay as they are, and it cannot be deleted.
        """
        if name not in self._proxies:
            self._proxies[name] = ApiProxy(name, _shown(*listen), _shown(*upstream), enabled=True, tap=True)

    async def heal(self, over: str = "") -> None:
        """Takes off every toxic and has every proxy listen; `over` is what later changes are answered.

        Raises ServiceError for a port that was taken meanwhile.
        """
        self.over = over
        try:
            await self._reset()
        except Refused as error:
            raise ServiceError(f"a proxy could not listen again: {error.message}") from None

    async def answer(self, method: str, target: str, body: bytes, agent: str = "") -> Answer:
        """What to say to one request; `agent` is the caller's User-Agent."""
        path = target.partition("?")[0]
        if "//" in path:
            while "//" in path:
                path = path.replace("//", "/")
            return Answer(301, location=path, routed=False)
        parts = unquote(path).split("/")[1:]
        methods = api_answers.methods(parts)
        if not methods:
            return Answer(404, b"404 page not found\n", "text/plain; charset=utf-8", routed=False)
        if method not in methods:
            return Answer(405, routed=False)
        if agent.startswith("Mozilla/"):
            return Answer(403, b"User agent not allowed\n", "text/plain; charset=utf-8")
        try:
            return await self._carry_out(method, parts, body)
        except BadBody as error:
            return api_answers.as_error(400, f"bad request body: {error}")
        except Refused as error:
            return api_answers.as_error(error.status, error.message)

    async def populate(self, body: bytes) -> list[str]:
        """What `-config` names: the body of POST /populate; gives what listens now. Raises Refused."""
        answer = await self._populate(body)
        told = json.loads(answer.body)
        if answer.status != 201:
            raise Refused(answer.status, told["error"])
        return [f"{one['name']} {one['listen']} -> {one['upstream']}" for one in told["proxies"] or ()]

    async def _carry_out(self, method: str, parts: list[str], body: bytes) -> Answer:
        if parts == ["version"]:
            shown = json.dumps({"version": VERSION}).encode() + b"\n"
            return Answer(200, shown, "application/json;charset=utf-8")
        if self.over and method in ("POST", "PATCH") and parts != ["reset"]:
            raise Refused(409, self.over)
        if parts == ["reset"]:
            return await self._reset()
        if parts == ["populate"]:
            return await self._populate(body)
        if len(parts) == 1:
            if method == "GET":
                return api_answers.as_json(200, {name: self._proxies[name].shown() for name in sorted(self._proxies)})
            return await self._create(body)
        proxy = self._found(parts[1])
        if len(parts) == 2:
            return await self._on_proxy(method, proxy, body)
        if len(parts) == 3:
            return api_answers.as_json(200, proxy.ordered()) if method == "GET" else await self._add(proxy, body)
        toxic = next((one for one in proxy.toxics if one.name == parts[3]), None)
        if toxic is None:
            raise Refused(*NO_TOXIC)
        return await self._on_toxic(method, proxy, toxic, body)

    def _found(self, name: str) -> ApiProxy:
        if (proxy := self._proxies.get(name)) is None:
            raise Refused(*NO_PROXY)
        return proxy

    # Proxies

    async def _create(self, body: bytes) -> Answer:
        proxy, enabled = proxy_of(api_json.fields(api_json.read(body), "toxiproxy.Proxy"), "Proxy")
        check_needed(proxy)
        if proxy.name in self._proxies:
            raise Refused(409, "proxy already exists")
        await self._begin(proxy, enabled)
        return api_answers.as_json(201, proxy.shown())

    async def _begin(self, proxy: ApiProxy, enabled: bool) -> None:
        """Enters a proxy. Raises Refused when it cannot listen, and then there is none."""
        self._engine.place(proxy.name, listen_address(""), upstream_address(proxy.upstream))
        self._proxies[proxy.name] = proxy
        if enabled:
            try:
                await self._open(proxy)
            except Refused:
                await self._forget(proxy)
                raise

    async def _open(self, proxy: ApiProxy) -> None:
        if proxy.tap:
            try:
                await self._engine.enable(proxy.name)
            except ServiceError as error:
                raise Refused(500, error.message) from None
            proxy.enabled = True
            self.changed(Changed(proxy.name, "", "disabled", acts=False))
            return
        listen, upstream = listen_address(proxy.listen), upstream_address(proxy.upstream)
        self._engine.aim(proxy.name, listen, upstream)
        try:
            host, port = await self._engine.open(proxy.name)
        except (OSError, ValueError) as error:  # the latter for a host that is no name
            raise Refused(500, listen_error(proxy.listen, error)) from None
        proxy.listen = _shown(host, port)
        proxy.enabled = True

    async def _stop(self, proxy: ApiProxy) -> None:
        was = proxy.enabled
        await self._engine.disable(proxy.name)
        proxy.enabled = False
        if was and proxy.tap:
            self.changed(Changed(proxy.name, "", "disabled", acts=True))

    async def _forget(self, proxy: ApiProxy) -> None:
        if proxy.tap:
            raise Refused(403, f"{proxy.name} is a tap of a jobcheck run and stays as long as it; it can be disabled")
        self._proxies.pop(proxy.name, None)
        await self._engine.drop(proxy.name)

    async def _on_proxy(self, method: str, proxy: ApiProxy, body: bytes) -> Answer:
        if method == "DELETE":
            await self._forget(proxy)
            return Answer(204)
        if method != "GET":
            wanted, enabled = proxy_of(api_json.fields(api_json.read(body), "toxiproxy.Proxy"), "Proxy", proxy)
            if wanted.listen != proxy.listen:
                listen_address(wanted.listen, lead="")
            if (wanted.listen, wanted.upstream) != (proxy.listen, proxy.upstream):
                if proxy.tap:
                    raise Refused(403, f"{proxy.name} is a tap of a jobcheck run: its addresses stay as they are")
                await self._stop(proxy)
                proxy.listen, proxy.upstream = wanted.listen, wanted.upstream
            if enabled and not proxy.enabled:
                await self._open(proxy)
            elif not enabled:
                await self._stop(proxy)
        return api_answers.as_json(200, proxy.shown())

    async def _reset(self) -> Answer:
        """All toxics are gone, and every proxy listens. All of it is tried."""
        failed: Refused | None = None
        for proxy in self._proxies.values():
            for toxic in list(proxy.toxics):
                await self._take_off(proxy, toxic)
            try:
                if not proxy.enabled:
                    await self._open(proxy)
            except Refused as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return Answer(204)

    async def _populate(self, body: bytes) -> Answer:
        """Makes proxies, or takes those that are there and differ anew. What was made stays when one fails."""
        made: list[ApiProxy] = []
        try:
            for proxy, enabled in self._wanted(body):
                existing = self._proxies.get(proxy.name)
                if existing is not None and (
                    existing.tap or (existing.listen, existing.upstream) == (proxy.listen, proxy.upstream)
                ):
                    # A suite that populates before its tests names servers of its own; a tap is where the run has it.
                    proxy = existing
                    if enabled and not proxy.enabled:
                        await self._open(proxy)
                else:
                    if existing is not None:
                        await self._forget(existing)
                        existing.enabled = False
                    await self._begin(proxy, enabled)
                made.append(proxy)
        except (BadBody, Refused) as error:
            status = error.status if isinstance(error, Refused) else 400
            message = error.message if isinstance(error, Refused) else f"bad request body: {error}"
            return api_answers.as_json(
                status, {"error": message, "status": status, "proxies": api_answers.all_of(made)}
            )
        return api_answers.as_json(201, {"proxies": api_answers.all_of(made)})

    def _wanted(self, body: bytes) -> list[tuple[ApiProxy, bool]]:
        value = api_json.read(body)
        if value is None:
            return []
        if not isinstance(value, list):
            api_json.fields("" if isinstance(value, str) else value, f"[]{POPULATED}")
            raise BadBody(f"json: cannot unmarshal object into Go value of type []{POPULATED}")
        wanted = []
        for item in value:
            wanted.append(proxy_of(api_json.fields(item, POPULATED), ""))
        for place, (proxy, _) in enumerate(wanted, 1):
            check_needed(proxy, f" at proxy {place}")
        return wanted

    # Toxics

    async def _add(self, proxy: ApiProxy, body: bytes) -> Answer:
        given = api_json.fields(api_json.read(body), "toxics.ToxicWrapper")
        where = "ToxicWrapper"
        kind = api_json.text(given, "type", "", where)
        stream = api_json.text(given, "stream", "downstream", where)
        name = api_json.text(given, "name", "", where)
        toxicity = api_json.number(given, "toxicity", 1.0, where)
        attributes = attributes_of(given)
        if stream.lower() not in ("upstream", "downstream"):
            raise Refused(400, "stream was invalid, can be either upstream or downstream")
        if kind not in STRUCTS:
            raise Refused(400, "invalid toxic type")
        name = name or f"{kind}_{stream}"
        if any(one.name == name for one in proxy.toxics):
            raise Refused(409, "toxic already exists")
        toxic = ApiToxic(name, kind, stream, toxicity, values_of(kind, attributes, {}))
        if (acting := toxic.acting()) is not None:
            await self._engine.add(proxy.name, acting, name=_inner(proxy, name))
        proxy.toxics.append(toxic)
        if acting is not None:
            self.changed(Changed(proxy.name, name, acting.text, acts=True))
        return api_answers.as_json(200, toxic.shown())

    async def _on_toxic(self, method: str, proxy: ApiProxy, toxic: ApiToxic, body: bytes) -> Answer:
        if method == "DELETE":
            await self._take_off(proxy, toxic)
            return Answer(204)
        if method != "GET":
            given = api_json.fields(api_json.read(body), "toxics.ToxicWrapper")
            attributes = values_of(toxic.kind, attributes_of(given), toxic.attributes)
            toxic.toxicity = api_json.number(given, "toxicity", toxic.toxicity, "")
            toxic.attributes = attributes
            if (acting := toxic.acting()) is not None:
                await self._engine.change(proxy.name, _inner(proxy, toxic.name), acting)
                self.changed(Changed(proxy.name, toxic.name, acting.text, acts=True))
        return api_answers.as_json(200, toxic.shown())

    async def _take_off(self, proxy: ApiProxy, toxic: ApiToxic) -> None:
        proxy.toxics.remove(toxic)
        if toxic.kind != NOOP:
            await self._engine.remove(proxy.name, _inner(proxy, toxic.name))
            self.changed(Changed(proxy.name, toxic.name, toxic.kind, acts=False))


def _inner(proxy: ApiProxy, name: str) -> str:
    """A toxic's name in the engine: on a tap those of the run's own plan act too, under names that it chose."""
    return f"by hand: {name}" if proxy.tap else name


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
