"""Values over a settings module, and files that run first, in a real interpreter of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobcheck.runner.surroundings import PRELOAD

SETTINGS = """
HOST = "real"
DATABASES = {"default": {"HOST": "real", "NAME": "shop"}}
SERVERS = [{"port": 1}]
_PRIVATE = "kept"
URL = f"http://{HOST}"
"""


@pytest.fixture
def python(tmp_path: Path):
    """`python(code, overlay={...}, preload=[...])`: what it prints, and its errors."""
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "settings.py").write_text(SETTINGS)
    (tmp_path / "flat.py").write_text(SETTINGS)

    def run(
        code: str, overlay: object = None, preload: tuple[str, ...] = (), ca: str = ""
    ) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join([str(PRELOAD), str(tmp_path)])}
        if overlay is not None:
            (tmp_path / "overlay.json").write_text(json.dumps(overlay))
            env["JOBCHECK_OVERLAY"] = str(tmp_path / "overlay.json")
        if ca:
            env["JOBCHECK_CA"] = ca
        if preload:
            env["JOBCHECK_PRELOAD"] = os.pathsep.join(str(tmp_path / name) for name in preload)
        return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)

    return run


def test_dotted_paths_are_laid_over_a_module_of_a_package(python):
    over = {"pack.settings": {"DATABASES.default.HOST": "127.0.0.1", "SERVERS.0.port": 2, "HOST": "laid", "NEW": 1}}
    code = "from pack import settings as s; print(s.DATABASES, s.SERVERS, s.HOST, s.NEW, s._PRIVATE, s.URL)"
    done = python(code, over)
    assert done.stdout.strip() == (
        "{'default': {'HOST': '127.0.0.1', 'NAME': 'shop'}} [{'port': 2}] laid 1 kept http://real"
    ), done.stderr


def test_a_module_at_the_top_and_an_import_by_name(python):
    done = python("from flat import HOST; import flat; print(HOST, flat.__file__)", {"flat": {"HOST": "laid"}})
    assert done.stdout.startswith("laid ")
    assert done.stdout.strip().endswith("flat.py")


def test_a_path_that_leads_nowhere_is_told_with_what_is_missing(python):
    done = python("import flat", {"flat": {"DATABASES.other.HOST": "x"}})
    assert "cannot lay DATABASES.other.HOST over flat: there is no DATABASES.other" in done.stderr
    assert done.returncode == 1


def test_a_module_that_is_not_there_is_missing_as_without_an_overlay(python):
    done = python("import nowhere", {"nowhere": {"HOST": "x"}})
    assert done.stderr.strip().endswith("ModuleNotFoundError: No module named 'nowhere'")


def test_a_preload_runs_before_the_app_and_a_broken_one_says_so(python, tmp_path):
    (tmp_path / "first.py").write_text("import builtins; builtins.seen = 'first'")
    (tmp_path / "broken.py").write_text("1 / 0")
    done = python("print(seen)", preload=("broken.py", "first.py"))
    assert done.stdout.strip() == "first"
    assert "jobcheck: the preload" in done.stderr
    assert "ZeroDivisionError" in done.stderr


def test_certifi_tells_the_runs_authority_to_whoever_asks_it(python, tmp_path):
    (tmp_path / "certifi").mkdir()
    (tmp_path / "certifi" / "__init__.py").write_text("from .core import where")
    (tmp_path / "certifi" / "core.py").write_text("def where():\n    return 'its own'")
    code = "import certifi; from certifi import core, where; print(certifi.where(), where(), core.where())"
    assert python(code).stdout.split() == ["its", "own"] * 3
    assert python(code, ca="/run/ca.pem").stdout.split() == ["/run/ca.pem"] * 3
    done = python("import certifi, flat; print(certifi.where(), flat.HOST)", {"flat": {"HOST": "laid"}}, ca="/ca.pem")
    assert done.stdout.split() == ["/ca.pem", "laid"]
