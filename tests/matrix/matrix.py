"""The cells of the delivery matrix that are about Celery, each with its lease rewound and with real clocks.

    make matrix                                  all of them, 15 min
    make matrix MATRIX_ARGS="SIGSTOP early"       those whose names have one of these words

What the page says was measured by hand, without jobcheck, on another day (docs/matrix.md). Ends with 1 when a verdict
with real clocks is not the one with rewound leases, or neither is what the page says.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from machine import head, row, say

from jobcheck.checks.contracts import exactly_once
from jobcheck.errors import JobcheckError, Stopped
from jobcheck.events import Bus
from jobcheck.history.ids import short_id
from jobcheck.runner import facade
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.rig import load_rig

RIG = Path(__file__).with_name("rig.py")
CHARGED, DONE = "payments POST /charge", "payments POST /done"
CONTRACTS = (exactly_once(CHARGED), exactly_once(DONE))
SAYS_SO = short_id("payments", "http POST /done", 1, "request")
"""The job has charged, and is about to say that it is done."""
CHARGES = short_id("payments", "http POST /charge", 1, "request")
"""It is about to charge. Whoever is only told to end has sent what it is held at: that still arrives."""
AGAIN, LOST, FINISHES = "duplicated", "lost", "ok"
OUTLIVES = "outlives its lease"
"""No clean run: the job was put back while a healthy worker ran it."""
NOTHING, KILL, CHILD, TERM, GROUP, ZOMBIE = "", "kill", "kill-child", "term", "term-group", "zombie"
FAMILY = {GROUP: "term"}
TOLD = {
    NOTHING: "a healthy job of 9 s",
    KILL: "SIGKILL to the tree",
    CHILD: "SIGKILL to the child",
    TERM: "SIGTERM to the parent",
    GROUP: "SIGTERM to the group",
    ZOMBIE: "SIGSTOP past the lease",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault under one setting."""

    setting: str
    rig: str
    fault: str
    page: str
    """What the page says, in its own words."""
    verdict: str
    """The same as jobcheck calls it."""
    speed: float = 1.0
    """Of the run with real clocks."""
    deadline: float = 30.0
    """Of the same, in seconds."""
    job: str = "enqueue"
    rewound: str = ""
    """The verdict with a rewound lease, where it must be another one: then the report says that it proves no clock."""

    @property
    def name(self) -> str:
        return f"{self.setting}: {TOLD[self.fault]}"


