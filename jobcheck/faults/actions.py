"""What the runner is told to do, and what it tells the schedule: actions in the imperative, happenings in the past.

The runner carries an action out and decides nothing; the schedule decides and does nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from .base import Base
from .model import FAILS, GOES_DOWN, How, Messages, Mode, NamedPoint, Scope
from .orders import DelayJob, PutBack, ReorderJobs
from .outages import NO_CONNECTION, Reply
from .toxics import Toxic


@dataclass(frozen=True, slots=True)
class StartWorkload(Base):
    """Begin to enqueue cases, evenly spaced, whatever becomes of them."""

    count: int
    rate: float
    """Cases per second."""

    @property
    def text(self) -> str:
        return f"enqueue {self.count} cases at {self.rate:g}/s"


@dataclass(frozen=True, slots=True)
class KillWorker(Base):
    """SIGKILL, now."""

    worker: str
    scope: Scope = "tree"
    restart: float | None = None
    """Seconds from its end until another one is started; None: it is not started again."""

    @property
    def text(self) -> str:
        back = "" if self.restart is None or self.scope == "child" else f", back after {self.restart:g} s"
        return f"kill {self.worker} ({self.scope}){back}"


@dataclass(frozen=True, slots=True)
class ArmKill(Base):
    """SIGKILL as soon as the worker comes to this point. `any`: whichever comes first."""

    worker: str
    point: NamedPoint
    scope: Scope = "tree"
    restart: float | None = None

    @property
    def text(self) -> str:
        return f"kill {self.worker} ({self.scope}) {self.point.text}"


@dataclass(frozen=True, slots=True)
class ArmStop(Base):
    """SIGTERM as soon as the worker comes to this point, and another one in its place. `any`: whichever comes first."""

    worker: str
    point: NamedPoint
    version: str | None = None
    """The version that the next one runs; None: the same."""
    share: float = 0.0
    """The share of the cases that this version enqueues from then on; 0: as before."""
    others: tuple[str, ...] = ()
    """Workers that follow, in this order, each `step` seconds after the one before."""
    more: int = 0
    """How many of them, without the one that came to the point."""
    step: float = 0.0

    @property
    def text(self) -> str:
        what = "restart" if self.version is None else f"deploy {self.version or 'the old version'} to"
        return f"{what} {self.worker} {self.point.text}"

    def then(self, worker: str) -> list[tuple[float, Action]]:
        """What follows once this worker has come to the point: seconds after it, and what."""
        if self.version is None:
            return []
        out: list[tuple[float, Action]] = []
        if self.share:
            out.append((0.0, DeployProducer(self.version, self.share, fault=self.fault)))
        left = [name for name in self.others if name != worker][: self.more]
        for place, name in enumerate(left, 1):
            out.append((place * self.step, DeployWorker(name, self.version, fault=self.fault)))
        return out


@dataclass(frozen=True, slots=True)
class BeginTrouble(Base):
    """A server goes down, or refuses writes or connections."""

    upstream: str
    how: How

    @property
    def text(self) -> str:
        return f"{self.upstream} is {FAILS[self.how]}"


@dataclass(frozen=True, slots=True)
class EndTrouble(Base):
    """Heals `BeginTrouble`."""

    upstream: str
    how: How
    lasts: float = 0.0
    """Seconds that it must have lasted; how long a server takes to go down is not in the plan."""

    @property
    def text(self) -> str:
        return f"{self.upstream} " + ("comes back" if self.how in GOES_DOWN else "is well again")


@dataclass(frozen=True, slots=True)
class ArmTrouble(Base):
    """The same as soon as a worker comes to this point, whichever comes first."""

    upstream: str
    how: How
    point: NamedPoint
    lasts: float | None = None

    @property
    def text(self) -> str:
        return f"{BeginTrouble(self.upstream, self.how).text} {self.point.text}"

    def then(self) -> list[tuple[float, Action]]:
        """What follows once a worker has come to the point."""
        if self.lasts is None:
            return []
        return [(self.lasts, EndTrouble(self.upstream, self.how, self.lasts, fault=self.fault))]


@dataclass(frozen=True, slots=True)
class RestartWorker(Base):
    """Start a worker in the place of one that is gone."""

    worker: str

    @property
    def text(self) -> str:
        return f"start {self.worker} again"


@dataclass(frozen=True, slots=True)
class StopWorker(Base):
    """SIGTERM, wait until it has ended, and start another one in its place."""

    worker: str

    @property
    def text(self) -> str:
        return f"restart {self.worker} (SIGTERM)"


@dataclass(frozen=True, slots=True)
class DuplicateDelivery(Base):
    """Put the n-th delivery on the broker once more."""

    nth: int
    job: str
    mode: Mode = "at once"

    @property
    def text(self) -> str:
        return f"duplicate delivery {self.nth} {self.mode}"


@dataclass(frozen=True, slots=True)
class AddToxic(Base):
    """Put a toxic on an upstream, as seen by a role."""

    name: str
    """Unique within the plan; `RemoveToxic` names it."""
    toxic: Toxic
    upstream: str
    role: str
    """`workers`, `producers`, `everybody`, or one worker."""
    messages: Messages | None = None
    """None: on everything that passes."""

    @property
    def text(self) -> str:
        where = f"at {self.messages.text}" if self.messages else f"on {self.upstream}"
        return f"{self.toxic.text} {where} of {self.role}"


@dataclass(frozen=True, slots=True)
class RemoveToxic(Base):
    """Heals `AddToxic` of the same name."""

    name: str
    upstream: str

    @property
    def text(self) -> str:
        return f"{self.name} off {self.upstream}"


@dataclass(frozen=True, slots=True)
class BeginOutage(Base):
    """The upstream answers as `reply` says, or refuses connections."""

    name: str
    """Unique within the plan; `EndOutage` names it."""
    upstream: str
    reply: Reply = NO_CONNECTION

    @property
    def text(self) -> str:
        return f"{self.upstream} is out of order ({self.reply.text or 'refuses connections'})"


@dataclass(frozen=True, slots=True)
class EndOutage(Base):
    """Heals `BeginOutage` of the same name."""

    name: str
    upstream: str

    @property
    def text(self) -> str:
        return f"{self.upstream} works again"


@dataclass(frozen=True, slots=True)
class DeployWorker(Base):
    """Stop the worker politely and start another version in its place."""

    worker: str
    version: str
    """Empty: the rig's own."""
    least: float = 0.0
    """Seconds that the version before must have run; how long a deploy takes is not in the plan."""

    @property
    def text(self) -> str:
        return f"deploy {self.version or 'the old version'} to {self.worker}"


