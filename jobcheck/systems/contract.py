"""What a job system's adapter gives. A new system is done when the conformance suite passes on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..services.spec import Address
from ..wire.unit import Unit

THROWN = "thrown away: "
"""What `ended` says of a job that a worker does not know begins with it: nothing of it is kept, and nothing ran."""
AgentCall = Callable[..., Awaitable[Any]]
"""`await call(file, function, **args)`: runs library code in a child in the app's environment."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's settings as the app itself tells them, and what they promise."""

    guarantee: str
    """`at-least-once` or `at-most-once`."""
    says: str
    """One sentence: `early ack: promises at most once; a lost job here is what these settings promise`."""
    mend: str = ""
    """The settings that would mend it: `set task_acks_late=True, ...`."""
    version: str = ""
    queues: tuple[str, ...] = ()
    eager: bool = False
    """Jobs run inside the call that enqueues them."""
    lease: float = 0.0
    """Seconds until the broker redelivers by itself; 0: at once or never."""
    sweep: float = 0.0
    """Seconds at most from the end of a lease until the system looks for it, while a worker lives; 0: at once."""
    retry_delay: float = 0.0
    """Seconds until a failed job is tried again by itself, as the app says; 0: not known, or at once."""
    retry_total: float = 0.0
    """Seconds of all its retries together, where it never succeeds; 0: not known."""
    retry_says: str = ""
    """`shop.charge retries after 180 s (default_retry_delay)`."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """Seconds after which a job that is still being worked on is stopped or given out again, by their settings' names,
    as far as they are known; 0 is none."""
    values: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """How one worker is started; the runner adds the environment and supervises it."""

    argv: tuple[str, ...]
    ready: str
    """Regular expression of the line that says it is ready."""
    env: Mapping[str, str] = field(default_factory=dict)
    at_once: int = 1
    """Jobs that it does at the same time."""
    module: str = ""
    """Where the worker is Python: the module whose main `argv` runs, so that it can be forked from a zygote."""
    preload: tuple[str, ...] = ()
    """Modules that a zygote imports before it forks, the app's own first."""
    jobs: tuple[str, str, str] | None = None
    """File, function and app: what imports all jobs of the app, as each worker does before its first."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """What follows `python -m module`."""
        return self.argv[3:]


@dataclass(frozen=True, slots=True)
class DueTimes:
    """Whose clock says when a delayed job or a retry is due."""

    owner: str
    """`the worker's memory (eta, countdown)`: the worker, the broker or the database, in words."""
    leases: str = ""
    """The same for the leases of jobs that were given out."""
    real: str = ""
    """Why it cannot be sped up with the workers; empty: it can."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a message on the broker is to the job system."""

    role: str = ""
    """`delivery`, `reserve`, `ack`, `restore` (a worker that lives puts a job back whose lease has run out), `enqueue`,
    `poll`, `noise`, `result`, or empty; `chord count` and the like for the counter that starts a chord's body when all
    parts are done."""
    job: str = ""
    parent: str = ""
    """The job that enqueued this one, where the message says so."""
    root: str = ""
    """The first job of the tree that this one belongs to, where the message says so."""
    task: str = ""
    """Name of the job's task, where the message says so."""
    text: str = ""
    """The job's arguments for a person, where the message says so."""


ORPHANED = "orphaned"
"""In place of a role: the job was acknowledged although the process that ran it had died."""


