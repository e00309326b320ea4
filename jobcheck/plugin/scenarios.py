"""Scenario files as test items: one item for each file, with its counts and its command where it fails."""

from __future__ import annotations

import io
import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..cli.scenario_files import is_scenario
from ..errors import JobcheckError, UsageError
from .failing import EXPLORED, Told
from .settings import PLAN, Plan, test_plan

if TYPE_CHECKING:
    from ..history.report import Report
    from ..report.scenario_view import ScenarioView
    from ..runner.facade import Result

LISTED: pytest.StashKey[frozenset[Path]] = pytest.StashKey()
"""On the config: the files that the ini value `jobcheck_scenarios` names."""


def collected(path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """The collector of a scenario file that somebody asked for; None for any other file.

    Asked for is a file that is named itself, or whose own folder is named (on the command line or in `testpaths`), or
    that matches `jobcheck_scenarios`. A session that was started without any name in the project's root asks for none.
    """
    config = parent.config
    if not (_named(path, config) or path in _listed(config)) or not is_scenario(path):
        return None
    return ScenarioFile.from_parent(parent, path=path)


def _named(path: Path, config: pytest.Config) -> bool:
    here = config.invocation_params.dir
    names = {Path(os.path.normpath(here / str(name).partition("::")[0])) for name in config.args}
    if path in names:
        return True
    return path.parent in names and not path.parent == here == config.rootpath


def _listed(config: pytest.Config) -> frozenset[Path]:
    if LISTED not in config.stash:
        try:
            found = frozenset(
                path for pattern in config.getini("jobcheck_scenarios") for path in config.rootpath.glob(pattern)
            )
        except (NotImplementedError, ValueError) as error:
            raise pytest.UsageError(
                f"jobcheck_scenarios: expected patterns below {config.rootpath}, such as scenarios/*.yaml: {error}"
            ) from None
        config.stash[LISTED] = found
    return config.stash[LISTED]


class ScenarioFile(pytest.File):
    """One scenario file. Its mistakes are errors of the collection, each with its line."""

    def collect(self) -> Iterator[ScenarioItem]:
        from ..runner.scenarios.campaign import load

        try:
            scenario = load(self.path).scenario
        except UsageError as error:
            text = str(error).replace(str(self.path), _shown(self.path, self.config))
            raise self.CollectError(f"jobcheck: {text}") from None
        item = ScenarioItem.from_parent(self, name=scenario.title.replace("::", ": "))
        item.own_seed = scenario.seed
        item.add_marker("jobcheck")
        yield item


class ScenarioItem(pytest.Item):
    """One scenario: it passes when everything that the file expects holds, and every fault met a running job."""

    own_seed: int | None = None
    """The seed in the file."""

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name

    def runtest(self) -> None:
        from ..report.scenario_outcome import fails, unsure
        from ..report.scenario_view import views
        from ..report.writer import write_all

        try:
            plan = test_plan(self, self.config.stash[PLAN])
            warnings: list[str] = []
            result = self._carried_out(plan, warnings)
            fail_on = plan.settings.fail_on
            path = write_all(result.report, result.folder, fail_transport=fail_on == "all", fail_on=fail_on)
        except JobcheckError as error:
            raise Told(error.message.partition("\n")[0], f"jobcheck: {error}") from None
        (view,) = views(result.report.scenarios)
        failed = fails(view, fail_on)
        self._keep(view, failed, warnings, str(path))
        if view.raw.get("aborted"):
            raise KeyboardInterrupt(f"{view.problem}; report: {path}")
        if failed or unsure(view):
            raise Told(_title(view), self._text(view, str(path)))

    def _carried_out(self, plan: Plan, warnings: list[str]) -> Result:
        from ..events import Bus, Event, Warned
        from ..report.series import Series
        from ..runner.facade import Redaction, run
        from ..runner.scenarios.campaign import ScenarioRequest, run_scenarios

        def listen(event: Event) -> None:
            if isinstance(event, Warned):
                warnings.append(event.text)

        bus = Bus()
        bus.subscribe(listen)
        series = Series(bus)
        request = ScenarioRequest(
            files=[self.path],
            command=f"pytest {self.nodeid}",
            seed=self._seed(plan),
            reports=plan.reports,
            redaction=Redaction(plan.settings.secrets, plan.settings.keep_bodies),
            ruleset=plan.settings.ruleset,
            name=self.path.stem,
            finish=lambda report: self._finished(series.into(report)),
        )
        return run(lambda: run_scenarios(request, bus))

    def _seed(self, plan: Plan) -> int:
        """The command line goes before the file, and that before the project; the same one every time."""
        given = self.config.getoption("jobcheck_seed")
        if given is None and self.own_seed is not None:
            return self.own_seed
        return plan.settings.seed or 0

    def _finished(self, report: Report) -> Report:
        """The report names the file as a person does, and the command that runs it again."""
        shown = _shown(self.path, self.config)
        scenarios = [
            {
                **scenario,
                "file": shown,
                "reproduce": shlex.join(["jobcheck", "run", shown, "--seed", str(scenario.get("seed"))]),
            }
            for scenario in report.scenarios
        ]
        return replace(report, scenarios=tuple(scenarios))

    def _text(self, view: ScenarioView, path: str) -> str:
        """What a terminal shows of it; the last two lines run it again, here and alone."""
        from rich.console import Console

        from ..report.scenario_view import ScenarioView as View
        from ..report.terminal import render_scenario

        paper = io.StringIO()
        width = min(120, max(80, shutil.get_terminal_size((100, 24)).columns))
        # No colours: the same text goes to JUnit. The renderer ends with the command that it is given.
        console = Console(file=paper, width=width, color_system=None, force_terminal=False)
        here = shlex.join(["pytest", _shown(self.path, self.config), "--jobcheck-seed", view.text("seed")])
        render_scenario(View({**view.raw, "reproduce": here}), console)
        report = f"  report: {_shown(Path(path), self.config)}"
        text = paper.getvalue().strip().split("\n")
        return "\n".join([*text[:-2], report, *text[-2:], view.reproduce, ""])

    def _keep(self, view: ScenarioView, failed: bool, warnings: list[str], path: str) -> None:
        """For the terminal summary, as plain values that xdist can send; the counts for JUnit too."""
        self.user_properties += [
            ("jobcheck.counts", view.counts_line),
            ("jobcheck.verdict", view.word),
            ("jobcheck.report", path),
        ]
        losses = [cause for cause in view.causes if cause.tone != "bad"]
        kept: dict[str, Any] = {
            "label": view.word,
            "tone": "bad" if failed else view.tone if view.tone != "bad" else "unsure",
            "coverage": view.counts_line,
            "problem": view.problem,
            "shown": [f"{cause.place}: {len(cause.cases)} x {cause.verdict}: {cause.what}" for cause in losses],
            "uncontracted": [f"exactly_once: {name}" for name in view.texts("uncontracted")],
            "warnings": warnings,
            "report": path,
        }
        self.stash.setdefault(EXPLORED, []).append(kept)


def _title(view: ScenarioView) -> str:
    """One line for the short summary and for JUnit's message."""
    if view.tone == "bad":
        return f"broken: {view.counts_line}"
    return f"{view.word}: {(view.problem or 'no answer').partition(chr(10))[0]}"


def _shown(path: Path, config: pytest.Config) -> str:
    """The path as it is typed from where pytest was called."""
    short = os.path.relpath(path, config.invocation_params.dir)
    return str(path) if short.startswith("..") else short
