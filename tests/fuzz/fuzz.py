"""All targets of `fuzz_wire.py`, one after the other: `python tests/fuzz/fuzz.py [--seconds 30] [TARGET ...]`.

What is new is kept in a working copy of the corpus (`.fuzz/`, ignored by git). Ends with 1 when a target found
something, and says which file shows it. `--merge` writes those that reach something anew back into
`tests/fuzz/corpus`, from where the tests replay them.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import talk

from jobcheck.wire.registry import DECODERS

HERE = Path(__file__).parent
WORK = HERE.parents[1] / ".fuzz"
TARGETS = [*sorted(DECODERS), talk.SQL]
TINY = {"redis", "postgres", "http", "smtp", "amqp"}
"""What has limits that can be made small."""
LIMITS = ("-timeout=10", "-rss_limit_mb=1000", "-max_len=2048", "-print_final_stats=1")


def command(target: str, *options: str) -> list[str]:
    return [sys.executable, str(HERE / "fuzz_wire.py"), target, *options]


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fuzz(target: str, seconds: int, tiny: bool) -> bool:
    """Whether nothing was found."""
    corpus = WORK / target
    shutil.copytree(talk.CORPUS / target, corpus, dirs_exist_ok=True)
    name = f"{target} with tiny limits" if tiny else target
    prefix = f"-artifact_prefix={WORK}/{target}-"
    options = (*(["--tiny"] if tiny else []), f"-max_total_time={seconds}", prefix, *LIMITS, str(corpus))
    done = subprocess.run(command(target, *options), capture_output=True, text=True, check=False)
    runs = done.stderr.partition("number_of_executed_units: ")[2].partition("\n")[0]
    say(f"{name}: {runs or 'no'} inputs, {'nothing found' if done.returncode == 0 else 'FOUND'}")
    if done.returncode:
        say(done.stderr[-4000:])
    return done.returncode == 0


def reached(target: str, data: bytes) -> set[tuple[str, int, int]]:
    """The steps from line to line that this input takes through the decoders."""
    steps: set[tuple[str, int, int]] = set()

    def enter(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        name = frame.f_code.co_filename
        if "/jobcheck/wire/" not in name:
            return None
        last = 0

        def line(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            nonlocal last
            steps.add((name, last, frame.f_lineno))
            last = frame.f_lineno
            return line

        return line

    sys.settrace(enter)
    try:
        talk.check(target, data)
    finally:
        sys.settrace(None)
    return steps


def merge(target: str) -> None:
    """The corpus anew, of the old one and the working copy: the smallest inputs, each of which takes a step anew."""
    corpus, work = talk.CORPUS / target, WORK / target
    inputs = {data for folder in (corpus, work) for path in folder.glob("*") if len(data := path.read_bytes()) < 2048}
    seen: set[tuple[str, int, int]] = set()
    shutil.rmtree(corpus, ignore_errors=True)
    corpus.mkdir()
    for data in sorted(inputs, key=lambda data: (len(data), data)):
        if new := reached(target, data) - seen:
            seen |= new
            (corpus / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)
    say(f"{target}: {len(list(corpus.iterdir()))} of {len(inputs)} inputs")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=30, help="of each target")
    parser.add_argument("--merge", action="store_true")
    given = parser.parse_args()
    targets = given.targets or TARGETS
    if unknown := set(targets) - set(TARGETS):
        parser.error(f"no target {unknown.pop()!r}: {', '.join(TARGETS)}")
    WORK.mkdir(exist_ok=True)
    if given.merge:
        for target in targets:
            merge(target)
        return 0
    plan = [(target, tiny) for target in targets for tiny in (False, True) if not tiny or target in TINY]
    good = [fuzz(target, given.seconds, tiny) for target, tiny in plan]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
