"""What can go wrong, as data: the faults of a scenario as its author wrote them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .outages import NO_CONNECTION, Reply
from .toxics import Toxic
from .triggers import ALWAYS, Trigger
from .where import NOWHERE, Where

ANY, ALL = "any", "all"
WORKERS, PRODUCERS, EVERYBODY = "workers", "producers", "everybody"

Scope = Literal["tree", "child", "parent"]
SCOPES: tuple[Scope, ...] = ("tree", "child", "parent")
Side = Literal["before", "after"]
SIDES: tuple[Side, ...] = ("before", "after")
Mode = Literal["at once", "later", "while running"]
MODES: tuple[Mode, ...] = ("at once", "later", "while running")

BACK_AFTER = 0.5
"""Seconds until a killed worker is started again, where the file says nothing."""
STEP = 0.5
"""Seconds between one worker and the next in a rolling restart, where the file says nothing."""


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A message at which a worker is struck: by name, n-th sight after the fault was armed, before or after it."""

    name: str
    """`payments POST /charges`, `db COMMIT`: the upstream and the message without its ids."""
    when: Side = "before"
    nth: int = 1

    @property
    def text(self) -> str:
        nth = f" ({self.nth}.)" if self.nth != 1 else ""
        return f"{self.when} {self.name}{nth}"


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL to a worker: its whole tree (a host or a container dies), one child (out of memory), or the parent."""

    scope: Scope = "tree"
    worker: str = ANY
    """`any`: one of them, by the seed; `w1` ...: this one."""
    restart: float | None = BACK_AFTER
    """Seconds until another worker is started in its place; None: never before the end."""
    point: NamedPoint | None = None
    """The kill waits for this message, once its time has come."""
    trigger: Trigger = ALWAYS
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        return f"kill {self.scope}" + (f" {self.point.text}" if self.point else "")


@dataclass(frozen=True, slots=True)
class Restart:
    """SIGTERM to a worker, as a deploy or an autoscaler does it, and another one in its place."""

    worker: str = ANY
    """`any`, `all` (one after another), or `w1` ..."""
    trigger: Trigger = ALWAYS
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        return f"restart {self.worker}"


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A share of the deliveries is put on the broker again."""

    share: float
    """From 0 to 1."""
    mode: Mode = "at once"
    """`at once`: when the first one is handed out; `while running`: the first one is held until the second one has
    begun; `later`: some time after the first one has ended."""
    delay: float = 1.0
    """Seconds, for `later`."""
    trigger: Trigger = ALWAYS
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        return f"duplicate {self.share * 100:g}% {self.mode}"


@dataclass(frozen=True, slots=True)
class Messages:
    """Which messages of jobs a toxic acts on; without a number, all of that name."""

    name: str
    """`payments POST /charges`, `db COMMIT`: the upstream and the message without its ids."""
    nth: int = 0
    """Only this one, counted from when the toxic begins."""
    first: int = 0
    """Only the first so many."""
    each: str = ""
    """`case`: the first ones of each case; empty: of all together."""

    @property
    def text(self) -> str:
        if self.nth:
            return f"{self.name}, number {self.nth}"
        each = f" of each {self.each}" if self.each else ""
        return self.name + (f", the first {self.first}{each}" if self.first else "")


@dataclass(frozen=True, slots=True)
class Poison:
    """A toxic on one upstream, as seen by one role, or on single messages to it."""

    toxic: Toxic
    upstream: str
    role: str = WORKERS
    """`workers`, `producers`, `everybody`, or one worker (`w1`)."""
    trigger: Trigger = ALWAYS
    where: Where = field(default=NOWHERE, compare=False)
    messages: Messages | None = None
    """None: everything that passes."""

    @property
    def text(self) -> str:
        where = f"at {self.messages.text}" if self.messages else f"on {self.upstream}"
        return f"toxic {self.toxic.text} {where}"


@dataclass(frozen=True, slots=True)
class Outage:
    """An upstream is out of order: a provider answers otherwise than always, or nobody gets a connection."""

    upstream: str
    reply: Reply = NO_CONNECTION
    trigger: Trigger = ALWAYS
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        return f"outage of {self.upstream}" + (f", {self.reply.text}" if self.reply.text else "")


@dataclass(frozen=True, slots=True)
class Deploy:
    """A rolling deploy: workers are stopped one after another and started with another version of the app."""

    version: str
    origin: str = ""
    """The version that runs before; empty: the rig's own."""
    mix: float = 1.0
    """The share of workers and of producers that get the new version, from 0 to 1."""
    rollback: bool = False
    """After `for`, the same ones get the old version back."""
    step: float = STEP
    """Seconds between one worker and the next."""
    trigger: Trigger = ALWAYS
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        return f"deploy {self.version}"


Fault = Kill | Restart | Duplicate | Poison | Outage | Deploy