@dataclass(frozen=True, slots=True)
class DeployProducer(Base):
    """From now on this share of the cases is enqueued by this version, the others by the version before."""

    version: str
    share: float = 1.0

    @property
    def text(self) -> str:
        return f"enqueue {self.share * 100:g}% of the cases with {self.version or 'the old version'}"


@dataclass(frozen=True, slots=True)
class Heal(Base):
    """End every fault, whatever its state, and start every worker that is gone. The last action of every plan."""

    @property
    def text(self) -> str:
        return "end all faults, start all workers"


Action = (
    StartWorkload
    | KillWorker
    | ArmKill
    | ArmStop
    | ArmTrouble
    | BeginTrouble
    | EndTrouble
    | RestartWorker
    | StopWorker
    | DuplicateDelivery
    | ReorderJobs
    | DelayJob
    | PutBack
    | AddToxic
    | RemoveToxic
    | BeginOutage
    | EndOutage
    | DeployWorker
    | DeployProducer
    | Heal
)


@dataclass(frozen=True, slots=True)
class CaseComing:
    """One more case is about to be put in."""


@dataclass(frozen=True, slots=True)
class JobHeld:
    """A job is held back on the broker, because of this action."""

    job: str
    action: DelayJob


@dataclass(frozen=True, slots=True)
class CaseEnqueued:
    """One more case was put in."""


@dataclass(frozen=True, slots=True)
class JobDelivered:
    """A worker was handed a job. Only a job's first delivery counts for shares and triggers."""

    job: str
    worker: str


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A job came to its end at a worker, well or not."""

    job: str


@dataclass(frozen=True, slots=True)
class WorkerGone:
    """A worker is dead, by our hand; `restart` is what the kill said."""

    worker: str
    restart: float | None = None


@dataclass(frozen=True, slots=True)
class WorkloadEnded:
    """The last case was put in."""


@dataclass(frozen=True, slots=True)
class PointReached:
    """What was armed has struck; `then` follows, so many seconds later each."""

    then: tuple[tuple[float, Action], ...] = ()


@dataclass(frozen=True, slots=True)
class WentQuiet:
    """Nothing is going on any more: whatever still waits for an event waits in vain."""


Happening = (
    CaseComing
    | JobHeld
    | CaseEnqueued
    | JobDelivered
    | JobEnded
    | WorkerGone
    | WorkloadEnded
    | PointReached
    | WentQuiet
)
