"""Accepted findings: a reviewed file with reasons and ends."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from jobcheck.errors import UsageError
from jobcheck.store.accepted import FILE, Accepted, add, load, review

MARCH = dt.date(2027, 3, 31)


def test_what_is_added_is_loaded_and_comments_stay(tmp_path: Path) -> None:
    add(tmp_path, "c07e11", 'they said: "fine"\n\x7f\\', MARCH)
    file = tmp_path / FILE
    file.write_text(file.read_text() + "# a reviewer's note\n")
    add(file, "aa0000", "known", MARCH)
    assert load(tmp_path) == (
        Accepted("c07e11", 'they said: "fine"\n\x7f\\', MARCH),
        Accepted("aa0000", "known", MARCH),
    )
    assert "# a reviewer's note" in file.read_text()


def test_a_missing_file_accepts_nothing(tmp_path: Path) -> None:
    assert load(tmp_path) == ()


def test_the_same_id_twice_and_an_empty_reason_are_refused(tmp_path: Path) -> None:
    add(tmp_path, "c07e11", "known", MARCH)
    with pytest.raises(UsageError, match="already in"):
        add(tmp_path, "c07e11", "again", MARCH)
    with pytest.raises(UsageError, match="no reason"):
        add(tmp_path, "aa0000", " ", MARCH)


def test_an_entry_holds_on_its_last_day_and_not_after(tmp_path: Path) -> None:
    entries = [Accepted("c07e11", "known", MARCH)]
    assert review(entries, ["c07e11"], MARCH).holding == {"c07e11": "known"}
    after = review(entries, ["c07e11"], MARCH + dt.timedelta(days=1))
    assert after.holding == {}
    assert after.lines == ("accepted finding c07e11 expired on 2027-03-31: known",)


def test_an_entry_that_names_nothing_found_is_reported(tmp_path: Path) -> None:
    got = review([Accepted("c07e11", "known", MARCH)], ["other"], MARCH)
    assert got.vanished == (Accepted("c07e11", "known", MARCH),)
    assert got.lines == (f"accepted finding c07e11 was not found; remove it from {FILE}",)


def test_dates_may_be_texts_or_times(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(
        '[[accepted]]\nid = "a"\nbecause = "b"\nuntil = "2027-03-31"\n'
        '[[accepted]]\nid = "c"\nbecause = "b"\nuntil = 2027-03-31T12:00:00Z\n'
    )
    assert [item.until for item in load(tmp_path)] == [MARCH, MARCH]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[accepted]]\nid = 7", "expected a text under `id`, got 7"),
        ('[[accepted]]\nid = "a"', "expected a text under `because`, got None"),
        ('[[accepted]]\nid = "a"\nbecause = "b"', "expected a date such as 2027-03-31 under `until`, got None"),
        ('[[accepted]]\nid = "a"\nbecause = "b"\nuntil = "soon"', "under `until`, got 'soon'"),
        ("accepted = 1", r"expected \[\[accepted\]\] tables"),
        ("accepted = [1]", "expected a table, got 1"),
        ("= ", "is no TOML"),
    ],
)
def test_a_wrong_file_says_what_was_expected_and_where(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(UsageError, match=said):
        load(tmp_path)
