"""What the project, pytest's ini file, its command line and a test's own marker say about explorations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ..config import KEYS, Settings, dashed, merged, project_of, read_settings, rig_from, with_profile
from ..errors import UsageError


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of a session, or of one test. Paths in them count from the project."""

    project: Path
    settings: Settings

    @property
    def reports(self) -> Path:
        """The folder of the run folders."""
        return self.project / self.settings.reports

    def over(self, values: Mapping[str, object], base: Path, where: str) -> Plan:
        """The plan with these values over it; paths in them count from `base`. Raises UsageError."""
        settings = merged(self.settings, values, where=where)
        if "rig" in values:
            settings = replace(settings, rig=rig_from(settings.rig, base, self.project))
        if "reports" in values:
            settings = replace(settings, reports=str((base / settings.reports).resolve()))
        return Plan(self.project, settings)


PLAN: pytest.StashKey[Plan] = pytest.StashKey()
"""On the config: what holds for the session."""


def session_plan(config: pytest.Config) -> Plan:
    """What holds for the session: [tool.jobcheck], over it the ini file, over that the command line."""
    project = project_of(config.rootpath)
    plan = Plan(project, read_settings(project))
    ini = {key: value for key in KEYS if (value := config.getini(f"jobcheck_{key}"))}
    line = {key: value for key in KEYS if (value := config.getoption(f"jobcheck_{key}")) is not None}
    profile = line.get("profile") or ini.get("profile")
    try:
        if isinstance(profile, str):
            plan = Plan(project, with_profile(project, plan.settings, profile))
        plan = plan.over(ini, config.rootpath, "jobcheck_")
        return plan.over(line, config.invocation_params.dir, "--jobcheck-")
    except UsageError as error:
        lead, colon, rest = error.message.partition("jobcheck_: ")
        if colon:  # names of ini values have no dashes
            key, _, rest = rest.partition(":")
            rest = f"ini value jobcheck_{key.replace('-', '_')}:{rest}"
        message = (lead + rest).replace("--jobcheck-: ", "--jobcheck-")
        raise UsageError(message, hint=error.hint) from None


def test_plan(node: pytest.Item, plan: Plan) -> Plan:
    """The session's plan under the markers of one test, the closest one last. Raises UsageError."""
    for marker in reversed(list(node.iter_markers("jobcheck"))):
        if marker.args:
            raise UsageError(
                f"the marker jobcheck takes keywords only: {', '.join(map(dashed, KEYS))}; got {marker.args[0]!r}",
                hint='@pytest.mark.jobcheck(rig="tests/rig.py:shop")',
            )
        plan = plan.over(marker.kwargs, node.config.rootpath, f"the marker jobcheck of {node.nodeid}")
    return plan
