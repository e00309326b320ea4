"""`jobcheck toxiproxy`: a stand-in for toxiproxy-server, for clients of any language."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import EXIT_OK


@click.command("toxiproxy")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the API listens.")
@click.option("--port", default=8474, show_default=True, type=click.IntRange(0, 65535), help="0: a free one.")
@click.option("--config", type=click.Path(path_type=Path), help="Proxies to begin with: the JSON of POST /populate.")
@click.option("--seed", type=int, help="Of jitter, slices and toxicity.")
def command(host: str, port: int, config: Path | None, seed: int | None) -> int:
    """Answer Toxiproxy's HTTP API, with no toxiproxy-server on this machine.

    Toxiproxy's clients work with it as they are. It ends with Ctrl-C or SIGTERM.
    """
    import asyncio

    from ..runner.toxiproxy import serve
    from ..seeds import fresh_seed

    asyncio.run(serve(host, port, config, fresh_seed() if seed is None else seed, click.echo))
    return EXIT_OK