@dataclass(frozen=True, slots=True)
class Blame:
    """Where a loss is laid."""

    layer: str
    """`handler`, `settings` or `transport`."""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that the broker held and gave out."""

    id: str
    name: str
    """Of its task."""
    arguments: str
    """As a text for a person, ids included."""


class Reader(Protocol):
    """What messages mean. Pure."""

    def read(self, unit: Unit, request: Unit | None, role: str) -> Meaning:
        """What a unit means. For an answer: its request, and what that one was said to mean."""
        ...


class Dialect(Reader, Protocol):
    """What the messages on the broker mean. One per worker, pure."""

    @property
    def due(self) -> Mapping[str, str]:
        """When a job is to run at the earliest, by its id: ISO 8601; empty: at once."""
        ...

    def held(self) -> Sequence[str]:
        """Delivery tags that the worker holds and has not settled: what a rewind must expire, and nothing else."""
        ...

    def reset(self) -> None:
        """A new worker: it holds nothing."""
        ...


class Queue(Protocol):
    """How many messages a queue has."""

    @property
    def ready(self) -> int: ...
    @property
    def unacked(self) -> int: ...
    @property
    def exclusive(self) -> bool: ...


class Broker(Protocol):
    """A broker that can tell its own depth (RabbitMQ); others are asked through a client."""

    async def depth(self, address: Address) -> Sequence[Queue]: ...


class System(Protocol):
    """One job system on one kind of broker."""

    @property
    def name(self) -> str:
        """`celery-redis`."""
        ...

    @property
    def broker(self) -> str:
        """Name of the rig's upstream that is the broker."""
        ...

    @property
    def interpreter(self) -> str:
        """The Python of the app's environment."""
        ...

    def launch(self, name: str, *, safe: bool, role: str = "", alone: bool = True) -> Launch:
        """How a worker of this name is started; `safe` overrides the user's settings by at-least-once ones. `role` is
        one of those that it was told of; `alone`: it does one job at a time, whatever its arguments say."""
        ...

    def scheduler(self, folder: str, args: Sequence[str]) -> Launch:
        """How the app's own scheduler is started; what it keeps lies in `folder`."""
        ...

    @property
    def path(self) -> tuple[str, ...]:
        """Folders that the app's processes find modules of this adapter in, such as the canary."""
        ...

    @property
    def due_times(self) -> DueTimes:
        """Who owns the due times of delayed jobs and retries."""
        ...

    def dialect(self) -> Dialect: ...

    def results(self, kind: str) -> Reader | None:
        """Reads the messages to an upstream of this kind that is not the broker and may keep results; None: nobody."""
        ...

    async def enqueue_canary(self, call: AgentCall, key: str) -> None:
        """Enqueues a job that does one mark `canary KEY`, and nothing else."""
        ...

    async def describe(self, call: AgentCall, *, safe: bool, task: str = "") -> Settings: ...

    def on(self, kind: str) -> System:
        """The same system on the kind of broker that the rig has (`redis`, `rabbitmq`). Raises UsageError."""
        ...

    def beside(self, roles: Mapping[str, Sequence[str]]) -> System:
        """The same, with further workers that serve other queues: their arguments by role. Raises UsageError."""
        ...

    async def depth(self, broker: Broker, address: Address, settings: Settings) -> int:
        """Ready, delayed and unacknowledged jobs on the broker, all queues together."""
        ...

    async def rewind(self, address: Address, held: Sequence[str], settings: Settings, call: AgentCall) -> str:
        """Expires the lease of these deliveries and lets the system's own recovery run. Says what was done."""
        ...

    async def duplicate(self, address: Address, delivery: Unit, call: AgentCall, *, next_up: bool) -> None:
        """Puts the message of a delivery on the broker once more, as it came; `next_up`: before all that wait."""
        ...

    async def reorder(self, call: AgentCall, settings: Settings, jobs: Sequence[str]) -> None:
        """Lets jobs that wait on the broker be given out in this order. They are all there, and no worker fetches."""
        ...

    async def halt(self, address: Address, call: AgentCall, settings: Settings) -> None:
        """Jobs that are enqueued from now on stay on the broker, until `go_on`. May be called again and again.

        The caller keeps workers from asking for jobs anew; this ends what they have asked already.
        """
        ...

    async def go_on(
        self, address: Address, call: AgentCall, settings: Settings, jobs: Sequence[str], kept: Sequence[str]
    ) -> None:
        """Ends `halt`: these jobs wait in this order from now on, but for those that are kept, which are held back.

        To the broker they are like jobs that a worker has and does not settle. Raises CaseError when one is not there.
        """
        ...

    async def put_back(self, address: Address, call: AgentCall, settings: Settings, jobs: Sequence[str]) -> None:
        """Lets jobs that are held back be given out, before all that wait. Raises CaseError when one is not there."""
        ...

    async def take_all(self, call: AgentCall, settings: Settings) -> list[Waiting]:
        """Takes every job that waits in the app's queues, delayed ones too, out of the broker."""
        ...

    async def filed(self, address: Address, jobs: Sequence[str]) -> str:
        """How the system filed the jobs: empty, or `failed: ...`."""
        ...

    def ended(self, line: str) -> tuple[str, str] | None:
        """Reads one line of a worker's output: a job's id and `succeeded`, `failed: ...`, `thrown away: ...` or
        `retrying`."""
        ...

    def blame_storage(self, how: str, durable: bool, settings: Settings) -> Blame:
        """For a job that was on the broker, and was not there any more when the broker had failed in this way:
        `restart`, `kill` or `wipe`. `durable`: what the broker has answered survives a restart and a SIGKILL."""
        ...

    def blame_publish(self, settings: Settings) -> Blame:
        """For a job that a worker sent over a connection that broke, or that the broker refused, and that nobody has:
        the worker lived, and went on."""
        ...

    def blame_loss(self, passed: Sequence[str], coming: str, settings: Settings) -> Blame:
        """For a job that was lost and not handed out again: whose fault it is.

        `passed` are the roles of the points that were through when the worker died, `coming` is that of the next;
        ORPHANED is among them where a child of the worker died and its parent acknowledged the job.
        """
        ...
