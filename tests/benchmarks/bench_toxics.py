"""The embedded toxic engine beside the real Toxiproxy server: throughput and added latency, as ratios.

    python tests/benchmarks/bench_toxics.py [--megabytes 200] [--rounds 3000]

Client and server are processes of their own, so that only the engine's work is compared. One run on one machine: read
magnitudes, not digits. Needs `toxiproxy-server` on PATH and the extra `toxiproxy`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jobcheck.faults.toxics import Bandwidth, Latency, Slicer, Stream, Toxic
from jobcheck.network.engine import ToxicEngine
from jobcheck.network.toxiproxy import ToxiproxyEngine
from jobcheck.seeds import Seeds, token
from jobcheck.tap.toxic_engine import EmbeddedToxics
from jobcheck.workers.supervisor import Supervisor, Worker

LOAD = Path(__file__).with_name("toxic_load.py")
TOXICS: list[tuple[str, Toxic | None]] = [
    ("no toxic", None),
    ("latency 0 ms", Latency(0, stream=Stream.UPSTREAM)),
    ("latency 5 ms", Latency(5, stream=Stream.UPSTREAM)),
    ("bandwidth 100 MB/s", Bandwidth(100_000, stream=Stream.UPSTREAM)),
    ("slicer 16 KB", Slicer(16_384, 1024, stream=Stream.UPSTREAM)),
    ("slicer 1 KB", Slicer(1024, 64, stream=Stream.UPSTREAM)),
]


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def child(*arguments: object) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, str(LOAD), *map(str, arguments), stdout=asyncio.subprocess.PIPE
    )


async def measure(port: int, rounds: int, megabytes: int) -> tuple[float, float]:
    """Microseconds for a round trip, MB/s."""
    output, _ = await (await child("load", port, rounds, megabytes)).communicate()
    trip, rate = json.loads(output)
    return trip, rate


def show(name: str, results: Sequence[tuple[float, float]], direct: tuple[float, float]) -> None:
    (own_trip, own_rate), (real_trip, real_rate) = results
    added, real_added = own_trip - direct[0], real_trip - direct[0]
    say(
        f"{name:20} | {own_rate:8.0f} {real_rate:8.0f} {own_rate / real_rate:7.2f}x"
        f" | {added:8.0f} {real_added:8.0f} {added / real_added:7.2f}x"
    )


async def compare(server_port: int, engines: Sequence[ToxicEngine], rounds: int, megabytes: int) -> None:
    ports = []
    for engine in engines:
        await engine.start()
        ports.append((await engine.proxy("bench", "127.0.0.1", server_port))[1])
    direct = await measure(server_port, rounds, megabytes)
    say(f"embedded: {engines[0].describe}; real: {engines[1].describe}")
    say(f"direct: {direct[1]:.0f} MB/s, {direct[0]:.0f} us a round trip")
    say(f"{'':20} | {'upload MB/s':^26} | {'added to a round trip, us':^26}")
    say(f"{'':20} | {'embedded':>8} {'real':>8} {'ratio':>8} | {'embedded':>8} {'real':>8} {'ratio':>8}")
    for name, toxic in TOXICS:
        results = []
        for engine, port in zip(engines, ports, strict=True):
            if toxic is not None:
                await engine.add("bench", toxic)
            slow = isinstance(toxic, Latency) and toxic.latency > 0
            results.append(await measure(port, rounds // 20 if slow else rounds, megabytes))
            await engine.reset()
        show(name, results, direct)


async def main(rounds: int, megabytes: int) -> None:
    server = await child("serve")
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        supervisor = Supervisor(f"bench-{token()}", Path(folder))
        engines: list[ToxicEngine] = [EmbeddedToxics(Seeds(1)), ToxiproxyEngine[Worker](supervisor)]
        try:
            await compare(int(await server.stdout.readline()), engines, rounds, megabytes)
        finally:
            for engine in engines:
                await engine.close()
            await supervisor.close()
            server.kill()
            await server.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3000)
    chosen = parser.parse_args()
    asyncio.run(main(chosen.rounds, chosen.megabytes))
