"""Nested pytest runs in a folder of their own; in this process, which is quick, or in one of theirs, as users do it."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import pytest

# Loaded before any nested run: pytester drops the modules that a run in this process has loaded.
import jobcheck.plugin.fixtures
import jobcheck.plugin.summary
import jobcheck.report.terminal  # noqa: F401

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "plugin" / "tiny" / "rig.py"

HEAD = """
import pytest
from jobcheck import at_least_once, exactly_once

EXPECT = [exactly_once("mark charge"), at_least_once("mark mail")]
"""

# Where jobcheck is installed, its entry point loads the plugin.
PLUGIN = () if importlib.metadata.entry_points(group="pytest11", name="jobcheck") else ("-p", "jobcheck.pytest_plugin")
Nested = Callable[..., pytest.RunResult]


@pytest.fixture
def nested(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Nested:
    """`nested(source, *options, rig=..., settings=..., own_process=...)`: runs a test file in a project of its own."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("CI", "BUILD_NUMBER", "COLUMNS", "FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)

    def run(
        source: str, *options: str, rig: str = f"{TINY}:tiny", settings: str = "", own_process: bool = False
    ) -> pytest.RunResult:
        chosen = f'rig = "{rig}"\n' if rig else ""
        pytester.makepyprojecttoml(f"[tool.jobcheck]\n{chosen}{settings}\n[tool.pytest.ini_options]\nminversion = 9\n")
        pytester.makepyfile(test_jobs=HEAD + source)
        start = pytester.runpytest_subprocess if own_process else pytester.runpytest_inprocess
        return start(*PLUGIN, "-p", "no:cacheprovider", *options)

    return run


@pytest.fixture
def plugin() -> tuple[str, ...]:
    """The options that load the plugin."""
    return PLUGIN
