"""What a fault may not leave behind: looked for on the lane where it struck, and on the machine after a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import psutil

from jobcheck.runner.lane import Lane
from jobcheck.runner.queue import QueueMode
from jobcheck.runner.scenarios.gate import PostGate
from jobcheck.services.clients import pg_query
from jobcheck.systems.contract import Broker, Settings
from jobcheck.tap.listener import Slot
from jobcheck.tap.sight import IN, OUT

OPEN = """
select state || ' since ' || xact_start || ': ' || query as what from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
  and xact_start is not null
union all select 'advisory lock ' || objid from pg_locks
where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
union all select 'prepared ' || gid from pg_prepared_xacts where database = current_database()
"""
"""Transactions that somebody else has open in this database, and locks that outlive one: row locks are in them."""


def stopped() -> list[str]:
    """Processes of ours that stand still."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP):
                found.append(f"stopped: {process}")
        except psutil.NoSuchProcess:
            continue
    return found


def at_version(folder: Path, but: int = 0) -> list[str]:
    """Processes of ours, but for one, that run in this folder or below: workers of that version of the app."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.pid != but and Path(process.cwd()).is_relative_to(folder):
                found.append(f"of another version: {process}")
        except psutil.NoSuchProcess:
            continue
    return found


def at_taps(slots: Sequence[Slot], spare: Slot | None = None) -> Iterator[str]:
    """Armed gates, held bytes, toxics and taps that are down. The spare one's first fetch is held, and nothing else."""
    for slot in slots:
        if all(one.over for one in slot.listeners.values()):
            continue  # its workers were sent away
        if isinstance(slot.gate, PostGate):  # which a scenario's workers have all the time
            if slot.gate.arms or slot.gate.detained:
                yield f"{slot.name} waits for a strike"
        elif slot.gate is not None and slot is not spare:
            yield f"{slot.name} has a gate"
        for link in slot.links:
            if any(link.holding(way) for way in ((IN,) if slot is spare else (IN, OUT))):
                yield f"held: {slot.name} {link.listener.upstream}"
        for name, one in slot.listeners.items():
            if one.down or one.over or one.toxics:
                yield f"spoilt: {slot.name} {name}"


async def on_lane(lane: Lane, settings: Settings, spare: Slot | None = None) -> list[str]:
    """What is not as it was on a lane whose trial is over, in words."""
    found = [*stopped(), *at_taps(list(lane.slots.values()), spare)]
    for name, provider in lane.providers.items():
        courier = provider.courier
        if courier.how or courier.waiting or courier._kept:
            found.append(f"{name} still calls back in another way: {courier.how!r}, {courier.waiting} to come")
    system = lane.rig.system
    broker = cast(Broker, lane.services[system.broker])
    if depth := await system.depth(broker, lane.addresses[system.broker], settings):
        found.append(f"{depth} job(s) on the broker")
    for address in lane.addresses.values():
        if address.scheme.startswith("postgres"):
            found += [f"open in the database: {row['what']}" for row in await pg_query(address, OPEN)]
    return found


async def left_behind(mode: QueueMode) -> list[str]:
    """The same in queue mode, where somebody must be at work, and at the present version."""
    crew = mode.crew
    found = await on_lane(mode.lane, mode.settings, crew.spare.slot)
    if not crew.active.alive:
        found.append(f"nobody works on {crew.active.slot.name}")
    found += [f"{seat.slot.name} works at another version" for seat in crew.seats if seat.other_rig and seat.alive]
    return found + at_version(mode.lane.folder / "next")


async def runs_now(mode: QueueMode) -> list[str]:
    """What keeps a job that is enqueued now from its end."""
    trial = await mode.run("afterwards")
    found = [*trial.problems, trial.unsettled, trial.filed]
    given = [op.job for op in trial.operations if op.role == "delivery"]
    if trial.deliveries != len(given) or len(given) != len(set(given)) or not set(given) >= set(trial.case.jobs):
        found.append(f"{trial.deliveries} deliveries of {trial.case.jobs}: {given}")
    return [f"a job that was enqueued then: {text}" for text in found if text]


def on_this_machine() -> tuple[set[int], set[tuple[str, int]]]:
    """Everything of ours that runs, and where this process listens."""
    connections = psutil.Process().net_connections("tcp")
    listening = {one.laddr[:2] for one in connections if one.status == psutil.CONN_LISTEN}
    return {process.pid for process in psutil.Process().children(recursive=True)}, listening
