"""`jobcheck toxiproxy`, as clients that know nothing of jobcheck use it: two languages, and nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CLIENTS = Path(__file__).with_name("toxiproxy_clients")
NODE_CLIENT = "toxiproxy-node-client@4.1.0"
WITHIN = 120.0
"""Seconds for a client to be done."""
COMMAND = [sys.executable, "-m", "jobcheck", "toxiproxy"]


@contextmanager
def greeter() -> Iterator[str]:
    """The address of a server that says eight bytes to everybody."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            while True:
                try:
                    link, _ = listener.accept()
                except OSError:
                    return
                with link:
                    link.sendall(b"greeting")
                    while link.recv(1024):
                        pass

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(WITHIN)


@contextmanager
def command(*options: str) -> Iterator[tuple[int, list[str]]]:
    """The command on a free port: its port and its first lines. It must end well, and by itself when it is told to."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*COMMAND, "--port", "0", *options], stdout=subprocess.PIPE, text=True, env=environment
    ) as run:
        try:
            assert run.stdout is not None
            first = run.stdout.readline()
            yield int(first.split()[0].rpartition(":")[2]), [first]
            run.send_signal(signal.SIGTERM)
            assert run.wait(WITHIN) == 0
        finally:
            run.kill()


def client(*words: str, folder: Path | None = None) -> dict[str, Any]:
    """What a client's program prints."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=WITHIN, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_toxiproxy_python_works_with_it() -> None:
    with greeter() as upstream, command("--seed", "7") as (port, lines):
        assert lines == [
            f"http://127.0.0.1:{port} answers as Toxiproxy 2.12.0; embedded in the tap, seed 7\n",
        ]
        assert client(sys.executable, str(CLIENTS / "client.py"), str(port), upstream) == {
            "running": True,
            "there": [],
            "before": "greeting",
            "toxics": ["cut"],
            "cut": "gre",
            "toxic": ["limit_data", "downstream", {"bytes": 3}],
            "after": "greeting",
            "down": "refused",
            "up": "greeting",
            "error": "InvalidToxic",
            "reset": [True, "greeting"],
            "populated": ["db", "p"],
            "end": [],
        }


def node_client(folder: Path) -> Path:
    """The folder, with the npm package in it."""
    npm = shutil.which("npm")
    assert npm, "expected npm on PATH: apt-get install nodejs npm"
    folder.mkdir(exist_ok=True)
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--cache", str(folder / "cache")]
    subprocess.run([npm, "install", *options, NODE_CLIENT], cwd=folder, check=True, capture_output=True, timeout=WITHIN)
    return folder


def test_toxiproxy_node_client_works_with_it(tmp_path: Path) -> None:
    """Its npm package, installed for this test."""
    node_client(tmp_path)
    shutil.copy(CLIENTS / "client.js", tmp_path)
    with greeter() as upstream, command() as (port, _):
        said = client("node", "client.js", str(port), upstream, folder=tmp_path)
    assert said == {
        "version": '{"version": "2.12.0"}\n',
        "there": [],
        "before": "greeting",
        "cut": "gre",
        "changed": {"bytes": 5},
        "cutLater": "greet",
        "toxic": {
            "name": "cut",
            "type": "limit_data",
            "stream": "downstream",
            "toxicity": 1,
            "attributes": {"bytes": 5},
        },
        "after": "greeting",
        "down": "ECONNREFUSED",
        "up": "greeting",
        "again": said["again"],
        "populated": ["p"],
        "end": [],
    }
    assert "409" in said["again"] or "already exists" in said["again"]


def test_a_config_names_proxies_and_a_wrong_one_is_one_line(tmp_path: Path) -> None:
    config = tmp_path / "toxiproxy.json"
    with greeter() as upstream:
        config.write_text(json.dumps([{"name": "db", "listen": "127.0.0.1:0", "upstream": upstream}]))
        with command("--config", str(config)) as (port, _):
            said = client(
                sys.executable,
                "-c",
                f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/proxies/db').read().decode())",
            )
            assert (said["upstream"], said["enabled"]) == (upstream, True)
            host, _, listen = said["listen"].rpartition(":")
            with socket.create_connection((host, int(listen)), timeout=WITHIN) as link:
                assert link.recv(1) == b"g"
    config.write_text('[{"name": "db"}]')
    wrong = [
        (config, "missing required field: upstream at proxy 1"),
        (tmp_path / "none.json", "cannot read the config"),
    ]
    for path, message in wrong:
        done = subprocess.run(
            [*COMMAND, "--port", "0", "--config", str(path)],
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=False,
        )
        assert done.returncode == 3
        assert message in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_taken_port_is_one_line_and_a_signal_is_a_good_end(number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run([*COMMAND, "--port", port], capture_output=True, text=True, timeout=WITHIN, check=False)
        assert done.returncode == 2
        assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    with subprocess.Popen([*COMMAND, "--port", "0"], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline().startswith("http://127.0.0.1:")
        run.send_signal(number)
        assert run.wait(WITHIN) == 0
