"""The rig: what it refuses, where it runs, and how functions are named."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobcheck
from jobcheck.errors import UsageError
from jobcheck.runner.rig import expand, load_rig
from jobcheck.services.spec import Address


def rig(**values: object) -> jobcheck.Rig:
    given = {"upstreams": {"broker": jobcheck.redis()}, "env": {}, **values}
    return jobcheck.Rig(jobcheck.celery("shop.app:app"), **given)  # type: ignore[arg-type]


def enqueue(case: object) -> None:
    """Found by name in a child."""


def test_a_rig_without_its_broker_is_refused() -> None:
    with pytest.raises(UsageError, match="the rig has no upstream 'broker'.*it has db"):
        rig(upstreams={"db": jobcheck.postgres()})


def test_a_typo_in_a_template_names_the_variable_and_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"env\['BROKER_URL'\] of the rig: no upstream 'brokr' for \{brokr.url\}"):
        rig(env={"BROKER_URL": "{brokr.url}"})
    with pytest.raises(UsageError, match="no property 'uri'.*there are url, host"):
        rig(env={"BROKER_URL": "{broker.uri}"})


def test_templates_are_filled_with_addresses() -> None:
    address = Address("redis", "127.0.0.1", 6379, path="2")
    assert expand("{b.url}|{b.host}:{b.port}|{b.base}|{folder}", {"b": address}, folder="/f") == (
        "redis://127.0.0.1:6379/2|127.0.0.1:6379|redis://127.0.0.1:6379|/f"
    )


def test_a_module_level_function_is_resolved_to_its_name() -> None:
    assert rig().reference(enqueue) == f"{Path(__file__).resolve()}:enqueue"


def test_a_closure_gets_one_clear_error() -> None:
    def closure(case: object) -> None:
        """Not found by anybody."""

    with pytest.raises(UsageError, match="is a lambda or a closure; it runs in a child process"):
        rig().reference(closure)
    with pytest.raises(UsageError, match="is a lambda or a closure"):
        rig().reference(lambda case: None)


def test_processes_run_in_the_nearest_folder_that_holds_the_app(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "tests").mkdir()
    found = rig()
    found.file = str(tmp_path / "tests" / "rig.py")
    assert found.folder == tmp_path.resolve()


def test_a_missing_rig_names_those_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "rig.py"
    path.write_text("import jobcheck\nshop = jobcheck.Rig(jobcheck.celery('a:b'), {'broker': jobcheck.redis()})\n")
    with pytest.raises(UsageError, match="has no rig 'shp'; it has shop"):
        load_rig(f"{path}:shp")
    assert load_rig(f"{path}:shop").name == "shop"


def test_a_rig_that_imports_its_app_too_early_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "rig.py"
    path.write_text("import no_such_app\n")
    with pytest.raises(UsageError) as caught:
        load_rig(f"{path}:shop")
    assert "import the app inside the functions" in caught.value.hint


def test_a_rig_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no rig file"):
        load_rig("rig.py:shop", tmp_path)


def test_an_unknown_pool_is_refused() -> None:
    with pytest.raises(UsageError, match="expected pool prefork or solo, got 'gevent'"):
        jobcheck.celery("shop.app:app", pool="gevent")
