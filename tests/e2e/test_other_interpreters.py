"""A rig may name another interpreter, in which jobcheck is not installed: what runs there is standard library only.

An older Python of this machine is taken where there is one (from 3.8 on); else a virtual environment of our own Python,
which is another interpreter, too.
"""

from __future__ import annotations

import ast
import importlib.util
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import jobcheck
from jobcheck.history.report import SubjectReport

from . import tiny
from .bad_day import rig

ROOT = Path(jobcheck.__file__).parent
INSIDE = sorted(
    {*ROOT.glob("**/inside/**/*.py"), *ROOT.glob("systems/*/recover.py"), ROOT / "__init__.py", ROOT / "marks.py"}
)
OLDEST = 8
APP = """
import os, sys, urllib.request

try:
    import psutil
except ImportError:
    pass
else:
    raise SystemExit("the harness's packages are not the app's")

def work(key):
    with open("interpreter", "w") as file:
        file.write(sys.executable)
    url = os.environ["PAYMENTS_URL"] + "/charges"
    urllib.request.urlopen(urllib.request.Request(url, key.encode(), method="POST")).read()
    urllib.request.urlopen(urllib.request.Request(url + "/" + key, b"done", method="POST")).read()
"""


@pytest.mark.parametrize("path", INSIDE, ids=lambda path: path.name)
def test_what_runs_in_the_app_is_python_3_8(path: Path) -> None:
    ast.parse(path.read_bytes(), str(path), feature_version=(3, OLDEST))


def other_python(folder: Path) -> Path:
    """The oldest usable Python of this machine that is not ours, else one in an environment of its own."""
    found = [*Path.home().glob(".pyenv/versions/3.*/bin/python"), *map(Path, filter(None, map(shutil.which, NAMES)))]
    versions = {}
    for path in found:
        told = subprocess.run([path, "-c", TELL], capture_output=True, text=True, check=False)
        minor, _, executable = told.stdout.strip().partition(" ")
        if told.returncode == 0 and OLDEST <= int(minor) < sys.version_info.minor:
            versions[int(minor)] = Path(executable)
    if versions:
        return versions[min(versions)]
    venv.create(folder / "other", with_pip=False)
    return folder / "other" / "bin" / "python"


NAMES = [f"python3.{minor}" for minor in range(OLDEST, sys.version_info.minor)]
TELL = "import sys; print(sys.version_info[1], sys.executable)"


HARNESS_ONLY = ("jobcheck", "__editable__", "psutil", "aiosmtpd", "pamqp", "h11", "rich", "pgparse")


def celery_place() -> Path:
    """The site-packages that Celery is in; it is not imported here."""
    spec = importlib.util.find_spec("celery")
    assert spec is not None
    return Path(spec.origin or "").parents[1]


def explored(folder: Path, python: Path, **values: str) -> SubjectReport:
    reference = tiny.write(folder, options=f', python="{python}"', **values)
    return tiny.only(tiny.explore(reference))


def test_a_handler_is_struck_in_another_interpreter(tmp_path: Path) -> None:
    python = other_python(tmp_path)
    text = rig('"broker": jobcheck.redis(), "payments": jobcheck.provider()', '"PAYMENTS_URL": "{payments.base}"')
    (tmp_path / "tiny.py").write_text(APP)
    (tmp_path / "rig.py").write_text(text.replace('celery("tiny:app")', f'celery("tiny:app", python="{python}")'))
    contract = (jobcheck.exactly_once("payments POST /charges"),)
    subject = tiny.only(tiny.explore(f"{tmp_path / 'rig.py'}:tiny", mode="handler", contracts=contract))
    assert subject.problem == ""
    assert (tmp_path / "interpreter").read_text() == str(python)
    assert [point.code for point in subject.points] == ["tiny.py:15 work", "tiny.py:16 work"]
    assert [strike.verdict for strike in subject.strikes] == ["ok", "duplicated", "duplicated"]


def test_a_worker_runs_in_the_interpreter_of_its_app(tmp_path: Path) -> None:
    """A virtual environment that has Celery, and no jobcheck but what the app's own marks need."""
    venv.create(tmp_path / "apps", with_pip=False)
    python = tmp_path / "apps" / "bin" / "python"
    (packages,) = (tmp_path / "apps").glob("lib/python*/site-packages")
    # The packages of our own environment, as if they were installed there; those that only the harness needs are not.
    for entry in celery_place().iterdir():
        if not entry.name.startswith(HARNESS_ONLY) and entry.suffix != ".pth":
            (packages / entry.name).symlink_to(entry)
    (packages / "jobcheck").symlink_to(ROOT)
    settings = (
        "import sys\nfrom pathlib import Path\nPath(__file__).with_name('interpreter').write_text(sys.executable)"
    )
    subject = explored(tmp_path, python, settings=settings)
    assert subject.problem == ""
    assert (tmp_path / "interpreter").read_text() == str(python)
    assert subject.coverage.fired == subject.coverage.strikes > 3
    assert {strike.layer for strike in subject.strikes} == {"", "transport"}
