"""`jobcheck doctor`: what is on this machine, what is missing, and how to get it."""

from __future__ import annotations

import click


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(as_json: bool) -> int:
    """What is on this machine, what is missing, and how to get it."""
    raise NotImplementedError
