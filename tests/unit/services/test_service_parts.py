"""The parts of services that need no server."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from jobcheck.errors import ServiceError, UsageError
from jobcheck.services import base, find, postgres_data
from jobcheck.services.doctor import survey
from jobcheck.services.spec import Address


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "[::1]", "localhost"])
def test_loopback_needs_no_permission(host: str) -> None:
    assert base.allowed(f"redis://{host}/1", "", "broker", 6379).port == 6379


@pytest.mark.parametrize("host", ["10.0.0.1", "example.com", "localhost.example.com", "0.0.0.0", "127.0.0.1.nip.io"])
def test_other_hosts_need_to_be_named(host: str) -> None:
    with pytest.raises(UsageError, match="broker: redis://.* is not on this machine") as caught:
        base.allowed(f"redis://{host}/1", "", "broker", 6379)
    assert f"allow_host={host!r}" in caught.value.hint
    assert base.allowed(f"redis://{host}/1", host, "broker", 6379).host == host


def test_an_address_is_shown_without_what_is_secret() -> None:
    address = Address.parse("postgres://me:pass@127.0.0.1:5432/shop?sslpassword=x")
    assert "pass" not in base.shown(address)
    assert base.shown(address).endswith("@127.0.0.1:5432/shop")
    assert base.shown(Address.parse("redis://127.0.0.1:6379/0")) == "redis://127.0.0.1:6379/0"


def test_the_error_for_a_server_that_does_not_answer_is_one_line() -> None:
    error = base.no_answer("db", Address.parse("postgres://127.0.0.1:1/"), OSError("first\n\tsecond"))
    assert error.message.endswith("does not answer: first second")
    assert base.no_answer("db", Address.parse("postgres://127.0.0.1:1/"), TimeoutError()).message.endswith(
        "TimeoutError"
    )


def test_postgres_is_only_found_where_initdb_and_postgres_lie_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def have(folder: str, *names: str) -> Path:
        path = tmp_path / folder
        path.mkdir(parents=True, exist_ok=True)
        for name in names:
            (path / name).write_text("#!/bin/sh\n")
            (path / name).chmod(0o755)
        return path

    old, new = have("9.6/bin", "initdb", "postgres"), have("15/bin", "initdb", "postgres")
    have("16/bin", "postgres")
    monkeypatch.setattr(find, "POSTGRES_FOLDERS", (f"{tmp_path}/*/bin",))
    assert find.postgres_bin() == new, "15 is newer than 9.6, and 16 is not complete"
    monkeypatch.setattr(find, "POSTGRES_FOLDERS", ())
    monkeypatch.setattr(find, "EXTRA_FOLDERS", ())
    links = have("links")
    (links / "postgres").symlink_to(old / "postgres")
    monkeypatch.setenv("PATH", str(links))
    assert find.postgres_bin() == old, "what counts is where the link leads"
    monkeypatch.setenv("PATH", str(tmp_path / "16/bin"))
    assert find.postgres_bin() is None


def test_programs_are_copied_with_all_that_belongs_to_them(tmp_path: Path) -> None:
    programs = tmp_path / "tree/install/bin"
    programs.mkdir(parents=True)
    (programs / "postgres").write_text("program")
    (tmp_path / "tree/libs").mkdir()
    (tmp_path / "tree/libs/libpq.so").write_text("library")
    into = tmp_path / "into"
    into.mkdir()
    copied = postgres_data.copy_programs(programs, tmp_path / "tree", into)
    assert (copied / "postgres").read_text() == "program"
    assert (copied / "../../libs/libpq.so").read_text() == "library"


def test_an_initdb_that_fails_is_an_error_with_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBCHECK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "postgres").write_text("")
    (tmp_path / "initdb").write_text("#!/bin/sh\necho no space left >&2\nexit 7\n")
    (tmp_path / "initdb").chmod(0o755)
    with pytest.raises(ServiceError, match="initdb failed with exit code 7: no space left"):
        postgres_data.prepare(tmp_path, tmp_path / "data", None)


def test_the_survey_names_every_part_and_says_how_to_get_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {one.name: one for one in survey()}
    assert set(here) == {
        *("python", "redis", "postgres", "rabbitmq", "toxiproxy-server", "docker", "uv", "libfaketime"),
        *("trustme", "moto"),
    }
    assert here["python"].found
    assert here["python"].version.count(".") == 2
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JOBCHECK_CACHE", str(tmp_path))
    for name in ("EXTRA_FOLDERS", "POSTGRES_FOLDERS", "RABBITMQ_FOLDERS", "FAKETIME"):
        monkeypatch.setattr(find, name, ())

    def not_there(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", not_there)
    nothing = [one for one in survey() if one.name != "python"]
    assert not any(one.found for one in nothing)
    assert all(one.hint and one.purpose for one in nothing)


@pytest.mark.parametrize(
    "url", ["rediss://127.0.0.1:1/0", "amqps://127.0.0.1:1/", "postgresql://127.0.0.1:1/shop?sslmode=verify-full"]
)
def test_a_given_server_that_asks_for_tls_is_a_usage_error(url: str) -> None:
    address = base.allowed(url, "", "db", 1)
    with pytest.raises(UsageError, match="asks for TLS, and jobcheck speaks plainly") as error:
        base.plain(address, "db")
    assert "tls=True" in error.value.hint
