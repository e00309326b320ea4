"""What jobcheck costs a test suite that does not use it: the pytest plugin's imports, in CPU time of a fresh process.

    python tests/benchmarks/bench_plugin.py [--rounds 15]

Measured behind `import pytest`, which a suite pays for anyway. Aim: under 10 ms.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

CODE = """
import time, pytest, _pytest.subtests
start = time.process_time()
import jobcheck.pytest_plugin
hooks = time.process_time()
import jobcheck.plugin.settings
print((hooks - start) * 1e3, (time.process_time() - hooks) * 1e3)
"""


def measured() -> tuple[float, float]:
    """Milliseconds: the module of the hooks, and the settings that are read when pytest is configured."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    hooks, settings = map(float, done.stdout.split())
    return hooks, settings


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = [measured() for _ in range(parser.parse_args().rounds)]
    hooks, settings = (statistics.median(column) for column in zip(*rounds, strict=True))
    sys.stdout.write(f"hooks {hooks:.1f} ms, settings {settings:.1f} ms CPU (median of {len(rounds)})\n")
    sys.stdout.write(f"together {hooks + settings:.1f} ms (aim: under 10 ms)\n")


if __name__ == "__main__":
    main()
