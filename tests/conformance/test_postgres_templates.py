"""Databases that a setup has filled, kept across runs, and what the server at hand has of what an app needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_services import with_rig

from jobcheck.errors import ServiceError, UsageError
from jobcheck.services import postgres_templates as templates
from jobcheck.services.clients import pg_query
from jobcheck.services.spec import Postgres

SCHEMA = "create table made (at timestamptz); insert into made values (clock_timestamp());"


@pytest.fixture(params=["found", "wheel"])
def origin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("JOBCHECK_SERVICES", request.param)
    return str(request.param)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own; the wheels stay where they are."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(templates, "_folder", lambda name: folder / f"template-{name}")
    return folder


def made(folder: Path, spec: Postgres) -> tuple[str, str, str]:
    """When the setup ran, as two lanes see it, and where the server came from."""
    seen: list[str] = []

    async def body(rig):
        service = await rig.start(spec)
        for lane in ("1", "2"):
            address = await service.namespace(lane)
            (row,) = await pg_query(address, "select at::text from made")
            seen.append(row["at"])
        seen.append(service.origin)

    with_rig(folder, body)
    return seen[0], seen[1], seen[2]


def test_a_template_outlives_its_run_until_what_it_depends_on_changes(tmp_path, origin, cache):
    (tmp_path / "schema.sql").write_text(SCHEMA)
    spec = Postgres(setup="schema.sql")
    first = made(tmp_path, spec)
    again = made(tmp_path, spec)
    assert first[0] == first[1] == again[0] == again[1], "the setup ran once"
    assert "earlier run" not in first[2]
    assert again[2].endswith(", with the tables of an earlier run")
    assert [path.name.startswith("template-") for path in cache.iterdir()] == [True], "no drafts are left"

    (tmp_path / "schema.sql").write_text(SCHEMA + " -- changed")
    assert made(tmp_path, spec)[0] != first[0]


def test_a_template_that_must_not_be_kept_is_not(tmp_path, cache):
    (tmp_path / "schema.sql").write_text(SCHEMA)
    spec = Postgres(setup="schema.sql", cache=False)
    assert made(tmp_path, spec)[0] != made(tmp_path, spec)[0]
    assert not cache.exists()


def test_the_key_names_all_that_migrations_depend_on(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("initdb", "postgres"):
        (programs / name).touch()
    root = tmp_path / "app"
    (root / "shop" / "migrations").mkdir(parents=True)
    (root / "shop" / "migrations" / "0001.py").write_text("one")
    (root / "shop" / "views.py").write_text("one")
    spec = Postgres(setup="python manage.py migrate --noinput")
    first = templates.key(programs, None, spec, root, "seal")
    (root / "shop" / "views.py").write_text("two")
    assert templates.key(programs, None, spec, root, "seal") == first
    assert templates.key(programs, None, spec, root, "another") != first
    (root / "shop" / "migrations" / "0002.py").write_text("two")
    assert templates.key(programs, None, spec, root, "seal") != first


@pytest.mark.parametrize(
    ("setup", "known"),
    [
        ("python manage.py migrate", True),
        ("/srv/.venv/bin/python3.12 backend/manage.py migrate --noinput --database=default", True),
        ("alembic upgrade head", True),
        ("python manage.py migrate && ./seed.sh", False),
        ("alembic upgrade head;./seed.sh", False),
        ("./seed.sh", False),
    ],
)
def test_only_setups_whose_inputs_are_known_are_kept(setup, known):
    assert bool(templates.KNOWN.fullmatch(setup)) is known


def test_extensions_are_there_before_the_setup_or_one_line_says_what_would_have_them(tmp_path, cache):
    async def has(rig):
        service = await rig.start(Postgres(extensions=["pgcrypto"]))
        (row,) = await pg_query(await service.namespace("1"), "select count(gen_salt('bf')) as n")
        assert row["n"] == 1

    async def lacks(rig):
        service = await rig.start(Postgres(extensions=["postgis", "nonesuch"]))
        major = service.version.partition(".")[0]
        with pytest.raises(ServiceError, match=rf"has no extension {'postgis, ' if lacking else ''}nonesuch\b") as told:
            await service.namespace("1")
        if lacking:
            assert f"apt-get install postgresql-{major}-postgis-3 postgresql-contrib" in told.value.hint

    lacking = not any(Path("/usr/share/postgresql").glob("*/extension/postgis.control"))
    with_rig(tmp_path, has)
    with_rig(tmp_path, lacks)


def test_another_version_than_the_one_asked_for_is_told_in_one_line(tmp_path):
    async def body(rig):
        with pytest.raises(ServiceError, match=r"^up: expected PostgreSQL 9, and there is \d+\.\d+ \(found: ") as told:
            await rig.start(Postgres(version="9"))
        assert told.value.hint.startswith("apt-get install postgresql-9 ")
        with pytest.raises(UsageError, match="expected a major version such as '16', got 'new'"):
            await rig.start(Postgres(version="new"))

    with_rig(tmp_path, body)
