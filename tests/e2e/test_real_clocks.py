"""Real clocks: a lease runs out by itself, and what comes of it is what a rewind shows, at the same point."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from jobcheck.checks.contracts import exactly_once
from jobcheck.errors import UsageError
from jobcheck.events import Bus, PointsFound
from jobcheck.history.ids import short_id
from jobcheck.history.report import SubjectReport
from jobcheck.runner import facade, leases
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.rig import load_rig
from jobcheck.runner.scenarios.campaign import run_scenario
from jobcheck.systems.celery.on_redis import OnRedis

from . import bad_day, tiny

pytestmark = pytest.mark.timeout(300)
CONTRACTS = (exactly_once("mark started"), exactly_once("mark done"))
DONE = short_id("marks", "mark done", 1, "request")
RAN_OUT = re.compile(
    r"lease of (?P<lease>\d+) s ran out by itself after (?P<took>[\d.]+) s: \S+ puts the job back into its queue"
)
"""The worker that lives did that, and nobody else."""
SWEEPS = '"unacked_restore_interval": 1, "unacked_restore_throttle": 1'


def write(folder: Path, settings: str, *, broker: str = "redis") -> str:
    reference = tiny.write(folder, tiny.TWICE, settings=settings)
    if broker != "redis":
        (folder / "rig.py").write_text(bad_day.rig(f'"broker": jobcheck.{broker}()'))
    return reference


def zombie(reference: str, *, system: str = "celery-redis", **values: Any) -> tuple[SubjectReport, str, str]:
    """A worker is paused before it says that it is done, until another one has done it: the report, what the plan
    said, and what the environment says of the leases."""
    only = short_id(f"work/{system}", DONE, "zombie", "before")
    request = Request(
        command="test",
        rig=load_rig(reference),
        rig_reference=reference,
        jobs=[Job("work", "queue", "enqueue", "", CONTRACTS, only=only)],
        reports=Path(reference.rpartition(":")[0]).parent / "reports",
        faults=("zombie",),
        lanes=1,
        verify=1,
        seed=3,
        **values,
    )
    told: list[str] = []
    bus = Bus()
    bus.subscribe(lambda event: told.append(event.takes) if isinstance(event, PointsFound) else None)
    report = facade.run(lambda: facade.explore(request, bus)).report
    return report.subjects[0], told[0], report.environment["leases"]


def lines(item: SubjectReport) -> list[str]:
    return [line.text for line in item.findings[0].story]


def test_a_zombie_with_a_real_lease_ends_as_one_whose_lease_was_rewound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = write(tmp_path, f'app.conf.broker_transport_options = {{"visibility_timeout": 3, {SWEEPS}}}')
    rewound, _, said = zombie(reference)
    assert said == "rewound"
    assert any("lease of 1 delivery rewound" in line for line in lines(rewound))

    async def never(*_: object) -> str:
        raise AssertionError("something was rewound")

    monkeypatch.setattr(OnRedis, "rewind", never)
    monkeypatch.setattr(leases, "expire_keys", never)
    real, takes, said = zombie(reference, real_clocks=True)
    assert real.strikes[0].fired, real.problem
    for one, other in zip(real.strikes, rewound.strikes, strict=True):
        assert (one.id, one.point, one.verdict, one.layer) == (other.id, other.point, "duplicated", "handler")
    assert [item.id for item in real.findings] == [item.id for item in rewound.findings]
    (ran_out,) = filter(None, (RAN_OUT.fullmatch(line) for line in lines(real)))
    assert ran_out["lease"] == "3"
    assert float(ran_out["took"]) >= 3
    assert said == "run out by themselves (real clocks)"
    assert takes.endswith(
        "1 strike waits for a real lease of 3 s (and up to 1 s until a worker looks for it): about 4 s"
    )
    assert any(note.startswith("leases ran out by themselves") for note in real.notes)


def test_a_lease_of_minutes_runs_out_by_itself_on_a_faster_clock(tmp_path: Path) -> None:
    reference = write(tmp_path, 'app.conf.broker_transport_options = {"visibility_timeout": 300}')
    real, takes, _ = zombie(reference, real_clocks=True, speed=100.0)
    (strike,) = real.strikes
    assert (strike.fired, strike.verdict, strike.layer) == (True, "duplicated", "handler"), real.problem
    assert "1 strike waits for a real lease of 300 s, 3 s at speed 100 (and up to 1 s" in takes
    (ran_out,) = filter(None, (RAN_OUT.fullmatch(line) for line in lines(real)))
    assert ran_out["lease"] == "300"
    assert float(ran_out["took"]) >= 300, "in the job's own time"


def test_a_scenario_waits_for_real_leases_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, f'app.conf.broker_transport_options = {{"visibility_timeout": 3, {SWEEPS}}}')
    slow = tiny.TWICE + "    import time; time.sleep(0.3)\n"
    (tmp_path / "tiny.py").write_text((tmp_path / "tiny.py").read_text().replace(tiny.TWICE, slow))
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "title: real\nrig: rig.py:tiny\nclock: {real: true}\nworkload: {enqueue: enqueue, count: 2, rate: 4/s}\n"
        "faults:\n  - {kill: tree, at: 0.1s}\nexpect:\n  - at_least_once: mark done\n"
    )
    rewound = []
    monkeypatch.setattr(OnRedis, "rewind", lambda *given: rewound.append(given))
    bus = Bus()
    (scenario,) = facade.run(lambda: run_scenario(file, bus, seed=7, reports=tmp_path / "reports")).report.scenarios
    assert (scenario["verdict"], scenario["counts"]["ok"], rewound) == ("ok", 2, []), scenario["problem"]
    assert scenario["jobs"]["deliveries"] == 3
    assert scenario["leases"] == "run out by themselves (real clocks)"
    assert "leases of workers that were gone ran out by themselves: nothing was rewound" in scenario["notes"]


def test_a_lease_that_nobody_waits_for_is_refused_before_anything_is_struck(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a strike would wait for a lease of 3600 s .* deadline of 30 s") as raised:
        zombie(write(tmp_path, ""), real_clocks=True)
    assert raised.value.hint == "--speed 100 --deadline 45s, or --deadline 74m"


def test_rabbitmq_itself_gives_up_a_worker_that_sends_no_heartbeats(tmp_path: Path) -> None:
    reference = write(tmp_path, "app.conf.broker_heartbeat = 2", broker="rabbitmq")
    real, takes, _ = zombie(reference, system="celery-rabbitmq", real_clocks=True)
    (strike,) = real.strikes
    assert (strike.fired, strike.verdict, strike.layer) == (True, "duplicated", "handler"), real.problem
    assert "1 strike waits until the broker gives up a silent worker (heartbeat of 2 s), up to 6 s" in takes
    (gone,) = [line for line in lines(real) if line.startswith("the broker gave the silent worker up by itself after ")]
    assert float(gone.removesuffix(" s (heartbeat of 2 s)").split()[-1]) >= 2
