"""What a relay or a reconciler does afterwards counts: the rig's `settle` hooks run before the effects are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.checks.contracts import exactly_once

from . import tiny

RELAY = """

def relay():
    import os
    from pathlib import Path
    import jobcheck
    for intent in sorted(Path(os.environ["OUTBOX"]).glob("key-*")):
        jobcheck.mark("relayed", intent.name)
        intent.unlink()
"""
INTENT = """
    from pathlib import Path
    Path(os.environ["OUTBOX"], key).touch()
"""


@pytest.mark.parametrize("mode", ["handler", "queue"])
def test_a_job_that_writes_an_intent_is_done_by_the_relay(tmp_path: Path, mode: str) -> None:
    (tmp_path / "outbox").mkdir()
    reference = tiny.write(tmp_path, INTENT + tiny.ONCE)
    rig = tmp_path / "rig.py"
    text = rig.read_text().replace("env={", f'settle=("relay",), env={{"OUTBOX": "{tmp_path / "outbox"}", ')
    rig.write_text(text + RELAY)
    contracts = (exactly_once("mark relayed"),)
    subject = tiny.only(tiny.explore(reference, mode=mode, contracts=contracts))
    assert subject.problem == ""
    assert subject.effects["mark relayed"] == 1
    assert {strike.layer for strike in subject.strikes if strike.verdict != "ok"} <= {"transport"}
