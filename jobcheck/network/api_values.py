"""What the HTTP API shows: proxies and toxics as values, read from bodies in Toxiproxy's way."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..faults.toxics import TOXICS, Toxic, fields_of
from . import api_json
from .api_json import BadBody

NOOP = "noop"
STRUCTS = {
    "latency": "LatencyToxic",
    "timeout": "TimeoutToxic",
    "bandwidth": "BandwidthToxic",
    "slicer": "SlicerToxic",
    "slow_close": "SlowCloseToxic",
    "reset_peer": "ResetToxic",
    "limit_data": "LimitDataToxic",
    NOOP: "NoopToxic",
}
"""Go's name of each toxic, for error texts."""
POPULATED = 'struct { toxiproxy.Proxy; Enabled *bool "json:\\"enabled\\"" }'
"""Go's name of one item of a body for /populate."""
Address = tuple[str, int]


class Refused(Exception):
    """A request that is not carried out: status and text."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(slots=True)
class ApiToxic:
    """One toxic, with its values as they were given."""

    name: str
    kind: str
    stream: str
    toxicity: float
    attributes: dict[str, int]

    def shown(self) -> dict[str, Any]:
        """Its JSON."""
        share = int(self.toxicity) if self.toxicity == int(self.toxicity) else self.toxicity
        return {
            "attributes": self.attributes,
            "name": self.name,
            "type": self.kind,
            "stream": self.stream,
            "toxicity": share,
        }

    def acting(self) -> Toxic | None:
        """As the engine takes it; None for the one that does nothing."""
        if self.kind == NOOP:
            return None
        values = {name: max(0, value) for name, value in self.attributes.items()}
        if "average_size" in values:
            values["average_size"] = max(1, values["average_size"])
            values["size_variation"] = min(values["size_variation"], values["average_size"] - 1)
        share = min(1.0, max(0.0, self.toxicity))
        made: Any = TOXICS[self.kind]
        toxic: Toxic = made(**values, stream=self.stream.lower(), toxicity=share)
        return toxic


@dataclass(slots=True)
class ApiProxy:
    """One proxy, with its addresses as they were given, or as they came out."""

    name: str
    listen: str
    upstream: str
    enabled: bool = False
    toxics: list[ApiToxic] = field(default_factory=list)
    tap: bool = False
    """Somebody else's, whose addresses stay as they are."""

    def ordered(self) -> list[dict[str, Any]]:
        """Those on the way to the server first."""
        return [one.shown() for way in ("upstream", "downstream") for one in self.toxics if one.stream.lower() == way]

    def shown(self) -> dict[str, Any]:
        """Its JSON."""
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": self.enabled,
            "Logger": {},
            "toxics": self.ordered(),
        }


def proxy_of(given: Mapping[str, Any], where: str, now: ApiProxy | None = None) -> tuple[ApiProxy, bool]:
    """The proxy that a body describes, and whether it is to listen. `now`: what is not said stays."""
    proxy = ApiProxy(
        name=api_json.text(given, "name", "", where or "Proxy"),
        listen=api_json.text(given, "listen", now.listen if now else "", where or "Proxy"),
        upstream=api_json.text(given, "upstream", now.upstream if now else "", where or "Proxy"),
    )
    return proxy, api_json.truth(given, "enabled", now.enabled if now else True, where)


def check_needed(proxy: ApiProxy, where: str = "") -> None:
    """Raises Refused where name or upstream is missing."""
    for name, value in (("name", proxy.name), ("upstream", proxy.upstream)):
        if not value:
            raise Refused(400, f"missing required field: {name}{where}")


def attributes_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as they are given. Raises BadBody."""
    value = given.get("attributes")
    if value is not None and not isinstance(value, Mapping):
        kind = "array" if isinstance(value, list) else "string" if isinstance(value, str) else "number"
        kind = "bool" if isinstance(value, bool) else kind
        raise BadBody(
            f"json: cannot unmarshal {kind} into Go struct field ToxicWrapper.attributes of type toxics.NoopToxic"
        )
    return api_json.fields(value, "")


def values_of(kind: str, given: Mapping[str, Any], now: Mapping[str, int]) -> dict[str, int]:
    """All parameters of a toxic: as given, else as they are, else 0."""
    where = f"{STRUCTS[kind]}.attributes"
    names = () if kind == NOOP else [name for name in fields_of(kind) if name not in ("stream", "toxicity")]
    return {name: api_json.whole(given, name, now.get(name, 0), where) for name in names}


def listen_address(listen: str, lead: str = "listen tcp: ") -> Address:
    """Host and port of what a proxy listens on; empty: any port of this machine. Raises Refused."""
    if not listen:
        return "127.0.0.1", 0
    host, colon, port = listen.rpartition(":")
    if not colon:
        raise Refused(500, f"{lead}address {listen}: missing port in address")
    if not _is_port(port):
        raise Refused(500, f"{lead}address {port}: invalid port")
    host = host.removeprefix("[").removesuffix("]")
    return "127.0.0.1" if host in ("", "localhost") else host, int(port)


def upstream_address(upstream: str) -> Address:
    """What a proxy connects to. What is no address is taken, too, as Toxiproxy does: nobody is there."""
    host, _, port = upstream.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    try:
        known = bool(host.encode("idna")) and host.isprintable() and _is_port(port)
    except UnicodeError:
        known = False
    return (host, int(port)) if known else ("127.0.0.1", 0)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 65536


def listen_error(listen: str, error: OSError | ValueError) -> str:
    """As Go says it."""
    words = {
        errno.EADDRINUSE: "address already in use",
        errno.EADDRNOTAVAIL: "cannot assign requested address",
        errno.EACCES: "permission denied",
    }
    if isinstance(error, OSError) and error.errno in words:
        return f"listen tcp {listen}: bind: {words[error.errno]}"
    return f"listen tcp: lookup {listen.rpartition(':')[0]}: no such host"
