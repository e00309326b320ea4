"""`jobcheck probe`: one clean job, and what it says when there is none."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from . import tiny


def probe(folder: Path, *words: str, code: int) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "jobcheck", "probe", "--rig", "rig.py:tiny", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def test_a_handler_is_probed_without_a_queue_and_its_contracts_can_be_pasted(tmp_path):
    tiny.write(tmp_path, tiny.TWICE)
    said = probe(tmp_path, "--handler", "tiny:work", "--case", "row", code=0)
    assert said.startswith("work: one clean job, handler mode, ")
    assert re.search(r"BROKER_URL +by the rig +tiny\.py:\d+\n", said)
    assert re.search(r" 1  marks started +tiny\.py:\d+ work\n +2  marks done +tiny\.py:\d+ work\n", said)
    assert "jobcheck explore --handler tiny:work --case row --expect 'exactly_once: mark started' --expect" in said


def test_a_host_that_is_not_declared_is_refused_and_named(tmp_path):
    body = "    import requests\n    requests.get('https://elsewhere.example/rates', timeout=5)\n"
    tiny.write(tmp_path, body)
    said = probe(tmp_path, "--handler", "tiny:work", "--case", "row", code=2)
    assert "wants to talk to elsewhere.example:443, which is neither tapped nor declared, and was refused" in " ".join(
        said.split()
    )
    assert "the clean run was none: the handler failed in a clean run: ProxyError" in " ".join(said.split())


def test_a_variable_that_nothing_reads_is_named(tmp_path):
    tiny.write(tmp_path, tiny.ONCE)
    rig = tmp_path / "rig.py"
    rig.write_text(rig.read_text().replace('env={"', 'env={"BROKER_ULR": "x", "'))
    said = probe(tmp_path, "--handler", "tiny:work", "--case", "row", code=0)
    assert "never read by the app's own code: BROKER_ULR" in said


def test_probe_wants_a_job(tmp_path):
    tiny.write(tmp_path, tiny.ONCE)
    assert "nothing to explore: name a function" in probe(tmp_path, code=3)
