"""A tiny Celery app whose only effects are marks, for tests of what a rig does: no database, no mail."""

from __future__ import annotations

from pathlib import Path

from jobcheck.checks.contracts import Contract, at_least_once, exactly_once
from jobcheck.events import Bus
from jobcheck.history.report import Report, SubjectReport
from jobcheck.runner import facade
from jobcheck.runner.facade import VERIFY, Job, Request
from jobcheck.runner.rig import load_rig

APP = """
import os
import jobcheck
from celery import Celery

app = Celery("tiny", broker=os.environ.get("BROKER_URL", "redis://127.0.0.1:1/0"))
app.conf.update(
    task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1, task_ignore_result=True,
    broker_connection_retry_on_startup=True,
)
{settings}

@app.task
def work(key):
{body}
"""

RIG = """
import jobcheck

tiny = jobcheck.Rig(
    jobcheck.celery("tiny:app"{options}),
    upstreams={{"broker": jobcheck.redis()}},
    env={{"{variable}": "{{broker.url}}"}},
)

def enqueue(case):
    import tiny
    key = f"key-{{case.number}}"
    case.owns(key=key)
    {call}

def row(case):
    key = f"key-{{case.number}}"
    case.owns(key=key)
    return key
"""

ONCE = '    jobcheck.mark("done", key)\n'
TWICE = '    jobcheck.mark("started", key)\n    jobcheck.mark("done", key)\n'


def write(
    folder: Path,
    body: str = ONCE,
    *,
    settings: str = "",
    options: str = "",
    variable: str = "BROKER_URL",
    call: str = "tiny.work.delay(key)",
) -> str:
    """Writes app and rig into the folder and gives the rig's reference."""
    (folder / "tiny.py").write_text(APP.format(body=body, settings=settings))
    (folder / "rig.py").write_text(RIG.format(options=options, variable=variable, call=call))
    return f"{folder / 'rig.py'}:tiny"


DONE = (at_least_once("mark done"),)
DONE_ONCE = (exactly_once("mark done"),)


def explore(
    reference: str,
    *,
    mode: str = "queue",
    contracts: tuple[Contract, ...] = DONE,
    assume: str = "",
    boot: str = "zygote",
    faults: tuple[str, ...] = ("kill",),
    deadline: float = 30.0,
    max_points: int = 0,
    verify: int = VERIFY,
    bus: Bus | None = None,
) -> Report:
    """Explores the tiny job; reports go beside it."""
    rig = load_rig(reference)
    handler = "tiny:work" if mode == "handler" else ""
    job = Job("work", mode, "row" if mode == "handler" else "enqueue", handler, contracts, assume)
    request = Request(
        command="test",
        rig=rig,
        rig_reference=reference,
        jobs=[job],
        reports=Path(rig.file).parent / "reports",
        lanes=1,
        boot=boot,
        faults=faults,
        deadline=deadline,
        max_points=max_points,
        verify=verify,
        seed=3,
    )
    return facade.run(lambda: facade.explore(request, bus or Bus())).report


def only(report: Report) -> SubjectReport:
    assert len(report.subjects) == 1
    return report.subjects[0]
