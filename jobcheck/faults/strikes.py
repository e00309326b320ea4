"""The strikes that `explore` knows: their names, the words that choose them, and what each does, as data.

A strike's fault is one word, `kill`, or a word and a detail, `error-reply 40001`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

KILL, KILL_CHILD, KILL_PARENT = "kill", "kill-child", "kill-parent"
LOSE_REQUEST, LOSE_REPLY, ERROR_REPLY = "lose-request", "lose-reply", "error-reply"
ZOMBIE = "zombie"
TERM, TERM_GROUP = "term", "term-group"
DUPLICATE = "duplicate"
ORDER = "order"
WEBHOOK = "webhook"
RACE = "race"
DEPLOY = "deploy"
"""Of no family: it needs a version, so `--deploy` asks for it."""

STOPS = (KILL, KILL_CHILD, KILL_PARENT, ZOMBIE)
"""Strikes after which the sender sends nothing more, for a while or for ever."""

AFTERWARDS, MEANWHILE, BEFOREHAND = "afterwards", "meanwhile", "beforehand"
"""When the same message is delivered again: after the job's success, while it runs, and before it begins."""

REVERSED, LATE = "reversed", "late"
"""In which order the jobs of a case are delivered: the last one first; or `late 2`: the second after all others."""

TWICE, EARLY, SWAPPED = "twice", "early", "swapped"
"""How a provider calls back, beside `late`: each callback twice, before its answer to the call, after the jobs of the
case have ended, and then the last one first."""

FAMILIES: dict[str, tuple[str, ...]] = {
    "kill": (KILL,),
    "kill-child": (KILL_CHILD,),
    "kill-parent": (KILL_PARENT,),
    "reset": (LOSE_REQUEST, LOSE_REPLY, ERROR_REPLY),
    "zombie": (ZOMBIE,),
    "term": (TERM, TERM_GROUP),
    "duplicate": (DUPLICATE,),
    "order": (ORDER,),
    "webhook": (WEBHOOK,),
    "race": (RACE,),
}
"""The words of `--faults`, and the strikes that each stands for."""
ALL = "all"
DEFAULT = ("kill",)
SURVIVED = (LOSE_REQUEST, LOSE_REPLY, ERROR_REPLY)
"""Strikes that end no process: the app's own error handling runs, and what becomes of the job is its own decision."""
WORKERS_ONLY = ("kill-child", "kill-parent", "term", "order", "webhook")
"""Families that need a worker: a handler without its queue has neither a parent nor anybody who stops it, no other
job that could come before it, and no web server that could be called back."""

REFUSALS: dict[str, tuple[str, ...]] = {
    "postgres": ("40001", "57P01"),
    "redis": ("READONLY", "OOM"),
    "http": ("500",),
    "smtp": ("451",),
    "amqp": ("channel-close",),
}
"""What a server of each protocol may answer instead of doing what it is asked."""


@dataclass(frozen=True, slots=True)
class Words:
    """How a strike is told."""

    one: str
    many: str
    """Counted in a plan: `4 kills`."""
    occasion: str
    """Goes on with the place: `when the worker dies` ..."""
    story: str


WORDS: dict[str, Words] = {
    KILL: Words("kill", "kills", "when the worker dies", "SIGKILL to the whole worker"),
    KILL_CHILD: Words(
        "child kill", "child kills", "when the worker's child process dies", "SIGKILL to the process that sent it"
    ),
    KILL_PARENT: Words(
        "parent kill",
        "parent kills",
        "when the worker's main process dies alone",
        "SIGKILL to the main process alone; its children live on",
    ),
    LOSE_REQUEST: Words(
        "lost request", "lost requests", "when the connection breaks", "the connection breaks; the worker lives"
    ),
    LOSE_REPLY: Words(
        "lost reply",
        "lost replies",
        "when the reply is lost",
        "the connection breaks before the answer; the worker lives",
    ),
    ERROR_REPLY: Words(
        "error reply", "error replies", "when the server answers with an error", "the server answers with an error"
    ),
    ZOMBIE: Words(
        "zombie",
        "zombies",
        "when the worker is paused until another one has taken over",
        "the worker is stopped (SIGSTOP); it loses its lease",
    ),
    TERM: Words("SIGTERM", "SIGTERMs", "when the worker is told to end", "SIGTERM to the worker's main process"),
    TERM_GROUP: Words(
        "SIGTERM to the group",
        "SIGTERMs to the group",
        "when the worker and its children are told to end",
        "SIGTERM to every process of the worker",
    ),
    DUPLICATE: Words("duplicate", "duplicates", "when the message is delivered twice", "the same message comes again"),
    ORDER: Words(
        "other order",
        "other orders",
        "when the jobs are delivered in another order",
        "the jobs that were enqueued come in another order",
    ),
    WEBHOOK: Words(
        "other callback",
        "other callbacks",
        "when the provider calls back in another way",
        "the provider calls back in another way",
    ),
    DEPLOY: Words(
        "deploy",
        "deploys",
        "when the next version is deployed",
        "SIGTERM to the worker; the next one runs the next version",
    ),
    RACE: Words("race", "races", "when two workers have the job at once", "two workers have the same job"),
}


def kind_of(fault: str) -> str:
    """`error-reply` of `error-reply 40001`."""
    return fault.partition(" ")[0]


def detail_of(fault: str) -> str:
    """`40001` of `error-reply 40001`; empty when there is none."""
    return fault.partition(" ")[2]


def family_of(fault: str) -> str:
    """The word of `--faults` that chooses this strike; the fault itself when none does."""
    kind = kind_of(fault)
    return next((family for family, kinds in FAMILIES.items() if kind in kinds), kind)


def told(fault: str) -> Words:
    """How this strike is told."""
    kind = kind_of(fault)
    return WORDS.get(kind, Words(fault, fault, f"at {fault}", fault))


def read_faults(text: str) -> tuple[str, ...]:
    """The families of `kill, reset`; `all` is every one, an empty text kills alone. `config` has checked the words."""
    words = text.replace(",", " ").split()
    return tuple(FAMILIES) if ALL in words else tuple(dict.fromkeys(words)) or DEFAULT


def counted(faults: Iterable[str]) -> str:
    """`4 kills, 6 lost replies and 3 zombies`."""
    numbers: dict[str, int] = {}
    for fault in faults:
        kind = kind_of(fault)
        numbers[kind] = numbers.get(kind, 0) + 1
    parts = [f"{number} {told(kind).one if number == 1 else told(kind).many}" for kind, number in numbers.items()]
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
