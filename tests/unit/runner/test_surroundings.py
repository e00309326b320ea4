"""What a rig's processes are surrounded by."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import jobcheck
from jobcheck.errors import UsageError
from jobcheck.runner.surroundings import preload_variables, surroundings
from jobcheck.services.spec import Address

HERE = {
    "broker": Address("redis", "127.0.0.7", 6001, path="3"),
    "db": Address("postgresql", "127.0.0.7", 6002, user="me", password="pw", path="clone"),
}


def rig(**options):
    return jobcheck.Rig(
        jobcheck.celery("shop:app"), upstreams={"broker": jobcheck.redis(), "db": jobcheck.postgres()}, **options
    )


def test_every_part_of_an_address_is_a_template(tmp_path):
    env = {"A": "{db.host}|{db.port}|{db.user}|{db.password}|{db.name}|{db.db}", "B": "{db.url}", "C": "{broker.db}"}
    mine = surroundings(rig(env=env), HERE, folder=tmp_path, name="w1")
    assert mine["A"] == "127.0.0.7|6002|me|pw|clone|clone"
    assert mine["B"] == "postgresql://me:pw@127.0.0.7:6002/clone"
    assert mine["C"] == "3"


def test_djangos_settings_are_named_set_up_and_laid_over(tmp_path):
    settings = jobcheck.django("config.settings.production", override={"DATABASES.default.HOST": "{db.host}"})
    config = jobcheck.overlay("shop.config", {"SERVERS": [{"host": "{db.host}", "port": 1}]})
    mine = surroundings(rig(settings=[settings, config]), HERE, folder=tmp_path, name="w1")
    assert mine["DJANGO_SETTINGS_MODULE"] == "config.settings.production"
    assert mine["JOBCHECK_BEFORE"] == "jobcheck_django"
    assert json.loads(Path(mine["JOBCHECK_OVERLAY"]).read_text()) == {
        "config.settings.production": {"DATABASES.default.HOST": "127.0.0.7"},
        "shop.config": {"SERVERS": [{"host": "127.0.0.7", "port": 1}]},
    }


def test_the_rigs_own_python_path_is_kept_behind_ours(tmp_path):
    one = rig(env={"PYTHONPATH": "src"})
    path = surroundings(one, HERE, folder=tmp_path, name="w1")["PYTHONPATH"].split(os.pathsep)
    assert path[-1] == str(one.folder / "src")
    assert path[0].endswith("preload")


def test_a_wrong_template_in_an_overlay_names_its_place():
    with pytest.raises(UsageError, match=r"DATABASES.default.HOST over config.settings of the rig: no upstream 'dbb'"):
        rig(settings=jobcheck.django("config.settings", override={"DATABASES.default.HOST": "{dbb.host}"}))
    with pytest.raises(UsageError, match="expected a settings module such as"):
        jobcheck.django("config/settings.py")
    with pytest.raises(UsageError, match="must be texts, numbers, lists or dicts"):
        jobcheck.overlay("shop.config", {"A": object()})


def test_an_app_that_is_told_host_and_port_picks_the_database_number_itself():
    assert rig(env={"REDIS_HOST": "{broker.host}"}).picks_its_number("broker")
    assert not rig(env={"REDIS_HOST": "{broker.host}", "REDIS_DB": "{broker.name}"}).picks_its_number("broker")
    assert not rig(env={"BROKER_URL": "{broker.url}", "REDIS_HOST": "{broker.host}"}).picks_its_number("broker")
    assert not rig(env={"DB_HOST": "{db.host}"}).picks_its_number("broker")


def test_each_language_has_its_own_way_to_run_a_file_first(tmp_path):
    files = [tmp_path / name for name in ("one.py", "two.py", "three.cjs", "four.rb")]
    for file in files:
        file.touch()
    assert preload_variables(files) == {
        "JOBCHECK_PRELOAD": f"{files[0]}{os.pathsep}{files[1]}",
        "NODE_OPTIONS": f"--require={files[2]}",
        "RUBYOPT": f"-r{files[3]}",
    }
    with pytest.raises(UsageError, match="it is not there"):
        preload_variables([tmp_path / "none.py"])
    (tmp_path / "one.txt").touch()
    with pytest.raises(UsageError, match=r"ends in .py, .js, .cjs or .rb"):
        preload_variables([tmp_path / "one.txt"])
