"""Run folders: names, the `latest` link, and what is said when the disk refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jobcheck.clock import ManualClock
from jobcheck.errors import Aborted, UsageError
from jobcheck.store.files import write_whole
from jobcheck.store.folder import RunFolder, slug

WHEN = 1796000000.0  # 2026-11-30 00:53:20 UTC


def test_a_run_folder_is_named_by_time_and_name(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "reports", "demo", ManualClock(WHEN))
    assert folder.path == tmp_path / "reports" / "20261130-005320-demo"
    assert folder.path.is_dir()
    assert folder.started == "2026-11-30T00:53:20Z"


def test_runs_of_one_second_get_folders_of_their_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: RunFolder.create(tmp_path, "demo", ManualClock(WHEN)), range(24)))
    assert len({folder.path for folder in folders}) == 24


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("tests/test_jobs.py::test_a[x y]", "tests-test_jobs.py-test_a-x-y"),
        ("../../etc", "etc"),
        ("", "run"),
        ("é/\0", "run"),
        ("a" * 300, "a" * 60),
    ],
)
def test_a_name_never_leaves_its_folder(name: str, safe: str) -> None:
    assert slug(name) == safe


def test_latest_names_the_last_finished_run_and_not_the_running_one(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path, "a", ManualClock(WHEN))
    first.finish()
    second = RunFolder.create(tmp_path, "b", ManualClock(WHEN))
    latest = tmp_path / "latest"
    assert latest.resolve() == first.path.resolve()
    second.finish()
    assert latest.resolve() == second.path.resolve()
    assert not latest.readlink().is_absolute()
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted([first.name, second.name, "latest"])


def test_a_file_of_the_users_that_is_called_latest_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "latest").write_text("mine")
    with pytest.raises(UsageError, match="not a link"):
        RunFolder.create(tmp_path, "a", ManualClock(WHEN)).finish()
    assert (tmp_path / "latest").read_text() == "mine"


def test_a_root_that_is_a_file_is_one_clear_error(tmp_path: Path) -> None:
    root = tmp_path / "reports"
    root.write_text("")
    with pytest.raises(UsageError, match=r"cannot make a run folder in .*reports/deep: Not a directory"):
        RunFolder.create(root / "deep", "demo", ManualClock(WHEN))


def test_a_file_system_that_takes_no_folders_is_one_clear_error() -> None:
    with pytest.raises(UsageError, match="cannot make a run folder in /proc/jobcheck"):
        RunFolder.create(Path("/proc/jobcheck"), "demo", ManualClock(WHEN))


def test_a_full_disk_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(Aborted, match="No space left on device"):
        write_whole(tmp_path / "a.txt", "x")
    assert list(tmp_path.iterdir()) == []


def test_the_temporary_folder_is_short_private_and_gone_afterwards(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, "demo", ManualClock(WHEN)) as folder:
        temp = folder.temp
        assert folder.temp == temp
        assert temp.stat().st_mode & 0o777 == 0o700
        assert len(str(temp)) < 60
        (temp / "socket").write_text("")
    assert not temp.exists()
    assert folder.path.exists()


def test_a_stored_run_opens_by_its_folder_by_a_file_of_it_and_by_latest(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "demo", ManualClock(WHEN))
    write_whole(folder.report, "{}")
    folder.finish()
    for path in (folder.path, folder.report, tmp_path / "latest"):
        assert RunFolder.open(path).path == folder.path.resolve()


def test_a_folder_without_a_run_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run at"):
        RunFolder.open(tmp_path)
    with pytest.raises(UsageError, match="no run at"):
        RunFolder.open(tmp_path / "missing" / "report.json")


def test_output_files_lie_within_the_run(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "demo", ManualClock(WHEN))
    assert folder.output("w1/..").parent == folder.path / "output"
