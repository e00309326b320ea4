"""What the tap costs: per round trip on Redis, and on jobs per second of a real Celery worker, direct against tapped.

    python tests/benchmarks/bench_tap.py [--round-trips 2000] [--jobs 800]

The round trips are made by a client in a process of its own. Each is measured
three times in turn, and the best counts: a busy machine slows all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import head, row, say

from jobcheck import services
from jobcheck.aio import wait_until
from jobcheck.clock import REAL
from jobcheck.seeds import token
from jobcheck.services.clients import redis_client
from jobcheck.services.spec import Address, Redis
from jobcheck.tap.listener import Slot
from jobcheck.tap.sight import Trace
from jobcheck.wire.registry import decoder_for
from jobcheck.workers.env import scrubbed
from jobcheck.workers.guardian import Guardian
from jobcheck.workers.spec import ProcessSpec, ReadyLine
from jobcheck.workers.supervisor import Supervisor

ROUNDS = 3

CLIENT = """
import sys, time, redis
port, count = int(sys.argv[1]), int(sys.argv[2])
client = redis.Redis(port=port)
for _ in range(200): client.set("k", "v")
times = []
for _ in range(count):
    start = time.perf_counter(); client.set("k", "v"); times.append(time.perf_counter() - start)
times.sort()
print(times[len(times) // 2] * 1e6)
"""
APP = """
import os
from celery import Celery
app = Celery("bench", broker=os.environ["BROKER_URL"])
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=16, task_acks_late=True)

@app.task
def nothing():
    pass
"""
ENQUEUE = "import bench; [bench.nothing.delay() for _ in range({count})]"


async def round_trip(port: int, count: int) -> float:
    """Median microseconds of one SET."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, str(port), str(count), stdout=subprocess.PIPE
    )
    out, _ = await process.communicate()
    return float(out)


async def jobs_per_second(address: Address, direct: Address, count: int, supervisor: Supervisor, folder: Path) -> float:
    """A prefork worker with one child empties a queue of jobs that do nothing."""
    async with redis_client(direct) as client:
        await client.flushdb()
    env = scrubbed({"BROKER_URL": direct.url})
    enqueue = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ENQUEUE.format(count=count), cwd=folder, env=env
    )
    await enqueue.wait()
    argv = (sys.executable, "-m", "celery", "-A", "bench", "worker", "-c", "1", "--without-gossip", "--without-mingle")
    spec = ProcessSpec(
        name=f"bench-{token(4)}",
        argv=(*argv, "--without-heartbeat", "-l", "INFO"),
        env=scrubbed({"BROKER_URL": address.url, "TMPDIR": str(folder)}),
        cwd=folder,
        ready=ReadyLine("ready"),
    )
    worker = await supervisor.start(spec)
    await worker.ready()
    async with redis_client(direct) as client:
        at, left = REAL.now(), await client.llen("celery")

        async def emptied() -> bool:
            return not await client.llen("celery") and not await client.hlen("unacked")

        await wait_until(emptied, "an empty queue", deadline=120, every=0.01)
        seconds = REAL.now() - at
    await supervisor.forget(worker)
    return left / seconds


async def bench(trips: int, jobs: int) -> None:
    run = token(12)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bench.py").write_text(APP)
        guardian = Guardian.start(run)
        supervisor = Supervisor(run, folder / "logs", guardian)
        slot = Slot("bench", Trace(REAL))
        try:
            service = await services.start(
                Redis(), name="broker", supervisor=supervisor, guardian=guardian, folder=folder, environ=scrubbed({})
            )
            direct = await service.namespace("0")
            target = (direct.host, direct.port)
            recording = await slot.tap("broker", target, lambda: decoder_for("redis"))
            passing = await slot.tap("bytes", target, lambda: decoder_for("opaque"))
            ports = {"direct": direct.port, "passing bytes": passing, "decoding and recording": recording}
            best = dict.fromkeys(ports, 1e9)
            for _ in range(ROUNDS):
                for label, port in ports.items():
                    best[label] = min(best[label], await round_trip(port, trips))
                    slot.trace.begin()
            head("Redis round trip, median", "us", "added, us", "ratio")
            for label, found in best.items():
                row(label, f"{found:.0f}", f"{found - best['direct']:.0f}", f"{found / best['direct']:.2f}x")
            tapped = Address(direct.scheme, "127.0.0.1", recording, path=direct.path)
            rates = dict.fromkeys(("direct", "tapped"), 0.0)
            for _ in range(ROUNDS):
                for label, address in (("direct", direct), ("tapped", tapped)):
                    found = await jobs_per_second(address, direct, jobs, supervisor, folder)
                    rates[label] = max(rates[label], found)
                    slot.trace.begin()
            say("")
            head("Celery on Redis, empty jobs", "jobs/s", "of direct")
            for label, found in rates.items():
                row(label, f"{found:.0f}", f"{found / rates['direct'] * 100:.0f} %")
        finally:
            await slot.close()
            await supervisor.close()
            guardian.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round-trips", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=800)
    given = parser.parse_args()
    asyncio.run(bench(given.round_trips, given.jobs))


if __name__ == "__main__":
    main()
