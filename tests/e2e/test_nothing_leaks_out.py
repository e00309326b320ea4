"""What is not tapped is refused and named before the first strike. Real workers."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from jobcheck.tap.refuse import RefusingProxy

from . import tiny


@contextmanager
def serving(server: socket.socket, address: object) -> Iterator[None]:
    """A server that accepts everybody and says nothing."""
    connections: list[socket.socket] = []
    server.bind(address)
    server.listen()

    def serve() -> None:
        try:
            while True:
                connections.append(server.accept()[0])
        except OSError:
            return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
        for one in connections:
            one.close()


@pytest.fixture
def elsewhere() -> Iterator[int]:
    """The port of a server that no tap stands in front of."""
    server = socket.socket()
    with serving(server, ("127.0.0.1", 0)):
        yield server.getsockname()[1]


def test_a_peer_around_the_taps_is_named_and_nothing_is_struck(tmp_path: Path, elsewhere: int) -> None:
    body = f'    import socket\n    s = socket.create_connection(("127.0.0.1", {elsewhere}))\n'
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, body + tiny.ONCE + "    s.close()\n"), mode="handler"))
    assert subject.verdict == "unknown"
    assert f"the job talks to 127.0.0.1:{elsewhere} around the taps" in subject.problem
    assert subject.strikes == ()


def test_a_host_that_is_not_declared_is_refused_by_its_name(tmp_path: Path) -> None:
    body = (
        "    import urllib.request\n    try:\n        urllib.request.urlopen('https://api.example.com/v1', timeout=5)\n"
        "    except OSError:\n        pass\n"
    )
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, body + tiny.ONCE), mode="handler"))
    assert subject.verdict == "unknown"
    assert "the job wants to talk to api.example.com:443, which is neither tapped nor declared" in subject.problem


TLS_RIG = """
import jobcheck

tiny = jobcheck.Rig(
    jobcheck.celery("tiny:app"),
    upstreams={"broker": jobcheck.redis(), "db": jobcheck.postgres(), "pay": jobcheck.provider()},
    env={"BROKER_URL": "{broker.url}", "DB": "{db.url}", "PAY": "{pay.host}:{pay.port}"},
)

def row(case):
    case.owns(key=f"key-{case.number}")
    return f"key-{case.number}"
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            '    import os, psycopg\n    psycopg.connect(os.environ["DB"] + "?sslmode=require")\n',
            "db: the client left because it insists on TLS: say postgres(tls=True) in the rig, or add sslmode=disable",
        ),
        (
            '    import os, urllib.request as r\n    r.urlopen("https://" + os.environ["PAY"] + "/x", timeout=5)\n',
            "pay: a TLS handshake was seen where plain http was expected",
        ),
    ],
)
def test_tls_is_explained_in_a_sentence(tmp_path: Path, body: str, said: str) -> None:
    reference = tiny.write(tmp_path, body + tiny.ONCE)
    (tmp_path / "rig.py").write_text(TLS_RIG)
    subject = tiny.only(tiny.explore(reference, mode="handler"))
    assert subject.verdict == "unknown"
    assert said in subject.problem
    assert "tiny.py:" in subject.problem, "the line of the user's own code"


def test_a_unix_socket_is_named(tmp_path: Path) -> None:
    path = tmp_path / ".s.PGSQL.5432"
    with serving(socket.socket(socket.AF_UNIX), str(path)):
        body = f"    import socket\n    s = socket.socket(socket.AF_UNIX)\n    s.connect({str(path)!r})\n"
        subject = tiny.only(tiny.explore(tiny.write(tmp_path, body + tiny.ONCE), mode="handler"))
    assert subject.verdict == "unknown"
    assert f"the job talks to unix:{path} around the taps" in subject.problem


def test_the_environment_of_a_job_is_not_the_developers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRODUCTION_DATABASE_URL", "postgres://prod/db")
    body = '    import os\n    assert "PRODUCTION_DATABASE_URL" not in os.environ\n'
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, body + tiny.ONCE), mode="handler"))
    assert subject.verdict == "ok"


def test_the_proxy_answers_no_to_plain_and_to_encrypted_requests() -> None:
    async def main() -> None:
        proxy = RefusingProxy("127.0.0.1")
        await proxy.start()
        through = {"http": proxy.url, "https": proxy.url}
        answer = await asyncio.to_thread(requests.get, "http://api.example.com/v1", proxies=through, timeout=5)
        assert answer.status_code == 403
        assert "jobcheck refuses api.example.com" in answer.text
        with pytest.raises(requests.exceptions.ProxyError):
            await asyncio.to_thread(requests.get, "https://pay.example.com/v1", proxies=through, timeout=5)
        assert list(proxy.refused) == ["api.example.com", "pay.example.com:443"]
        await proxy.close()

    asyncio.run(main())


NOTE = """
    from pathlib import Path
    note = Path(tempfile.gettempdir()) / "note"
    assert not note.exists() or note.read_text() == key, "another job's file"
    note.write_text(key)
    jobcheck.mark("done", key)
    Path(os.environ["SEEN"]).write_text(str(note))
"""


def test_a_jobs_temporary_files_are_its_own_in_every_trial_and_go_with_the_run(tmp_path: Path) -> None:
    reference = tiny.write(tmp_path, NOTE, settings="import tempfile\ntempfile.gettempdir()")
    rig = tmp_path / "rig.py"
    rig.write_text(rig.read_text().replace("env={", f'env={{"SEEN": "{tmp_path / "seen"}", '))
    subject = tiny.only(tiny.explore(reference, mode="handler"))
    assert subject.problem == ""
    assert {strike.verdict for strike in subject.strikes} == {"ok"}
    note = Path((tmp_path / "seen").read_text())
    assert note.parent.parent.name == "tmp0"
    assert not note.exists()
