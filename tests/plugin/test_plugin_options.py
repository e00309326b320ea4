"""Options, ini values, [tool.jobcheck], markers, and what the plugin costs a suite that does not use it."""

from __future__ import annotations

import importlib.metadata
import re

import pytest

USES = """
def test_right(jobcheck_handler):
    jobcheck_handler("tinyapp.jobs:right", case="number").explore(expect=EXPECT[1:])
"""


def test_collecting_starts_nothing(nested, pytester):
    result = nested(USES, "--collect-only", "-q", "--strict-markers")
    assert result.ret is pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["test_jobs.py::test_right"])
    assert not (pytester.path / "reports").exists()


def test_help_names_every_option_and_works_with_a_broken_project(nested):
    result = nested("", "--help", settings="nonsense = 1")
    assert result.ret is pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            f"*--jobcheck-{name}=*"
            for name in ("rig", "reports", "seed", "fail-on", "max-points", "boot", "lanes", "assume")
        ]
    )
    result.stdout.fnmatch_lines(["*jobcheck_max_points (string):*"])


@pytest.mark.parametrize(
    ("options", "settings", "said"),
    [
        (
            (),
            "max-point = 3",
            "*[[]tool.jobcheck[]] in *pyproject.toml has no key 'max-point'*mean max-points[?]*",
        ),
        ((), 'seed = "x"', "*[[]tool.jobcheck[]] in *: seed: expected a number from 0 on, got 'x'"),
        (("--jobcheck-boot", "hot"), "", "*--jobcheck-boot: expected one of zygote, standby, cold, got 'hot'"),
        (("--jobcheck-fail-on", "handlers"), "", "*--jobcheck-fail-on: expected one of *, got 'handlers'"),
        (("-o", "jobcheck_lanes=0"), "", "*ini value jobcheck_lanes: expected a number from 1 on, got 0"),
        (("--jobcheck-nonsense", "1"), "", "*unrecognized arguments: --jobcheck-nonsense*"),
        ((), "ruleset = 9", "*ruleset: this version knows the rulesets 1, got 9*"),
        (("-o", "jobcheck_keep_bodies=perhaps"), "", "*jobcheck_keep_bodies: expected true or false, got 'perhaps'"),
    ],
)
def test_a_wrong_setting_is_a_usage_error_before_any_test(nested, options, settings, said):
    result = nested(USES, *options, settings=settings)
    assert result.ret is pytest.ExitCode.USAGE_ERROR
    text = " ".join(result.stderr.str().split())
    pytest.LineMatcher([text]).fnmatch_lines([f"{said}*"])


def test_a_test_without_a_rig_says_where_one_is_named(nested):
    result = nested(USES, rig="")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["jobcheck: no rig for test_jobs.py::test_right: neither *", "  try: rig = *"])


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ('rigg="x"', "*the marker jobcheck of test_jobs.py::test_right has no key 'rigg'; there are rig, *"),
        ('"rig.py:x"', "*the marker jobcheck takes keywords only: *"),
        ('rig="nowhere.py:x"', "*no rig file *nowhere.py"),
    ],
)
def test_a_wrong_marker_fails_its_own_test_in_words(nested, marker, said):
    result = nested(f"\n@pytest.mark.jobcheck({marker})\n{USES.strip()}\n\ndef test_other():\n    pass\n")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines([said])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("jobcheck_rig.explore(lambda case: 0)", "*is a lambda or a closure; *"),
        ('jobcheck_rig.explore("put_nave")', "*rig.py has no function 'put_nave'; it has *"),
        ('jobcheck_rig.explore("put_naive", expect=["exactly_one: mark charge"])', "*did you mean exactly_once?"),
        (
            'jobcheck_rig.explore("put_naive", deadline="soon")',
            "jobcheck: explore(): deadline: expected a time such as *",
        ),
        ('jobcheck_rig.explore("put_naive", boot="warm")', "jobcheck: explore(): boot: expected one of zygote, *"),
    ],
)
def test_a_wrong_call_is_told_in_words_and_starts_nothing(nested, pytester, call, said):
    result = nested(f"\ndef test_wrong(jobcheck_rig):\n    {call}\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([said])
    assert not (pytester.path / "reports").exists()


def test_the_place_closest_to_the_test_wins(nested, pytester):
    source = """
import pathlib

def plan(request):
    from jobcheck.plugin.settings import PLAN, test_plan
    return test_plan(request.node, request.config.stash[PLAN])

def test_line(request):
    settings = plan(request).settings
    assert (settings.max_points, settings.seed, settings.lanes) == (3, 8, 1)
    assert plan(request).reports == pathlib.Path.cwd() / "out"

@pytest.mark.jobcheck(max_points=9)
class TestMarked:
    def test_class(self, request):
        assert plan(request).settings.max_points == 9

    @pytest.mark.jobcheck(max_points=4)
    def test_own(self, request):
        assert plan(request).settings.max_points == 4
"""
    options = (
        "--jobcheck-max-points",
        "3",
        "--jobcheck-reports",
        "out",
        "-o",
        "jobcheck_max_points=2",
        "-o",
        "jobcheck_seed=8",
    )
    nested(source, *options, settings="max-points = 1\nseed = 7\nlanes = 1").assert_outcomes(passed=3)


def test_a_suite_without_explorations_loads_no_engine(pytester, plugin):
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            heavy = {"runner", "tap", "report", "store", "wire", "api"}
            loaded = {name.split(".")[1] for name in sys.modules if name.startswith("jobcheck.")}
            assert "pytest_plugin" in loaded
            assert not heavy & loaded
            assert not {"rich", "psycopg", "redis", "h11", "aiosmtpd"} & set(sys.modules)
        """
    )
    pytester.runpytest_subprocess(*plugin).assert_outcomes(passed=1)


def test_the_fixtures_of_a_user_are_pytests_own_and_ours(pytester, monkeypatch):
    """No library that jobcheck brings along registers any."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def fixtures(*options):
        result = pytester.runpytest_subprocess("--fixtures", "-v", *options)
        assert result.ret is pytest.ExitCode.OK
        found = [re.match(r"(\w+)(?: \[\w+ scope\])? -- (\S+?):\d+", line) for line in result.outlines]
        return {one[1]: one[2] for one in found if one}

    ours = fixtures("-p", "jobcheck.pytest_plugin")
    more = ours.keys() - fixtures().keys()
    assert {"jobcheck_rig", "jobcheck_handler"} <= more
    assert {name.partition("_")[0] for name in more} == {"jobcheck"}
    brought = needed_by("jobcheck")
    assert {"click", "rich", "redis", "markdown_it_py"} <= brought
    plugins = importlib.metadata.entry_points(group="pytest11")
    assert {_name(one.dist.name) for one in plugins if one.dist} & brought == {"jobcheck"}


def needed_by(name: str) -> set[str]:
    """A distribution and all that it needs, extras left out."""
    found, waiting = set(), [_name(name)]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        try:
            requires = importlib.metadata.requires(one) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # another platform's, or another Python's
        found.add(one)
        names = [re.split(r"[ ;<>=!~\[(]", line)[0] for line in requires if "extra ==" not in line]
        waiting += map(_name, names)
    return found


def _name(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
