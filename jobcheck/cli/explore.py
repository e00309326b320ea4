"""`jobcheck explore`: the points of one job of the user's app, each struck once."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..config import ASSUME, seconds
from ..errors import UsageError
from .options import (
    Project,
    command_line,
    deadline_option,
    fail_on_option,
    job_options,
    keep_bodies_option,
    opened_rig,
    reports_option,
    seed_option,
)

if TYPE_CHECKING:
    from ..checks.contracts import Contract
    from ..runner.facade import Job, Request, Result
    from ..runner.rig import Rig


@click.command("explore")
@click.argument("function", required=False)
@job_options
@click.option("--producer", metavar="MODULE:FUNCTION", help="Explore the code that stores a row and enqueues a job.")
@click.option("--expect", multiple=True, metavar="CONTRACT", help="'exactly_once: payments POST /charges'; may repeat.")
@click.option("--assume", type=click.Choice(ASSUME), help="Run the workers with safe settings, whatever the app's are.")
@click.option("--lanes", type=click.IntRange(1), help="Jobs that are explored side by side (default: 2).")
@click.option(
    "--faults",
    metavar="WORDS",
    help="kill (the default), reset, zombie, term, duplicate, order, webhook, race, kill-child, kill-parent, or all.",
)
@click.option("--follow", is_flag=True, help="With FUNCTION: the jobs that its job causes too, each at its points.")
@click.option("--deploy", metavar="VERSION", help="Deploy it at each point: a folder, a Python or a git revision.")
@click.option("--at", metavar="PROCESS", help="Strike this process of the rig, such as a relay, instead of the worker.")
@click.option("--max-points", type=click.IntRange(0), help="Strikes at most; 0 is all of them, the default.")
@click.option("--budget", metavar="TIME", help="Begin no further strike after it, such as 60s or 5m.")
@click.option("--speed", type=click.IntRange(1), metavar="N", help="Let the app live N times as fast (libfaketime).")
@click.option("--real-clocks", is_flag=True, default=None, help="Let leases run out by themselves; rewind none.")
@deadline_option
@keep_bodies_option
@click.option("--profile", metavar="NAME", help="quick, ci, nightly, or one of the project's own.")
@seed_option
@fail_on_option
@reports_option
def command(
    function: str | None,
    rig: str | None,
    handler: str | None,
    case: str | None,
    producer: str | None,
    expect: tuple[str, ...],
    follow: bool,
    deploy: str | None,
    at: str | None,
    reports: Path | None,
    **options: object,
) -> int:
    """Strike one job at every point where breaking can matter, and count its effects.

    FUNCTION puts one piece of work into the queue, as tests.rig:new_invoice does; a name alone is looked for in the
    rig's file. With --handler and --case the job function runs without a queue. --producer strikes the code that
    enqueues: a row is there if and only if its job is. All may be given.

    \b
      jobcheck explore new_invoice --rig tests/rig.py:shop
      jobcheck explore --handler shop.jobs:charge_card --case tests.rig:new_invoice_row \\
          --expect 'exactly_once: payments POST /charges' --expect 'at_least_once: mail'

    Without --expect, the effects of a clean run are shown as contracts to paste.
    """
    from ..runner.asked import deployed, strikes_of, struck_at
    from ..runner.expectations import exit_code_of, read_contract
    from ..runner.facade import Request
    from ..seeds import fresh_seed
    from .carry import tell
    from .screens import out

    project = Project(rig=rig, **options)
    settings = project.settings
    contracts = tuple(read_contract(text, "--expect") for text in expect)
    loaded, reference = opened_rig(project, rig)
    real = bool(options.get("real_clocks"))
    jobs = jobs_of(loaded, function, handler, case, contracts, settings.assume, producer, follow, real)
    request = Request(
        command=command_line(),
        rig=loaded,
        rig_reference=reference,
        jobs=struck_at(loaded, deployed(jobs, deploy), at),
        seed=fresh_seed() if settings.seed is None else settings.seed,
        reports=project.reports(reports),
        project=project.folder,
        boot=settings.boot,
        lanes=settings.lanes,
        faults=strikes_of(settings.faults),
        max_points=settings.max_points,
        budget=seconds(settings.budget),
        speed=float(settings.speed),
        real_clocks=settings.real_clocks,
        deadline=seconds(settings.deadline),
        redaction=project.redaction,
        ruleset=settings.ruleset,
    )
    request.name = "-".join(job.subject for job in request.jobs)
    return exit_code_of(tell(_carried_out(request), out(), fail_on=settings.fail_on), settings.fail_on)


def jobs_of(
    rig: Rig,
    function: str | None,
    handler: str | None,
    case: str | None,
    contracts: tuple[Contract, ...],
    assume: str,
    producer: str | None = None,
    follow: bool = False,
    real_clocks: bool = False,
) -> list[Job]:
    """What the arguments name: a job through its queue, a job function without it, a producer, or several of them.
    Raises UsageError."""
    from ..runner.asked import handler_job, producer_job, queue_job

    if bool(handler) != bool(case):
        given, missing = ("--handler", "--case") if handler else ("--case", "--handler")
        raise UsageError(f"{given} needs {missing}: the job function, and what makes its rows")
    if real_clocks and not function:
        raise UsageError(
            "--real-clocks needs a job that goes through its queue: without a broker there is no lease to run out",
            hint="jobcheck explore tests.rig:new_invoice --real-clocks",
        )
    if follow and not function:
        raise UsageError(
            "--follow needs a job that goes through its queue: a function alone, or a producer, causes none that run",
            hint="jobcheck explore tests.rig:new_invoice --follow",
        )
    jobs = []
    if function:
        jobs.append(queue_job(rig, function, contracts, assume=assume, follow=follow))
    if handler and case:
        jobs.append(handler_job(rig, handler, case, contracts))
    if producer:
        jobs.append(producer_job(rig, producer, contracts))
    if not jobs:
        raise UsageError(
            "nothing to explore: name a function that enqueues the job, a job function with --handler and --case, or "
            "the code that enqueues with --producer",
            hint="jobcheck explore tests.rig:new_invoice",
        )
    return jobs


def _carried_out(request: Request) -> Result:
    from .carry import carry_out

    try:
        return carry_out(request)
    except UsageError as error:
        raise error if any(job.contracts for job in request.jobs) else _for_a_shell(error) from None


def _for_a_shell(error: UsageError) -> UsageError:
    """The error of a missing contract offers Python calls to paste; on a command line they are options."""
    from ..runner.expectations import read_contract

    def option(found: re.Match[str]) -> str:
        text = read_contract(found["call"]).text.replace(" once", "_once", 1).replace("at ", "at_", 1)
        return f"{found['space']}--expect {shlex.quote(text)}"

    hint = re.sub(r"(?m)^(?P<space>\s+)(?P<call>\w+_once\(.*\)),$", option, error.hint)
    return UsageError(error.message, hint=hint)
