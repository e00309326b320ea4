"""The one interface of the two engines that make a network bad.

* `toxiproxy.ToxiproxyEngine` drives a real Toxiproxy server.
* `tap.toxic_engine.EmbeddedToxics` is built into the tap: no server, every random choice from the run's seed, and it
  can act on the taps that a worker has already.

Both are held to one conformance suite. They differ on purpose in this (Toxiproxy as measured, 2.12.0):

* Toxiproxy ends both directions of a connection when one ends; the tap keeps the other one open, as TCP does.
* Toxiproxy resets only connections that are newer than their `reset_peer`; older ones it closes. The tap resets both.
* Removing a `timeout` closes every connection in Toxiproxy, also those that its toxicity spared; in the tap only those
  that it acted on.
* Toxiproxy draws toxicity again whenever the toxic behind it changes; the tap draws once per connection.
* Removing a toxic whose data the next one does not take within 5 s loses that data in Toxiproxy (a reset removes the
  last one first, and loses nothing).
* Toxiproxy's server is not seeded by us: jitter, slices and toxicity differ from run to run.
"""

from __future__ import annotations

from typing import Protocol

from ..faults.toxics import Toxic


class ToxicEngine(Protocol):
    """Puts toxics between clients and servers. Proxies are known by name; each has toxics, known by name."""

    @property
    def describe(self) -> str:
        """Which engine and version, for people: `toxiproxy-server 2.12.0 (/usr/local/bin/toxiproxy-server)`."""
        ...

    async def start(self) -> None:
        """Makes the engine ready. Raises ServiceError when it cannot be had."""
        ...

    async def proxy(self, name: str, upstream_host: str, upstream_port: int) -> tuple[str, int]:
        """A new proxy in front of a server; gives the address that clients use.

        Raises UsageError when the name is taken.
        """
        ...

    async def add(self, proxy: str, toxic: Toxic, *, name: str = "") -> str:
        """Adds a toxic, to connections that exist and to those to come; gives its name (Toxiproxy's default for none).

        `Down` disables the proxy. Raises UsageError for an unknown proxy or a name that is taken.
        """
        ...

    async def remove(self, proxy: str, name: str) -> None:
        """Removes a toxic: what it held is handed on, in order. Raises UsageError when there is none of that name."""
        ...

    async def disable(self, proxy: str) -> None:
        """Refuses connections, and cuts those that exist. More calls do nothing."""
        ...

    async def enable(self, proxy: str) -> None:
        """Takes back `disable`: connections are accepted again, at the same address, unless a `Down` acts too.

        More calls do nothing.
        """
        ...

    async def reset(self) -> None:
        """Heals everything of this engine's: no toxic is left, every proxy is enabled."""
        ...

    async def close(self) -> None:
        """Heals everything and gives up all proxies. More calls do nothing."""
        ...
