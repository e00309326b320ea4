"""The failure database: remembered, found by prefix, forgotten, and safe when many processes write."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jobcheck.errors import UsageError
from jobcheck.history.records import Point, Strike
from jobcheck.store.failures import Failure, Failures


def failure(key: str, subject: str = "naive", mode: str = "queue", point: str = "9f2c") -> Failure:
    return Failure(
        id=key,
        subject=subject,
        mode=mode,
        rig="tests/rig.py:shop",
        function="tests.rig:new_invoice",
        points=(Point(point, "db", "postgres COMMIT", 1, code="jobs.py:31 charge_card"),),
        strikes=(Strike(f"s-{point}", point),),
        node="tests/test_jobs.py::test_invoice",
        seed=7,
        command=f"jobcheck replay {key}",
        title="payments POST /charges happens twice",
    )


def test_what_is_remembered_is_found_by_another_reader(tmp_path: Path) -> None:
    Failures(tmp_path).remember([failure("c07e11"), failure("c1aa00")])
    assert Failures(tmp_path).lookup("c07e11") == failure("c07e11")
    assert [item.id for item in Failures(tmp_path).all()] == ["c07e11", "c1aa00"]


def test_a_prefix_is_enough_while_it_is_the_only_one(tmp_path: Path) -> None:
    known = Failures(tmp_path)
    known.remember([failure("c07e11"), failure("c1aa00")])
    assert known.lookup("C0").id == "c07e11"
    with pytest.raises(UsageError, match="several findings begin with 'c': c07e11, c1aa00"):
        known.lookup("c")


def test_a_near_miss_names_the_closest(tmp_path: Path) -> None:
    known = Failures(tmp_path)
    known.remember([failure("c07e11"), failure("ffffff")])
    with pytest.raises(UsageError, match="no finding 'c07f11'; the closest is c07e11"):
        known.lookup("c07f11")


def test_an_unknown_id_says_what_is_known(tmp_path: Path) -> None:
    known = Failures(tmp_path)
    with pytest.raises(UsageError, match="none is remembered yet"):
        known.lookup("c07e11")
    known.remember([failure("c07e11")])
    for key in ("zzzz", ""):
        with pytest.raises(UsageError, match="known: c07e11"):
            known.lookup(key)


def test_the_same_id_again_replaces_the_older_one(tmp_path: Path) -> None:
    known = Failures(tmp_path)
    known.remember([failure("c07e11", point="old")])
    known.remember([failure("c07e11", point="new")])
    assert known.failing_points("naive") == ["new"]


def test_a_fixed_finding_is_forgotten(tmp_path: Path) -> None:
    known = Failures(tmp_path)
    known.remember([failure("c07e11")])
    assert known.forget("c07e11") is True
    assert known.forget("c07e11") is False
    assert known.all() == []


def test_a_subject_explored_to_its_end_replaces_what_was_known_of_it_alone(tmp_path: Path) -> None:
    known = Failures(tmp_path)
    known.remember([failure("a1"), failure("a2"), failure("a3", mode="handler"), failure("a4", subject="locked")])
    gone = known.renew("naive", "queue", [failure("a2"), failure("a5")])
    assert [item.id for item in gone] == ["a1"]
    assert [item.id for item in known.all()] == ["a2", "a3", "a4", "a5"]


def test_failing_points_are_those_of_the_subject_without_repeats(tmp_path: Path) -> None:
    known = Failures(tmp_path)
    known.remember(
        [
            failure("a1", point="p1"),
            failure("a2", point="p1"),
            failure("a3", point="p2", mode="handler"),
            failure("a4", subject="other", point="p3"),
        ]
    )
    assert known.failing_points("naive") == ["p1", "p2"]
    assert known.failing_points("naive", "handler") == ["p2"]
    assert known.failing_points("nobody") == []


def test_nothing_is_written_before_something_is_remembered(tmp_path: Path) -> None:
    known = Failures(tmp_path)
    known.remember([])
    known.renew("naive", "queue", [])
    known.forget("c07e11")
    known.failing_points("naive")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_keeps_itself_out_of_git(tmp_path: Path) -> None:
    Failures(tmp_path).remember([failure("c07e11")])
    assert "*" in (tmp_path / ".jobcheck" / ".gitignore").read_text().splitlines()


def test_a_damaged_file_is_one_clear_error(tmp_path: Path) -> None:
    known = Failures(tmp_path)
    known.remember([failure("c07e11")])
    for text in ("<<<<<<< HEAD", "[]", '{"findings": [{"id": "x"}]}', '{"findings": [1]}'):
        known.path.write_text(text)
        with pytest.raises(UsageError, match="is damaged"):
            known.all()


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / ".jobcheck").write_text("")
    with pytest.raises(UsageError, match="cannot"):
        Failures(tmp_path).remember([failure("c07e11")])


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    """xdist workers share one failure database."""
    script = (
        "import sys; from pathlib import Path; from jobcheck.store.failures import Failure, Failures\n"
        "for n in range(25): Failures(Path(sys.argv[1])).remember([Failure(f'{sys.argv[2]}-{n}', 'naive', 'queue')])"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), str(n)]) for n in range(4)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    assert len(Failures(tmp_path).all()) == 100


def test_what_was_not_struck_again_stays_known(tmp_path: Path) -> None:
    """Races alone say nothing of what kills have found."""
    known = Failures(tmp_path)
    raced = replace(failure("a2"), strikes=(Strike("s2", "p", "race"),))
    both = replace(failure("a3"), strikes=(Strike("s3", "p"), Strike("s4", "p", "race")))
    known.remember([failure("a1"), raced, both])
    gone = known.renew("naive", "queue", [], lambda strike: strike.fault == "race")
    assert [item.id for item in gone] == ["a2", "a3"]
    assert [item.id for item in known.all()] == ["a1"]
