"""A version of the app is a folder, an interpreter or a git revision, each told apart and each checked."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from jobcheck import Rig, UsageError, celery, redis
from jobcheck.faults.where import Where
from jobcheck.runner.scenarios.versions import version_rigs
from jobcheck.runner.stage import Stage


class Place:
    """As much of a stage as a version needs: a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder


def rigs(tmp_path: Path, **versions: str) -> dict[str, Rig]:
    """The rigs of these versions; the app lies in `repo/app`."""
    rig = Rig(celery("shop.app:app"), {"broker": redis()}, root=str(tmp_path / "repo" / "app"))
    (tmp_path / "run").mkdir()
    stage: Stage = Place(tmp_path / "run")  # type: ignore[assignment]
    return asyncio.run(version_rigs(rig, versions, stage, tmp_path, Where("s.yaml", 1, {"versions": 4})))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose app was changed after the tag `v1`."""
    repo = tmp_path / "repo"
    app = repo / "app" / "shop"
    app.mkdir(parents=True)

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(repo), *identity, *arguments], check=True, capture_output=True)

    git("init", "-q")
    for version in ("one", "two"):
        (app / "__init__.py").write_text(f"VERSION = {version!r}\n")
        git("add", ".")
        git("commit", "-qm", version)
        if version == "one":
            git("tag", "v1")
    return repo


def test_a_revision_is_checked_out_beside_the_run_and_the_repository_stays_as_it_is(
    tmp_path: Path, repository: Path
) -> None:
    """Only the app's own folder, as it was."""
    found = rigs(tmp_path, old="v1", head="HEAD")
    assert (found["old"].folder / "shop" / "__init__.py").read_text() == "VERSION = 'one'\n"
    assert (found["head"].folder / "shop" / "__init__.py").read_text() == "VERSION = 'two'\n"
    assert (repository / "app" / "shop" / "__init__.py").read_text() == "VERSION = 'two'\n"
    assert found["old"].folder != found["head"].folder != found[""].folder


def test_a_folder_and_an_interpreter_are_told_by_what_they_are(tmp_path: Path, repository: Path) -> None:
    """Paths are relative to the scenario's folder; a link to a python stays a link."""
    (tmp_path / "next").mkdir()
    (tmp_path / "python").symlink_to(sys.executable)
    found = rigs(tmp_path, folder="next", python="python")
    assert found["folder"].folder == (tmp_path / "next").resolve()
    assert found["python"].system.interpreter == str(tmp_path / "python")
    assert found["python"].folder == found[""].folder


WRONG = {
    "v9": "no such path, and no such revision in the repository of {root}",
    "--help": "no such path, and no such revision in the repository of {root}",
}


@pytest.mark.parametrize("said", WRONG)
def test_what_is_none_of_the_three_is_told_with_its_line(tmp_path: Path, repository: Path, said: str) -> None:
    with pytest.raises(UsageError) as error:
        rigs(tmp_path, next=said)
    expected = f"s.yaml:4: version 'next': expected a folder, a Python interpreter or a git revision, got {said!r}: "
    assert error.value.message == expected + WRONG[said].format(root=repository / "app")


def test_a_revision_needs_a_repository(tmp_path: Path) -> None:
    (tmp_path / "repo" / "app").mkdir(parents=True)
    with pytest.raises(UsageError, match="is in no git repository"):
        rigs(tmp_path, next="v1")
