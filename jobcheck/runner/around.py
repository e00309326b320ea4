"""What leads around the taps: how it is named, and the recipe that mends it."""

from __future__ import annotations

from collections.abc import Iterable

from .lane import Lane

_SOCKETS = ((".s.PGSQL", "postgres"), ("redis", "redis"), ("valkey", "redis"), ("rabbit", "rabbitmq"), ("mysql", ""))
"""Words in the path of a Unix socket, and the kind of server behind it."""
_AWS = {"s3": "s3", "email": "ses", "sqs": "sqs"}
"""Labels in a host name of AWS, and what the service is called."""
_SENTINEL_PORTS = (26379, 26380, 26381)
_POOLER_PORTS = (6432, 6543)
"""Where PgBouncer and its kin listen."""


def named(host: str, port: int) -> str:
    """How a peer that is no tap is named; empty for sockets of the machine itself, such as its logger's."""
    if not host.startswith("unix:"):
        return f"{host}:{port}"
    return host if any(word in host for word, _ in _SOCKETS) else ""


def sentences(lane: Lane, peers: Iterable[str], who: str = "the job") -> list[str]:
    """One sentence for each peer, with what to do about it."""
    return [f"{who} talks to {peer} around the taps: {_recipe(lane, peer)}" for peer in peers]


def _recipe(lane: Lane, peer: str) -> str:
    if peer.startswith("unix:"):
        kind = next((kind for word, kind in _SOCKETS if word in peer), "")
        if kind == "postgres":
            name = _upstream(lane, kind, "db")
            return (
                f"that is PostgreSQL's Unix socket, which is meant where no host is given: "
                f"give it {{{name}.host}} and {{{name}.port}}, or {{{name}.url}}, in the rig's env"
            )
        name = _upstream(lane, kind, "broker")
        return f"that is a Unix socket: give it {{{name}.url}} instead, in the rig's env"
    port = int(peer.rpartition(":")[2] or 0)
    if port in _SENTINEL_PORTS:
        name = _upstream(lane, "redis", "broker")
        return (
            "that is a Sentinel's port, and a Sentinel hands out the servers' own addresses: "
            f"connect plainly in the tests, to {{{name}.url}}"
        )
    if port in _POOLER_PORTS:
        name = _upstream(lane, "postgres", "db")
        return f"that is a pooler's port (PgBouncer): give it the database's address in the tests, {{{name}.url}}"
    return "give its address in the rig's env, so that a tap stands in front of it"


def _upstream(lane: Lane, kind: str, usual: str) -> str:
    """The name that an upstream of this kind has in the rig."""
    return next((name for name, spec in lane.rig.upstreams.items() if spec.kind == kind), usual)


def refusals(lane: Lane) -> list[str]:
    """One sentence for each host that the proxy refused."""
    return [
        f"the job wants to talk to {host}, which is neither tapped nor declared, and was refused: "
        f"declare it as an upstream of the rig: {declaration(host.rpartition(':')[0] or host)}"
        for host in lane.stage.proxy.refused
    ]


def declaration(host: str) -> str:
    """What to write into the rig for a host: the preset that knows it, or a provider of that name."""
    if host.endswith("stripe.com"):
        return "jobcheck.stripe()"
    if host.endswith((".amazonaws.com", ".api.aws")):
        labels = host.split(".")
        service = next((name for label, name in _AWS.items() if label in labels), "")
        return f'jobcheck.aws("{service}", tls=True)' if service else f"jobcheck.provider(host={host!r})"
    return f"jobcheck.provider(host={host!r})"


def hints(lane: Lane) -> list[str]:
    """What the wire says about a run that went wrong."""
    return [*refusals(lane), *lane.trace.notes]
