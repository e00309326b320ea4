"""The pytest plugin: hooks and fixtures only. Everything else is imported when a test asks for it, so that a suite
without explorations pays for these few lines and nothing more.

    def test_invoice_survives_every_crash(jobcheck_rig):
        jobcheck_rig.explore("tests.rig:new_invoice", expect=[exactly_once("payments POST /charges")])

    def test_charge_handler(jobcheck_handler):
        jobcheck_handler("shop.jobs:charge_card", case="tests.rig:new_invoice_row").explore(expect=[...])

Scenario files are collected too, where they are asked for: `pytest scenarios/`, or the ini value `jobcheck_scenarios`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .plugin.fixtures import HandlerFixture, ProducerFixture, RigFixture
    from .plugin.scenarios import ScenarioFile
    from .runner.rig import Function
    from .runner.scenarios.live import Live

OPTIONS = {
    "rig": ("FILE:NAME", "the rig, such as tests/rig.py:shop"),
    "reports": ("DIR", "folder of the run folders (default: reports)"),
    "seed": ("N", "seed of all randomness (default: 0)"),
    "fail_on": ("handler|settings|all|none", "whose findings fail a test (default: settings, handler included)"),
    "faults": ("WORDS", "kill, reset, zombie, term, duplicate ... or all (default: kill)"),
    "max_points": ("N", "strikes of one exploration at most; 0 is all of them, the default"),
    "budget": ("TIME", "begin no further strike after it, such as 60s or 5m"),
    "deadline": ("TIME", "how long a job may run, and a worker may boot, until it is given up (default: 30s)"),
    "speed": ("N", "let the app live N times as fast, by libfaketime: retries of minutes in seconds (default: 1)"),
    "real_clocks": ("true|false", "let leases run out by themselves instead of rewinding them (default: false)"),
    "profile": ("NAME", "quick, ci, nightly, or one of the project's own"),
    "boot": ("zygote|standby|cold", "how workers are booted (default: zygote)"),
    "lanes": ("N", "jobs that are explored side by side"),
    "assume": ("at-least-once", "run the workers with safe settings, whatever the app's are"),
    "secrets": ("FIELD,...", "further fields whose values are secret and never written down"),
    "keep_bodies": ("true|false", "write bodies and rows down as they are; credentials are taken out all the same"),
    "ruleset": ("N", "what is a point and how it is judged, as of this set of rules (default: the newest)"),
}
"""Option, ini value and key of [tool.jobcheck] at once: its value's form and its help."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("jobcheck", "jobcheck: every effect of a background job exactly once")
    for name, (metavar, text) in OPTIONS.items():
        dashed = name.replace("_", "-")
        group.addoption(f"--jobcheck-{dashed}", dest=f"jobcheck_{name}", metavar=metavar, default=None, help=text)
        parser.addini(f"jobcheck_{name}", f"{text}; also [tool.jobcheck] {dashed}", default=None)
    scenarios = "scenario files that are tests, such as scenarios/*.yaml, from the root (those of folders that are "
    scenarios += "named to pytest are tests anyway)"
    parser.addini("jobcheck_scenarios", scenarios, type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "jobcheck(rig=..., assume=..., boot=..., faults=..., max_points=..., fail_on=..., seed=...): "
        "settings of the explorations in this test, over those of the project and the command line",
    )
    if config.option.help:
        return  # which works whatever is wrong elsewhere
    from .errors import UsageError
    from .plugin.settings import PLAN, session_plan

    try:
        config.stash[PLAN] = session_plan(config)
    except UsageError as error:
        raise pytest.UsageError(f"jobcheck: {error}") from None


def pytest_report_header(config: pytest.Config) -> str | None:
    from .plugin.settings import PLAN

    settings = config.stash[PLAN].settings
    return f"jobcheck: rig {settings.rig}, reports in {settings.reports}" if settings.rig else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    if file_path.suffix not in (".yaml", ".yml"):
        return None
    from .plugin.scenarios import collected

    return collected(file_path, parent)


@pytest.fixture
def jobcheck_rig(request: pytest.FixtureRequest, subtests: pytest.Subtests) -> RigFixture:
    """The app under test; `explore` strikes one of its jobs, through its queue, at every point."""
    from .plugin.fixtures import Explorer, RigFixture

    return RigFixture(Explorer(request.node, subtests))


@pytest.fixture
def jobcheck_handler(request: pytest.FixtureRequest, subtests: pytest.Subtests) -> Callable[..., HandlerFixture]:
    """`jobcheck_handler("shop.jobs:charge_card", case="tests.rig:new_invoice_row").explore(expect=[...])`: the same
    strikes on the job function itself, without a queue."""
    from .plugin.fixtures import Explorer, HandlerFixture

    def handler(function: Function, *, case: Function) -> HandlerFixture:
        return HandlerFixture(Explorer(request.node, subtests), function, case)

    return handler


@pytest.fixture
def jobcheck_producer(request: pytest.FixtureRequest, subtests: pytest.Subtests) -> Callable[..., ProducerFixture]:
    """`jobcheck_producer("tests.rig:create_invoice").explore()`: the code that stores a row and enqueues its job is
    struck at each of its points; the row is there if and only if the job is."""
    from .plugin.fixtures import Explorer, ProducerFixture

    def producer(function: Function) -> ProducerFixture:
        return ProducerFixture(Explorer(request.node, subtests), function)

    return producer


@pytest.fixture
def jobcheck_scenario(request: pytest.FixtureRequest) -> Callable[[str | Path], AbstractContextManager[Live]]:
    """`with jobcheck_scenario("scenarios/quiet.yaml") as run:` runs a scenario meanwhile; Toxiproxy's clients spoil its
    network at `run.toxiproxy_url`. What the file expects must hold after the block."""
    from .plugin.live import live_scenario

    return lambda file: live_scenario(request.node, file)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    failing = sys.modules.get("jobcheck.plugin.failing")
    if failing is not None:  # else nobody has explored anything
        failing.complete(report, item, call)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for group in terminalreporter.stats.values() for report in group if hasattr(report, "jobcheck")]
    if reports:
        from .plugin.summary import write_summary

        write_summary(terminalreporter, {report.nodeid: report.jobcheck for report in reports})
