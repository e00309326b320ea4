"""Redis traffic that leads past the tap: a Sentinel or a Cluster hands out the servers' own addresses."""

from __future__ import annotations

from .resp_values import RespError

_CLUSTER = ("CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES")
_ENOUGH = "for the jobs a single Redis behaves the same"


def asked_for(name: str) -> str:
    """A sentence about a command by which clients ask for other addresses; empty for every other command."""
    if name.startswith("SENTINEL"):
        return (
            "the app asks for a Sentinel, which hands out the servers' own addresses, around the tap: "
            f"give it a plain redis:// address in the tests; {_ENOUGH}"
        )
    if name in _CLUSTER:
        return (
            "the app has a Cluster client, which goes to the nodes' own addresses, around the tap: "
            f"give it a plain client in the tests; {_ENOUGH}"
        )
    return ""


def sent_to(value: object) -> str:
    """A sentence about a reply that sends the client elsewhere: `MOVED 3999 10.0.0.2:6381`; else empty."""
    if not isinstance(value, RespError):
        return ""
    word, _, rest = str(value).partition(" ")
    if word not in ("MOVED", "ASK"):
        return ""
    return (
        f"a Cluster node sent the app to {rest.rpartition(' ')[2]}, around the tap: use a single Redis in the tests "
        "(jobcheck.redis() without a url starts one)"
    )
