"""The settings of [tool.jobcheck]."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.config import Settings, merged, project_of, read_settings, rig_from, seconds, with_profile
from jobcheck.errors import UsageError


def project(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_a_project_without_a_table_has_the_defaults(tmp_path):
    assert read_settings(tmp_path) == Settings()
    assert read_settings(project(tmp_path, "[tool.other]\nrig = 1\n")) == Settings()


def test_keys_may_have_dashes_or_underscores(tmp_path):
    text = '[tool.jobcheck]\nrig = "tests/rig.py:shop"\nmax-points = 3\nfail_on = "all"\nassume = "at-least-once"\n'
    settings = read_settings(project(tmp_path, text))
    assert settings == Settings(rig="tests/rig.py:shop", max_points=3, fail_on="all", assume="at-least-once")


def test_a_table_may_be_written_inline(tmp_path):
    assert read_settings(project(tmp_path, "[tool]\njobcheck = {seed = 7}\n")).seed == 7


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lane = 2", "has no key 'lane'; there are rig, reports, seed,"),
        ("lanes = 0", "lanes: expected a number from 1 on, got 0"),
        ("seed = true", "seed: expected a number from 0 on, got True"),
        ("rig = 3", "rig: expected a text, got 3"),
        ('boot = "hot"', "boot: expected one of zygote, standby, cold, got 'hot'"),
        ('assume = "exactly-once"', "assume: expected at-least-once, got 'exactly-once'"),
        ("lanes =", "is no TOML"),
        ('deadline = "0s"', "deadline: expected a time such as 60s or 5m, got '0s'"),
        ("keep-bodies = 2", "keep-bodies: expected true or false, got 2"),
        ('secrets = ["iban", 3]', "secrets: expected names of fields such as"),
        ('secrets = ["--"]', "secrets: expected names of fields such as"),
        ("ruleset = 2", "ruleset: this version knows the rulesets 1, got 2"),
        ("ruleset = true", "ruleset: this version knows the rulesets 1, got True"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path, line, said):
    with pytest.raises(UsageError) as caught:
        read_settings(project(tmp_path, f"[tool.jobcheck]\n{line}\n"))
    assert said in caught.value.message
    assert str(tmp_path / "pyproject.toml") in caught.value.message


def test_the_nearest_right_key_is_offered():
    with pytest.raises(UsageError) as caught:
        merged(Settings(), {"failon": "all"}, where="here")
    assert caught.value.hint == "did you mean fail-on?"


def test_texts_of_an_ini_file_are_read_as_numbers():
    assert merged(Settings(), {"max_points": "12", "seed": " 4 "}, where="here") == Settings(max_points=12, seed=4)


def test_lists_and_flags_are_read_from_toml_and_from_an_ini_file(tmp_path):
    expected = Settings(secrets=("iban", "pin_code"), keep_bodies=True, real_clocks=True, ruleset=1)
    text = '[tool.jobcheck]\nsecrets = ["iban", "pin_code"]\nkeep-bodies = true\nreal-clocks = true\nruleset = 1\n'
    assert read_settings(project(tmp_path, text)) == expected
    values = {"secrets": "iban, pin_code", "keep_bodies": "yes", "real_clocks": "on", "ruleset": "1"}
    assert merged(Settings(), values, where="here") == expected


def test_an_unknown_ruleset_names_those_that_there_are_and_where_to_look(tmp_path):
    with pytest.raises(UsageError) as caught:
        read_settings(project(tmp_path, "[tool.jobcheck]\nruleset = 7\n"))
    assert caught.value.hint == "ruleset = 1, or a version of jobcheck that knows it (CHANGELOG.md)"


def test_the_project_is_the_nearest_folder_with_a_pyproject(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    project(tmp_path, "")
    assert project_of(inner) == tmp_path
    project(tmp_path / "a", "")
    assert project_of(inner) == tmp_path / "a"


def test_a_rig_is_named_as_it_is_found_again_from_the_project(tmp_path):
    assert rig_from("rig.py:shop", tmp_path / "tests", tmp_path) == "tests/rig.py:shop"
    assert rig_from("../rig.py:shop", tmp_path / "tests", tmp_path / "tests") == f"{tmp_path}/rig.py:shop"
    assert rig_from("shop.rig:shop", tmp_path / "tests", tmp_path) == "shop.rig:shop"


def test_a_profile_stands_for_its_values_and_a_project_may_say_otherwise(tmp_path):
    text = '[tool.jobcheck]\nprofile = "ci"\n[tool.jobcheck.profiles.ci]\nbudget = "90s"\nlanes = 3\n'
    assert read_settings(project(tmp_path, text)) == Settings(profile="ci", budget="90s", lanes=3)
    assert with_profile(tmp_path, Settings(lanes=1), "quick") == Settings(
        profile="quick", lanes=1, budget="20s", max_points=12
    )


def test_an_unknown_profile_names_those_that_are_there(tmp_path):
    with pytest.raises(UsageError, match="no profile 'nightli'; there are quick, ci, nightly") as caught:
        with_profile(tmp_path, Settings(), "nightli")
    assert caught.value.hint == "did you mean nightly?"


@pytest.mark.parametrize(("text", "expected"), [("60s", 60), ("1.5m", 90), ("2h", 7200), ("", 0)])
def test_a_budget_is_a_time(text, expected):
    assert seconds(text) == expected


def test_a_budget_that_is_no_time_is_named():
    with pytest.raises(UsageError, match="budget: expected a time such as 60s or 5m, got 'fast'"):
        merged(Settings(), {"budget": "fast"}, where="here")
