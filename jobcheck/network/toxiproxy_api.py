"""Toxiproxy's HTTP API by `toxiproxy-python`, for more than one server in a process. Blocking: call it in a thread.

The library keeps host and port as attributes of one class, and its `Toxiproxy` and `Proxy` use that very class. So
each server gets a subclass of it, and what `Proxy` would do is asked of the API directly: another user of the library
in this process (the tests of the app, say) is not disturbed. The library also knows no time limits and takes a 500 for
success; both are mended here.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import ServiceError

WITHIN = 30.0
"""Seconds for one answer; removing a toxic that waits for its time can take long."""
NO_PROXY = {"http": None, "https": None, "all": None}
"""The developer's HTTP_PROXY is for other hosts."""


class ToxiproxyApi:
    """One server's API. Every call raises ServiceError when it cannot be reached or refuses."""

    def __init__(self, host: str, port: int) -> None:
        try:
            from toxiproxy.api import APIConsumer
            from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists
        except ImportError as error:
            raise ServiceError(
                f"expected the package toxiproxy-python to drive a Toxiproxy server, and cannot import it: {error}",
                hint="pip install 'jobcheck[toxiproxy]'",
            ) from None
        self.base = f"http://{host}:{port}"
        self._consumer = type("Consumer", (APIConsumer,), {"host": host, "port": port})
        self._refusals: tuple[type[Exception], ...] = (InvalidToxic, NotFound, ProxyExists)

    def version(self) -> str:
        """As the server says it: `2.12.0`; `git` when it was built without one."""
        answer = self._call("get", "/version")
        return str(answer["version"]) if isinstance(answer, dict) and "version" in answer else str(answer)

    def proxies(self) -> list[str]:
        """The names of all proxies, other people's too."""
        answer = self._call("get", "/proxies")
        return list(answer) if isinstance(answer, dict) else []

    def create(self, name: str, upstream: str) -> tuple[str, int]:
        """A new proxy on a free port; gives the address that it listens on."""
        body = {"name": name, "listen": "127.0.0.1:0", "upstream": upstream, "enabled": True}
        answer = self._call("post", "/proxies", body)
        host, _, port = str(answer["listen"]).rpartition(":")
        return host, int(port)

    def delete(self, name: str) -> None:
        """Closes a proxy and its connections."""
        self._call("delete", f"/proxies/{name}")

    def enable(self, name: str, on: bool) -> None:
        """Makes a proxy listen, or closes it and its connections."""
        self._call("post", f"/proxies/{name}", {"enabled": on})

    def add(self, proxy: str, body: dict[str, object]) -> None:
        """Adds a toxic, as `faults.toxics.to_json` describes it."""
        self._call("post", f"/proxies/{proxy}/toxics", body)

    def remove(self, proxy: str, toxic: str) -> None:
        """Removes a toxic."""
        self._call("delete", f"/proxies/{proxy}/toxics/{toxic}")

    def _call(self, method: str, path: str, body: dict[str, object] | None = None) -> Any:
        sent = {} if body is None else {"json": body}
        try:
            response = getattr(self._consumer, method)(path, timeout=WITHIN, proxies=NO_PROXY, **sent)
        except self._refusals as error:
            raise ServiceError(f"toxiproxy at {self.base} refused {method} {path}: {_said(error.args[0])}") from None
        except OSError as error:  # what requests raises is one
            raise ServiceError(
                f"expected toxiproxy at {self.base} to answer {method} {path}: {' '.join(str(error).split())}"
            ) from None
        if response.status_code >= 400:
            said = f"{response.status_code} {_said(response.content)}"
            raise ServiceError(f"toxiproxy at {self.base} refused {method} {path}: {said}")
        return _parsed(response.content)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content) if content.strip() else None
    except ValueError:
        return content.decode(errors="replace").strip()


def _said(content: object) -> str:
    """The error's text in the server's answer."""
    answer = _parsed(content) if isinstance(content, bytes) else content
    return str(answer.get("error", answer)) if isinstance(answer, dict) else str(answer)