SHORT = "Redis, safe, VT 3 s, sweep 1 s"
SOLO = "Redis, safe, solo, VT 3 s, sweep 1 s"
FIVE = "Redis, safe, VT 5 s only"
USUAL = "Redis, safe, VT 3600 s (x100)"
MARKED = "Redis, safe, VT 3600 s (x100), charged once in 10 min by SQL"
EARLY = "Redis, default (early ack)"
BEATS = "RabbitMQ, safe, heartbeat 2 s"
RABBIT = "RabbitMQ, safe, default heartbeat"
RABBIT_FAST = "RabbitMQ, safe, default heartbeat (x100)"
LATE = "RabbitMQ, `task_acks_late` only"
RABBIT_EARLY = "RabbitMQ, default (early ack)"
HOUR = {"speed": 100.0, "deadline": 60.0}
CELLS = (
    Cell(SHORT, "redis_short", KILL, "run again, 3.4 s", AGAIN),
    Cell(SHORT, "redis_short", CHILD, "run again, 3.8 s", AGAIN),
    Cell(SHORT, "redis_short", TERM, "finishes", FINISHES),
    Cell(SHORT, "redis_short", GROUP, "message back, run again, 2.6 s", AGAIN),
    Cell(SHORT, "redis_short", ZOMBIE, "2 charges, 2 done", AGAIN),
    Cell(SOLO, "redis_short_solo", KILL, "run again, 3.4 s", AGAIN),
    Cell(SOLO, "redis_short_solo", ZOMBIE, "2 charges, 2 done", AGAIN),
    Cell(FIVE, "redis_five", KILL, "run again, 90.4 s", AGAIN, deadline=120.0),
    Cell(USUAL, "redis_usual", KILL, "run again (rewound: 1.6 s; an hour was not waited for)", AGAIN, **HOUR),
    Cell(USUAL, "redis_usual", CHILD, "run again, 3.8 s", AGAIN, **HOUR),
    Cell(USUAL, "redis_usual", TERM, "finishes", FINISHES, **HOUR),
    Cell(USUAL, "redis_usual", GROUP, "message back, run again, 2.6 s", AGAIN, **HOUR),
    Cell(USUAL, "redis_usual", ZOMBIE, "2 charges, 2 done (with VT 3 s)", AGAIN, **HOUR),
    Cell(MARKED, "redis_marked", KILL, "-", AGAIN, **HOUR, job="enqueue_once", rewound=FINISHES),
    Cell(SHORT, "redis_healthy", NOTHING, "3 charges, 3 done, with 2 workers", OUTLIVES),
    Cell(EARLY, "redis_early", KILL, "lost", LOST),
    Cell(EARLY, "redis_early", CHILD, "lost", LOST),
    Cell(EARLY, "redis_early", TERM, "finishes", FINISHES),
    Cell(EARLY, "redis_early", GROUP, "lost", LOST),
    Cell(BEATS, "rabbit_short", KILL, "run again, 2.0 s", AGAIN),
    Cell(BEATS, "rabbit_short", CHILD, "run again, 0.1 s", AGAIN),
    Cell(BEATS, "rabbit_short", TERM, "finishes", FINISHES),
    Cell(BEATS, "rabbit_short", GROUP, "message back, run again, 3.0 s", AGAIN),
    Cell(BEATS, "rabbit_short", ZOMBIE, "2 charges, 2 done, 4.8 s", AGAIN),
    Cell(RABBIT, "rabbit_usual", ZOMBIE, "2 charges, 2 done, 177.5 s", AGAIN, deadline=200.0),
    Cell(RABBIT_FAST, "rabbit_usual", ZOMBIE, "2 charges, 2 done, 177.5 s", AGAIN, **HOUR),
    Cell(LATE, "rabbit_late", KILL, "run again, 1.9 s", AGAIN),
    Cell(LATE, "rabbit_late", CHILD, "lost (acknowledged as failed)", LOST),
    Cell(RABBIT_EARLY, "rabbit_early", KILL, "lost", LOST),
    Cell(RABBIT_EARLY, "rabbit_early", CHILD, "lost", LOST),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """How one run of a cell ended."""

    verdict: str
    effects: tuple[str, ...] = ()
    layer: str = ""
    seconds: float = 0.0
    """Of real time, of the struck trial."""
    waited: str = ""
    """What the story says of the wait."""
    unproven: bool = False
    """The report says that it proves no clock."""

    @property
    def text(self) -> str:
        return f"{self.verdict}, {self.seconds:.1f} s" if self.seconds else self.verdict

    @property
    def outcome(self) -> tuple[object, ...]:
        return self.verdict, self.effects, self.layer


def run(cell: Cell, folder: Path, *, real: bool) -> Seen:
    """One strike."""
    rig = load_rig(f"{RIG}:{cell.rig}")
    point = CHARGES if cell.fault in (TERM, GROUP) else SAYS_SO
    strike = short_id(f"charge/{rig.system.name}", point, cell.fault, "before")
    request = Request(
        command="make matrix",
        rig=rig,
        rig_reference=f"{RIG}:{cell.rig}",
        jobs=[Job("charge", "queue", cell.job, "", CONTRACTS, only=strike if cell.fault else "")],
        name="matrix",
        reports=folder,
        faults=(FAMILY.get(cell.fault, cell.fault or KILL),),
        lanes=1,
        verify=1,
        seed=1,
        real_clocks=real,
        speed=cell.speed if real else 1.0,
        deadline=cell.deadline if real else 30.0,
    )
    try:
        result = facade.run(lambda: facade.explore(request, Bus()))
    except Stopped:
        raise
    except JobcheckError as error:
        return Seen(f"error: {error.message}")
    (subject,) = result.report.subjects
    if subject.problem.startswith("the job was put back into its queue while a healthy worker ran it"):
        return Seen(OUTLIVES)
    if subject.problem or not subject.strikes:
        return Seen(f"unknown: {subject.problem}")
    (one,) = subject.strikes
    unproven = any(note.startswith("clock: not proven") for note in subject.notes)
    return Seen(one.verdict, one.effects, one.layer, one.seconds, _waited(result.folder.path), unproven)


def _waited(folder: Path) -> str:
    """The note of the struck trial on what ran out by itself; empty where nothing did."""
    for line in (folder / "journal.jsonl").read_text("utf-8").splitlines():
        for note in json.loads(line).get("trial", {}).get("notes", ()):
            if " by itself after " in note:
                return str(note).partition(" by itself after ")[2].partition(" (")[0]
    return ""


def judged(cell: Cell, rewound: Seen, real: Seen) -> tuple[bool, str]:
    """Whether a cell is as it should be, and what the table says of it."""
    if real.verdict != cell.verdict:
        return False, "**not as the page says**"
    if cell.rewound:
        right = rewound.verdict == cell.rewound and rewound.unproven
        return right, "no, as `clock: not proven` says" if right else "**no**"
    right = rewound.outcome == real.outcome
    return right, "yes" if right else "**no**"


def main(words: Sequence[str]) -> int:
    wanted = [cell for cell in CELLS if not words or any(word.lower() in cell.name.lower() for word in words)]
    wrong = 0
    head("cell", "the page says", "rewound", "real clocks", "ran out after", "agree")
    with tempfile.TemporaryDirectory() as folder:
        for cell in wanted:
            rewound, real = (run(cell, Path(folder), real=way) for way in (False, True))
            right, word = judged(cell, rewound, real)
            wrong += not right
            row(cell.name, cell.page, rewound.text, real.text, real.waited or "-", word)
    say(f"\n{len(wanted)} cells, {wrong} wrong")
    return 1 if wrong or not wanted else 0


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except Stopped as stopped:
        raise SystemExit(str(stopped)) from None
