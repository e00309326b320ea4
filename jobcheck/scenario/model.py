"""A scenario file as values. `parse` makes them; `planning` makes a plan of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..checks.backoff import BackoffRule
from ..checks.contracts import Contract
from ..faults.model import Fault
from ..faults.where import NOWHERE, Where

EMBEDDED, TOXIPROXY = "embedded", "toxiproxy"
ENGINES = (EMBEDDED, TOXIPROXY)


@dataclass(frozen=True, slots=True)
class Provided:
    """One value of a case, made by a Faker provider from the seed."""

    provider: str
    """The name of a method of Faker: `name`, `pyint`."""
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workload:
    """What is put in, and how fast. The rate is kept whatever becomes of the jobs (an open model)."""

    enqueue: str
    """A function of the rig's file, or `module:function`."""
    count: int
    """Cases in all."""
    rate: float
    """Cases per second."""
    values: Mapping[str, Provided] = field(default_factory=dict)
    """What each case gets as `case.values`."""
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def length(self) -> float:
        """Seconds."""
        return self.count / self.rate


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. Whoever waits longer gives up and says what it was waiting for."""

    ready: float = 30.0
    """For a worker to boot."""
    drain: float = 60.0
    """For the system to become quiet after the healing."""
    trial: float = 600.0
    """For the whole scenario."""


@dataclass(frozen=True, slots=True)
class NoneLost:
    """No acknowledged case is lost, wherever the loss is laid."""

    where: Where = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        return "none_lost"


@dataclass(frozen=True, slots=True)
class Limit:
    """One count and its bound."""

    name: str
    relation: str
    """`=`, `<=` or `>=`."""
    number: int

    @property
    def text(self) -> str:
        return f"{self.name} {self.relation} {self.number}"

    def holds(self, number: int) -> bool:
        return {"=": number == self.number, "<=": number <= self.number, ">=": number >= self.number}[self.relation]


@dataclass(frozen=True, slots=True)
class CountsAre:
    """The counts of all cases are within these bounds."""

    limits: tuple[Limit, ...]
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        return "counts: " + ", ".join(limit.text for limit in self.limits)


@dataclass(frozen=True, slots=True)
class RecoveredWithin:
    """After the healing, the system is quiet within this time."""

    seconds: float
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        return f"recovered within {self.seconds:g} s"


@dataclass(frozen=True, slots=True)
class ContractHolds:
    """Each case's effects happen as often as the contract says."""

    contract: Contract
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        return self.contract.text


@dataclass(frozen=True, slots=True)
class BackoffIs:
    """The waits between attempts at a provider are as claimed."""

    rule: BackoffRule
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def text(self) -> str:
        return self.rule.text


Expectation = ContractHolds | NoneLost | CountsAre | RecoveredWithin | BackoffIs


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario file."""

    title: str
    rig: str
    """As written: `apps/invoices/rig.py:shop`, relative to the folder of the file, or `package.module:shop`."""
    workload: Workload
    faults: tuple[Fault, ...] = ()
    settle: tuple[str, ...] = ()
    """Functions that are run, in this order, after the healing: a relay, a reconciler."""
    expect: tuple[Expectation, ...] = ()
    workers: int = 2
    timeouts: Timeouts = Timeouts()
    seed: int | None = None
    """None: a new one for each run."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Version name -> a folder, a Python interpreter or a git revision. The first one runs at the start."""
    engine: str = EMBEDDED
    toxiproxy: bool = False
    """The taps are proxies of Toxiproxy's HTTP API meanwhile, so that faults can be set by hand too."""
    speed: float = 1.0
    """How much faster than real time workers and producers live; all times of the file are of their clock."""
    real_clocks: bool = False
    """Leases run out by themselves; nothing is rewound."""
    file: str = ""
    where: Where = field(default=NOWHERE, compare=False)

    @property
    def contracts(self) -> tuple[Contract, ...]:
        return tuple(item.contract for item in self.expect if isinstance(item, ContractHolds))

    @property
    def worker_names(self) -> tuple[str, ...]:
        return tuple(f"w{number}" for number in range(1, self.workers + 1))
