"""An app whose addresses lead around the taps is told so in one line, with the recipe."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobcheck.errors import JobcheckError

from . import tiny

RIG = """
import jobcheck

tiny = jobcheck.Rig(
    jobcheck.celery("tiny:app"),
    upstreams={"broker": jobcheck.redis(), "cache": jobcheck.redis()},
    env={"BROKER_URL": "%s"},
)

def enqueue(case):
    import tiny
    key = f"key-{case.number}"
    case.owns(key=key)
    tiny.work.delay(key)

def row(case):
    key = f"key-{case.number}"
    case.owns(key=key)
    return key
"""


@contextmanager
def listening(family: int, address: object) -> Iterator[socket.socket]:
    """Somebody's own server, which takes connections and says nothing."""
    with socket.socket(family) as server:
        server.bind(address)
        server.listen()
        taken: list[socket.socket] = []

        def accept() -> None:
            try:
                while True:
                    taken.append(server.accept()[0])
            except OSError:
                pass

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for one in taken:
                one.close()


def test_a_sentinel_url_is_told(tmp_path: Path) -> None:
    settings = "app.conf.broker_transport_options = {'master_name': 'mymaster'}"
    reference = tiny.write(tmp_path, settings=settings)
    (tmp_path / "rig.py").write_text(RIG % "sentinel://{broker.host}:{broker.port}/0")
    try:
        told = tiny.only(tiny.explore(reference, deadline=6)).problem
    except JobcheckError as error:
        told = str(error)
    assert "broker: the app asks for a Sentinel, which hands out the servers' own addresses, around the tap" in told


def test_a_job_that_uses_a_unix_socket_gets_the_recipe(tmp_path: Path) -> None:
    path = tmp_path / "redis.sock"
    with listening(socket.AF_UNIX, str(path)):
        body = f"    import socket\n    s = socket.socket(socket.AF_UNIX)\n    s.connect({str(path)!r})\n"
        reference = tiny.write(tmp_path, body + tiny.ONCE)
        (tmp_path / "rig.py").write_text(RIG % "{broker.url}")
        subject = tiny.only(tiny.explore(reference, mode="handler"))
    assert subject.verdict == "unknown"
    assert (
        f"the job talks to unix:{path} around the taps: that is a Unix socket: give it {{broker.url}} instead"
        in subject.problem
    )


@pytest.mark.parametrize(("port", "said"), [(26379, "that is a Sentinel's port"), (6432, "that is a pooler's port")])
def test_a_job_that_goes_to_a_well_known_port_gets_the_recipe(tmp_path: Path, port: int, said: str) -> None:
    # Another loopback address: nobody else's server can be there by accident.
    with listening(socket.AF_INET, ("127.9.9.9", port)):
        body = f"    import socket\n    s = socket.create_connection(('127.9.9.9', {port}))\n"
        reference = tiny.write(tmp_path, body + tiny.ONCE)
        (tmp_path / "rig.py").write_text(RIG % "{broker.url}")
        subject = tiny.only(tiny.explore(reference, mode="handler"))
    assert f"the job talks to 127.9.9.9:{port} around the taps: {said}" in subject.problem
