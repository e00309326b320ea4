"""Server wheels in a private cache: installed once by a real installer from a local folder, also by two at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from jobcheck.errors import ServiceError
from jobcheck.services import wheels
from jobcheck.services.wheels import Wheel

TINY = Wheel("tinyserver", "1.2", "tinyserver/bin/*")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one small wheel, the only place that installers may look at."""
    folder = tmp_path / "index"
    folder.mkdir()
    with zipfile.ZipFile(folder / "tinyserver-1.2-py3-none-any.whl", "w") as file:
        info = "tinyserver-1.2.dist-info"
        file.writestr("tinyserver/bin/server", "#!/bin/sh\n")
        metadata = "Metadata-Version: 2.1\nName: tinyserver\nVersion: 1.2\nRequires-Dist: not-there\n"
        file.writestr(f"{info}/METADATA", metadata)
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in file.namelist()))
    for name, value in (("FIND_LINKS", str(folder)), ("NO_INDEX", "1")):
        monkeypatch.setenv(f"UV_{name}", value)
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("JOBCHECK_CACHE", str(tmp_path / "cache"))
    return folder


def test_a_wheel_is_installed_on_demand_without_what_it_depends_on(index: Path, tmp_path: Path) -> None:
    assert wheels.installed(TINY) is None
    program = asyncio.run(wheels.provide(TINY))
    assert program == tmp_path / "cache/services-1/tinyserver-1.2/tinyserver/bin/server"
    assert wheels.installed(TINY) == program
    for one in index.iterdir():
        one.unlink()
    assert asyncio.run(wheels.provide(TINY)) == program, "the second time needs no installer"


def test_two_runs_at_once_install_it_once(index: Path, tmp_path: Path) -> None:
    code = (
        "import asyncio, sys; from jobcheck.services.wheels import Wheel, provide\n"
        "print(asyncio.run(provide(Wheel('tinyserver', '1.2', 'tinyserver/bin/*'))))"
    )
    root = Path(__file__).parents[3]
    runs = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(3)
    ]
    said = {run.communicate(timeout=60)[0].strip() for run in runs}
    assert said == {str(wheels.installed(TINY))}
    kept = {path.name for path in (tmp_path / "cache/services-1").iterdir()}
    assert kept == {"tinyserver-1.2", "tinyserver.lock"}, "no half-installed neighbour is left"


def test_a_wheel_that_cannot_be_had_is_one_clear_error(index: Path, tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match=r"could not install the wheel tinyserver 9\.9 into") as caught:
        asyncio.run(wheels.provide(Wheel("tinyserver", "9.9", "x")))
    assert "9.9" in caught.value.message.split("into", 1)[1], "the installer's own words are there"
    assert "give a url" in caught.value.hint
    assert list((tmp_path / "cache/services-1").glob("*9.9*")) == []


def test_a_wheel_without_a_program_for_this_platform_is_an_error(index: Path) -> None:
    with pytest.raises(ServiceError, match="holds no tinyserver/bin-for-another-system"):
        asyncio.run(wheels.provide(Wheel("tinyserver", "1.2", "tinyserver/bin-for-another-system")))


def test_a_cache_that_cannot_be_written_is_an_error_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JOBCHECK_CACHE", str(tmp_path / "file"))
    with pytest.raises(ServiceError, match="could not keep the wheel") as caught:
        asyncio.run(wheels.provide(TINY))
    assert "JOBCHECK_CACHE" in caught.value.hint


def test_the_cache_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JOBCHECK_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert wheels.cache_root() == tmp_path / "jobcheck"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert wheels.cache_root() == Path.home() / ".cache/jobcheck"


def test_a_program_in_python_is_installed_with_what_it_depends_on(index: Path, tmp_path: Path) -> None:
    program = Wheel("tinyserver", "1.2", "tinyserver/bin/*", also=("tinyserver>=1",))
    with pytest.raises(ServiceError, match="not-there"):
        asyncio.run(wheels.provide(program))
    assert wheels.home_of(program).name == f"tinyserver-1.2-py{sys.version_info[0]}{sys.version_info[1]}"
