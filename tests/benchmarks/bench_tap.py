"""What the tap costs: per round trip on Redis, and on jobs per second of a real Celery worker, direct against tapped.

    python tests/benchmarks/bench_tap.py [--round-trips 4000] [--jobs 1500]

The round trips are made by a client in a process of its own. Ratios are within one run.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

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
        env=scrubbed({"BROKER_URL": address.url}),
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
            base = await round_trip(direct.port, trips)
            say(f"{'round trip, direct':<36} {base:8.1f} us")
            for label, port in (("bytes only", passing), ("decoding and recording", recording)):
                found = await round_trip(port, trips)
                slot.trace.begin()
                say(f"{'round trip, ' + label:<36} {found:8.1f} us  +{found - base:.1f} us  {found / base:.2f}x")
            base = await jobs_per_second(direct, direct, jobs, supervisor, folder)
            say(f"{'Celery jobs, direct':<36} {base:8.1f} /s")
            tapped = Address(direct.scheme, "127.0.0.1", recording, path=direct.path)
            found = await jobs_per_second(tapped, direct, jobs, supervisor, folder)
            say(f"{'Celery jobs, tapped':<36} {found:8.1f} /s  {found / base * 100:.0f} % of direct")
        finally:
            await slot.close()
            await supervisor.close()
            guardian.close()


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round-trips", type=int, default=4000)
    parser.add_argument("--jobs", type=int, default=1500)
    given = parser.parse_args()
    asyncio.run(bench(given.round_trips, given.jobs))


if __name__ == "__main__":
    main()
