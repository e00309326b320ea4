"""`jobcheck_scenario`: a scenario that runs while the test does something to its network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..errors import JobcheckError
from ..events import Bus
from ..report.scenario_outcome import fails, unsure
from ..report.scenario_view import views
from ..report.series import Series
from ..report.writer import write_all
from ..runner.facade import Redaction
from ..runner.scenarios.campaign import ScenarioRequest
from ..runner.scenarios.live import Live
from .failing import Told
from .settings import PLAN, test_plan


@contextmanager
def live_scenario(node: pytest.Item, file: str | Path) -> Iterator[Live]:
    """Runs a scenario file of the project around the block; `toxiproxy_url` of what it gives is for Toxiproxy's
    clients. The test fails when, after the block, what the file expects does not hold."""
    try:
        plan = test_plan(node, node.config.stash[PLAN])
        bus = Bus()
        series = Series(bus)
        request = ScenarioRequest(
            files=[plan.project / file],
            command=f"pytest {node.nodeid}",
            seed=plan.settings.seed or 0,
            reports=plan.reports,
            redaction=Redaction(plan.settings.secrets, plan.settings.keep_bodies),
            ruleset=plan.settings.ruleset,
            name=Path(file).stem,
            finish=series.into,
        )
        with Live(request, bus) as live:
            yield live
        assert live.result is not None
        report, fail_on = live.result.report, plan.settings.fail_on
        path = write_all(report, live.result.folder, fail_transport=fail_on == "all", fail_on=fail_on)
    except JobcheckError as error:
        raise Told(error.message.partition("\n")[0], f"jobcheck: {error}") from None
    (view,) = views(report.scenarios)
    if fails(view, fail_on) or unsure(view):
        title = f"{view.word}: {view.problem or view.counts_line}"
        raise Told(title.partition("\n")[0], f"{title}\nreport: {path}")
