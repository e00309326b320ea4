"""A Toxiproxy of our own, for clients of any language: the embedded engine behind Toxiproxy's HTTP API."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from ..errors import UsageError
from ..network.api import VERSION, Api
from ..network.api_json import BadBody
from ..network.api_server import ApiServer
from ..network.api_values import Refused
from ..seeds import Seeds
from ..tap.toxic_engine import EmbeddedToxics


async def serve(host: str, port: int, config: Path | None, seed: int, say: Callable[[str], None]) -> None:
    """Answers until SIGINT or SIGTERM. `config` names proxies, as Toxiproxy's `-config` does; `say` gets a line for
    each thing that listens. Raises UsageError for a config that is wrong, ServiceError where it cannot listen."""
    engine = EmbeddedToxics(Seeds(seed))
    server = ApiServer(Api(engine))
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    try:
        proxies = await _populated(server.api, config) if config is not None else []
        await server.start(host, port)
        say(f"http://{server.host}:{server.port} answers as Toxiproxy {VERSION}; {engine.describe}")
        for line in proxies:
            say(line)
        await over.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        await server.stop()
        await engine.close()


async def _populated(api: Api, config: Path) -> list[str]:
    try:
        return await api.populate(config.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read the config {config}: {error.strerror}") from None
    except (Refused, BadBody) as error:
        raise UsageError(
            f"{config}: {error}", hint='it is a list such as [{"name": "db", "listen": "127.0.0.1:0", "upstream": ...}]'
        ) from None
