"""The authority of a run: certificates by name, the variables, and what is said where its package is missing."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import pytest

from jobcheck.errors import EXIT_USAGE, UsageError
from jobcheck.tap.authority import VARIABLES, Authority


def handshake(server: ssl.SSLContext, trust: Path, name: str) -> str:
    """The protocol that was agreed upon in a handshake in memory. Raises ssl.SSLError where the client says no."""
    context = ssl.create_default_context(cafile=str(trust))
    context.set_alpn_protocols(["h2", "http/1.1"])
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, to_server, server_hostname=name)
    other = server.wrap_bio(to_server, to_client, server_side=True)
    done = set()
    for _ in range(10):
        for end in (client, other):
            try:
                end.do_handshake()
                done.add(end)
            except ssl.SSLWantReadError:
                pass
    assert len(done) == 2
    return client.selected_alpn_protocol() or ""


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "api.pay.example", "a.b.deep.example"])
def test_a_certificate_is_made_for_the_name_that_is_asked_for(tmp_path: Path, name: str) -> None:
    authority = Authority(tmp_path)
    context = authority.context("127.0.0.1", "localhost", "api.pay.example", "*.deep.example", protocol="http/1.1")
    assert handshake(context, authority.file, name) == "http/1.1"


def test_another_run_does_not_trust_it(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(Authority(tmp_path).context("localhost"), other.file, "localhost")


def test_every_variable_names_its_file(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    assert authority.environment() == dict.fromkeys(VARIABLES, str(tmp_path / "ca.pem"))
    assert "PRIVATE" not in authority.file.read_text()


def test_without_its_package_there_is_one_clear_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(UsageError, match="TLS needs the package trustme") as error:
        Authority(tmp_path)
    assert error.value.hint == 'pip install "jobcheck[tls]"'
    assert error.value.exit_code == EXIT_USAGE
