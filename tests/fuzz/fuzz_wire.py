"""One target of the coverage-guided fuzzing: `python tests/fuzz/fuzz_wire.py TARGET [--tiny] [libFuzzer's options]`.

TARGET is a decoder's name (`jobcheck.wire.registry`), or `sql`. With --tiny all limits are so small that everything is
too big. A finding ends it, and leaves its input as `crash-*` in the working folder: put it into `corpus/TARGET`.
`make fuzz` runs all targets, with `fuzz.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "wire"))

with atheris.instrument_imports(include=["jobcheck.wire"]):
    import talk
    from wire_feeding import tiny


def main() -> None:
    target, *options = sys.argv[1:]
    small = "--tiny" in options
    if small:
        options.remove("--tiny")
        tiny().__enter__()

    def test_one(data: bytes) -> None:
        talk.check(target, data, tiny=small)

    atheris.Setup([sys.argv[0], *options], test_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
