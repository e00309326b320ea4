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

How = Literal["restart", "kill", "wipe", "read_only", "exhaust"]
GOES_DOWN: tuple[How, ...] = ("restart", "kill", "wipe")
"""After these a server is gone until it is started again; after the others it answers, and refuses."""

FAILS: dict[How, str] = {
    "restart": "restarted politely",
    "kill": "killed",
    "wipe": "killed and wiped",
    "read_only": "read-only",
    "exhaust": "out of connections",
}
"""In words, for people."""

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
    """`any`: one of the first ones, by the seed; `w1` ...: this one; `mail`: the workers of this role."""
    restart: float | None = BACK_AFTER
    """Seconds until another worker is started in its place; None: never before the end."""
    point: NamedPoint | None = None
    """The kill waits for this message, once its time has come."""
    trigger: Trigger = ALWAYS
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        whose = "" if self.worker == ANY or self.worker[1:].isdigit() else f" of {self.worker}"
        return f"kill {self.scope}{whose}" + (f" {self.point.text}" if self.point else "")


@dataclass(frozen=True, slots=True)
class Restart:
    """SIGTERM to a worker, as a deploy or an autoscaler does it, and another one in its place."""

    worker: str = ANY
    """`any`, `all` (one after another), or `w1` ..."""
    trigger: Trigger = ALWAYS
    where: Where = field(default=NOWHERE, compare=False)
    point: NamedPoint | None = None
    """The signal waits for this message, once its time has come; then the message goes on."""

    @property
    def text(self) -> str:
        return f"restart {self.worker}" + (f" {self.point.text}" if self.point else "")


@dataclass(frozen=True, slots=True)
class Fail:
    """A broker or database of ours fails, and is healed after `for`: at once where it says nothing and it was down."""

    service: str
    how: How
    """`restart`: politely, what it keeps is written. `kill`: SIGKILL. `wipe`: SIGKILL, and it comes back empty.
    `read_only`: it takes no writes. `exhaust`: it takes no further connections."""
    point: NamedPoint | None = None
    """It fails when a worker comes to this message, once its time has come. A message to a server that goes down is
    lost; any other one goes on when the server has failed."""
    trigger: Trigger = ALWAYS
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def lasts(self) -> float | None:
        """Seconds until it is healed; None: not before the end."""
        return 0.0 if self.trigger.lasts is None and self.how in GOES_DOWN else self.trigger.lasts

    @property
    def text(self) -> str:
        lasts = f" for {self.lasts:g} s" if self.lasts else ""
        return f"outage of {self.service}: {FAILS[self.how]}{lasts}" + (f" {self.point.text}" if self.point else "")


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
class Reorder:
    """Jobs that wait on the broker are handed out in another order than they were enqueued in."""

    share: float
    """Of the cases, from 0 to 1."""
    cases: int = 1
    """The jobs of so many cases in a row are gathered first."""
    trigger: Trigger = ALWAYS
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        return f"reorder {self.share * 100:g}%" + (f", {self.cases} cases at a time" if self.cases > 1 else "")


@dataclass(frozen=True, slots=True)
class Delay:
    """One job of some cases is held back on the broker, and handed out later."""

    share: float = 0.0
    """Of the cases, from 0 to 1."""
    each: int = 0
    """Each n-th case, in place of a share; 0: a share."""
    seconds: float | None = None
    """How long it is held back; None: until `others`."""
    others: int = 0
    """So many other jobs are handed out before."""
    trigger: Trigger = ALWAYS
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def by(self) -> str:
        """`0.5 s`, `3 deliveries`."""
        return f"{self.others} deliveries" if self.seconds is None else f"{self.seconds:g} s"

    @property
    def which(self) -> str:
        """`20%`, `each 5`."""
        return f"each {self.each}" if self.each else f"{self.share * 100:g}%"

    @property
    def text(self) -> str:
        return f"delay {self.which} by {self.by}"


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
    point: NamedPoint | None = None
    """It begins when a worker comes to this message, with that worker, once its time has come."""

    @property
    def text(self) -> str:
        return f"deploy {self.version}" + (f" {self.point.text}" if self.point else "")


Fault = Kill | Restart | Fail | Duplicate | Reorder | Delay | Poison | Outage | Deploy
