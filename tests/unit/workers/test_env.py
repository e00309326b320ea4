"""What a process of a run gets to see of the developer's shell."""

from __future__ import annotations

from pathlib import Path

from jobcheck.workers.env import scrubbed

SHELL = {
    "PATH": "/bin",
    "LC_CTYPE": "de_DE.UTF-8",
    "LANG": "C",
    "TZ": "Europe/Berlin",
    "HOME": "/home/me",
    "AWS_SECRET_ACCESS_KEY": "x",
    "DATABASE_URL": "postgres://production/",
    "HTTPS_PROXY": "http://proxy",
    "PYTHONPATH": "/mine",
}


def test_nothing_but_what_a_program_needs_to_start_is_handed_on() -> None:
    assert scrubbed({}, environ=SHELL) == {
        "PATH": "/bin",
        "LC_CTYPE": "de_DE.UTF-8",
        "LANG": "C",
        "TZ": "Europe/Berlin",
        "PYTHONUNBUFFERED": "1",
    }


def test_what_the_rig_says_wins() -> None:
    env = scrubbed({"TZ": "UTC", "DATABASE_URL": "postgres://127.0.0.1/", "PYTHONUNBUFFERED": ""}, environ=SHELL)
    assert (env["TZ"], env["DATABASE_URL"], env["PYTHONUNBUFFERED"]) == ("UTC", "postgres://127.0.0.1/", "")


def test_home_is_a_folder_of_the_run() -> None:
    assert scrubbed({}, home=Path("/tmp/run"), environ=SHELL)["HOME"] == "/tmp/run"


def test_our_own_python_path_comes_before_the_rigs() -> None:
    assert scrubbed({"PYTHONPATH": "/app"}, python_path=["/ours"], environ=SHELL)["PYTHONPATH"] == "/ours:/app"
    assert scrubbed({}, python_path=["/ours"], environ=SHELL)["PYTHONPATH"] == "/ours"
    assert scrubbed({"PYTHONPATH": "/app"}, environ=SHELL)["PYTHONPATH"] == "/app"


def test_version_managers_still_find_their_interpreters(tmp_path: Path) -> None:
    (tmp_path / ".pyenv").mkdir()
    env = scrubbed({}, environ={"HOME": str(tmp_path)})
    assert env["PYENV_ROOT"] == str(tmp_path / ".pyenv")
    assert "RBENV_ROOT" not in env
    assert env["PATH"], "a process always has one"
