"""Apps that we did not write, from PyPI: a newcomer's script for each, as the README beside its small project says.

Each gets an environment of its own, in which it and jobcheck are installed as they would be by its users.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOREIGN = ROOT / "scenarios" / "apps" / "foreign"
WITHIN = 400
"""Seconds for one command on a machine that is busy; alone it takes some five."""
pytestmark = pytest.mark.timeout(900)


class Newcomer:
    """Somebody with a copy of a project and a fresh environment, who types commands there."""

    def __init__(self, name: str, folder: Path) -> None:
        self.folder = Path(shutil.copytree(FOREIGN / name, folder / "project"))
        self.readme = (self.folder / "README.md").read_text()
        self.bin = folder / "venv" / "bin"
        uv = str(Path(sys.executable).with_name("uv"))
        self._run(uv, "venv", "--quiet", "--python", sys.executable, str(self.bin.parent))
        packages = ["-r", "requirements.txt", f"{ROOT}[tls]"]
        self._run(uv, "pip", "install", "--quiet", "--python", str(self.bin / "python"), *packages)

    def types(self, *words: str, code: int = 0) -> str:
        return self._run(str(self.bin / "jobcheck"), *words, code=code)

    def completes(self, job: str) -> None:
        """Puts the README's function of this name in the place of the one that `init` wrote."""
        function = re.search(rf"```python\n(def {job}\(.*?)```", self.readme, re.S)
        assert function is not None
        rig = self.folder / "tests" / "jobs" / "jobcheck_rig.py"
        text, changed = re.subn(
            rf"def {job}\(case\):\n(?:    .*\n|\n(?=    ))*", lambda _: function[1], rig.read_text()
        )
        assert changed == 1, text
        rig.write_text(text)

    def _run(self, *command: str, code: int = 0) -> str:
        env = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "VIRTUAL_ENV", "PYTHONPATH")}
        done = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=False, timeout=WITHIN
        )
        assert done.returncode == code, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout


def test_a_django_app_with_its_own_jobs_from_pypi(tmp_path):
    newcomer = Newcomer("django-webhook", tmp_path)
    said = newcomer.types("init")
    assert "webhook    provider: calls to example.com are led there" in said
    assert "made up    SECRET_KEY" in said
    assert "next: jobcheck probe fire_webhook" in said
    newcomer.completes("fire_webhook")

    seen = newcomer.types("probe", "fire_webhook")
    assert re.search(r"db INSERT django_webhook_webhookevent +django_webhook/tasks\.py:42 fire_webhook\n", seen)
    assert re.search(r"webhook POST /\* +django_webhook/tasks\.py:51 fire_webhook\n", seen)
    command = seen.splitlines()[-1]
    assert command == "jobcheck explore fire_webhook --expect 'exactly_once: webhook POST /*'"

    found = newcomer.types(*shlex.split(command)[1:], code=1)
    assert "webhook POST /* happens again when the worker dies after webhook POST /*" in found
    assert re.search(r"code +django_webhook/tasks\.py:51 fire_webhook\n", found)
    assert "6 points, 7 strikes, 7 fired: 3 ok, 2 duplicated (1 cause), 2 lost (1 cause)" in found


def test_a_service_without_django_from_pypi(tmp_path):
    newcomer = Newcomer("invenio-mail", tmp_path)
    said = newcomer.types("init")
    assert "Celery, worker:celery (worker.py:5); 2 tasks" in said
    assert "smtp: MAIL_SERVER, MAIL_PORT" in said
    assert "next: jobcheck probe send_email" in said
    newcomer.completes("send_email")

    seen = newcomer.types("probe", "send_email")
    assert re.search(r"mail DATA +invenio_mail/tasks\.py:99 _send\n", seen)
    assert seen.splitlines()[-1] == "jobcheck explore send_email --expect 'at_least_once: mail'"

    found = newcomer.types("explore", "send_email", "--expect", "exactly_once: mail", code=1)
    assert "mail happens again when the worker dies after mail DATA" in found
    assert re.search(r"code +invenio_mail/tasks\.py:99 _send\n", found)
    assert "5 points, 6 strikes, 6 fired: 2 ok, 2 duplicated (1 cause), 2 lost (1 cause)" in found
