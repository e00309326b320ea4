"""What an app's files say, without running any."""

from __future__ import annotations

from pathlib import Path

from jobcheck.onboarding.scan import scan


def project(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_celery_apps_are_named_as_they_are_imported(tmp_path):
    found = scan(project(tmp_path, src__shop__jobs_py="from celery import Celery\n\napp = Celery('shop')\n"))
    assert found.celery == [("shop.jobs:app", "src/shop/jobs.py:3")]
    assert found.paths == [".", "src"]


def test_apps_of_tests_and_of_installed_packages_are_none(tmp_path):
    text = "app = Celery('x')\n"
    folder = project(tmp_path, tests__jobs_py=text, node_modules__x_py=text)
    (folder / "old" / "lib").mkdir(parents=True)
    (folder / "old" / "pyvenv.cfg").touch()
    (folder / "old" / "lib" / "x.py").write_text(text)
    assert scan(folder).celery == []


def test_settings_modules_and_the_tests_own(tmp_path):
    line = "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'config.{}')\n"
    forced = "import os\nos.environ['DJANGO_SETTINGS_MODULE'] = 'config.live'\n"
    folder = project(tmp_path, manage_py=line.format("local"), config__wsgi_py=forced)
    (folder / "setup.cfg").write_text("[tool:pytest]\nDJANGO_SETTINGS_MODULE = config.test\n")
    found = scan(folder)
    assert found.settings == {"config.local": ["manage.py"], "config.live": ["config/wsgi.py"]}
    assert found.test_settings == "config.test"
    assert found.manage == "manage.py"


def test_variables_are_found_in_whichever_way_they_are_read(tmp_path):
    text = """
import os
A = os.environ["A_URL"]
B = os.environ.get("B_HOST", "localhost")
C = os.getenv("C_PORT", 25)
D = env("D_KEY", default="d")
E = env.int("E_PORT")
F = config("F_NAME")
"""
    found = scan(project(tmp_path, shop_py=text)).variables
    assert {name: one.default for name, one in found.items()} == {
        "A_URL": None,
        "B_HOST": "localhost",
        "C_PORT": "25",
        "D_KEY": "d",
        "E_PORT": None,
        "F_NAME": None,
    }
    assert found["B_HOST"].where == "shop.py:4"


def test_dependencies_come_from_wherever_they_stand(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\ndependencies = ["Django>=5"]\noptional-dependencies = {x = ["boto3"]}\n'
        '[dependency-groups]\ndev = ["pytest_django", {include-group = "x"}]\n'
    )
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "base.txt").write_text("# comment\n-r other.txt\ncelery[redis,auth]==5.4\n")
    assert scan(tmp_path).packages == {"django", "boto3", "pytest-django", "celery", "redis"}


def test_files_that_are_no_python_are_left_out(tmp_path):
    found = scan(project(tmp_path, broken_py="def :\n", app_py="app = Celery()\n"))
    assert [name for name, _ in found.celery] == ["app:app"]


def test_a_celery_app_that_a_factory_makes_is_guessed_where_none_is_made_openly(tmp_path):
    text = """
from factory import create_app, make_celery
CELERY_OPTIONS = make_celery_options()
URL = {"celery": 1}
app = create_app()
celery = app.extensions["flask-celeryext"].celery
"""
    folder = project(tmp_path, web_py="jobs = make_celery(app)\n", worker_py=text)
    assert scan(folder).celery == [("worker:celery", "worker.py:6"), ("web:jobs", "web.py:1")]
    project(folder, open_py="from celery import Celery\napp = Celery()\n")
    assert scan(folder).celery == [("open:app", "open.py:2")]
