"""Where and with what the benchmarks run: printed above their tables.

python tests/benchmarks/machine.py
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("celery", "kombu", "redis", "psycopg", "Django", "requests")
SERVERS = {"redis-server": "--version", "rabbitmqctl": "version", "toxiproxy-server": "--version"}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def row(*cells: object) -> None:
    """A line of a Markdown table."""
    say("| " + " | ".join(str(cell) for cell in cells) + " |")


def head(*cells: str) -> None:
    """The first line of a table; the first column is text, the others are numbers."""
    row(*cells)
    row("---", *["---:"] * (len(cells) - 1))


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def told(command: list[str]) -> str:
    """The last word of the first line: the version, in what servers print."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    words = [word for word in done.stdout.split() if any(sign.isdigit() for sign in word)]
    return words[0].removeprefix("v=") if words else "?"


def libraries() -> list[str]:
    found = []
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return found


def main() -> None:
    load = os.getloadavg()[0]
    say(
        f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, load {load:.1f} at the start"
    )
    servers = [f"{name} {told([name, flag])}" for name, flag in SERVERS.items() if shutil.which(name)]
    say(", ".join([f"Python {platform.python_version()}", *libraries(), *servers]))
    if load > 0.7:
        say("**The machine was busy: compare rows of one table, not its numbers with those of another day.**")


if __name__ == "__main__":
    main()
