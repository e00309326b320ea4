"""A whole exploration by what stands in for Linux elsewhere: psutil for /proc, threads for pidfds, one loopback.

It runs on Linux here; what macOS itself does otherwise is said in docs/platforms.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.workers import platform, sockets

from . import tiny


@pytest.mark.parametrize("mode", ["handler", "queue"])
def test_a_job_is_struck_and_judged_as_on_linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setattr(platform, "LINUX", False)
    monkeypatch.setattr(sockets, "LINUX", False)
    assert platform.loopback(77) == "127.0.0.1"
    subject = tiny.only(tiny.explore(tiny.write(tmp_path, tiny.TWICE), mode=mode, contracts=tiny.DONE_ONCE))
    assert subject.problem == ""
    assert subject.coverage.fired == subject.coverage.strikes
    bad = [strike.verdict for strike in subject.strikes if strike.layer == "handler"]
    assert bad == ["duplicated"], "after the mark, before the job is settled"
    assert {point.code for point in subject.points} == {""}, "stacks need signal masks, which only /proc shows"
