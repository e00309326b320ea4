"""A seat: the taps of one worker, and the worker that sits there at the moment."""

from __future__ import annotations

from collections.abc import Sequence

from ..aio import wait_for
from ..clock import left_of
from ..errors import WaitTimeout, WorkerError
from ..systems.contract import Dialect
from ..tap.gate import HoldFetch
from ..tap.listener import Slot
from ..tap.turnstile import Turnstile
from ..workers.output import Line
from ..workers.sockets import peers
from ..workers.spec import ProcessSpec, ReadyLine
from ..workers.supervisor import Worker
from . import around
from .boots import COLD, Boot, boot_for
from .lane import Lane
from .rig import Rig

TELLS = "its workers tell"


class Seat:
    """Outlives its workers: the next one gets the same addresses."""

    def __init__(self, lane: Lane, slot: Slot, dialect: Dialect, safe: bool, boot: str) -> None:
        self.lane = lane
        self.slot = slot
        self.dialect = dialect
        self.safe = safe
        self.wanted = boot
        self.other_rig: Rig | None = None
        """The rig at another version of the app, where one works here; else the lane's."""
        self.role = ""
        """One of the rig's further workers sits here; empty: one of the first."""
        self.alone = True
        """It does one job at a time, whatever its arguments say."""
        self._boot: Boot | None = None
        self.warm = False
        """It has done a job: pools and caches are filled."""
        self.generation = 0
        self.ends: dict[str, str] = {}
        """How each job ended by the worker's own word, since the trial began."""
        self._worker: Worker | None = None

    @property
    def tells(self) -> bool:
        """The output of this app's workers tells when a job ends: one of them has done so."""
        return bool(self.lane.kept.get(TELLS))

    @property
    def alive(self) -> bool:
        return self._worker is not None and self._worker.alive

    @property
    def worker(self) -> Worker:
        """Raises WorkerError when nobody sits here."""
        if self._worker is None:
            raise WorkerError(f"no worker was started on {self.slot.name}")
        return self._worker

    def pids(self) -> Sequence[int]:
        return self._worker.pids() if self._worker is not None else []

    def tail(self) -> Sequence[str]:
        return self._worker.output.tail(12) if self._worker is not None else []

    def begin(self) -> None:
        """A new trial."""
        self.ends = {}
        self.slot.deliveries = 0
        self.slot.settled = 0
        self.slot.taken = {}

    def one_at_a_time(self, wanted: bool, *, late: bool) -> None:
        """From now on, this worker gets a job when it has ended the one before, or takes them as it likes."""
        wall, due = self.lane.stage.clock.wall, self.dialect.due
        if not wanted:
            self.slot.turnstile = None
        elif self.slot.turnstile is None:
            self.slot.turnstile = Turnstile(lambda job: left_of(due.get(job, ""), wall()) > 0, late=late)

    async def boot(self) -> None:
        """Starts a worker and waits until it is ready and held at its first fetch.

        Raises WorkerError with its last lines when it is not ready in time or ends before.
        """
        lane = self.lane
        self.generation += 1
        self.warm = False
        self.dialect.reset()
        name = f"{lane.process_name(self.slot)}-{self.generation}"
        rig = self.other_rig or lane.rig
        launch = rig.system.launch(self.slot.name, safe=self.safe, role=self.role, alone=self.alone)
        own = rig.crews[self.role].env if self.role else {}
        spec = ProcessSpec(
            name=name,
            argv=launch.argv,
            env={**lane.environment(self.slot, own), **launch.env},
            cwd=rig.folder,
            ready=ReadyLine(launch.ready),
            ready_within=lane.stage.deadline,
        )
        if self._boot is None:
            self._boot = await boot_for(lane, self.slot, launch, COLD if own else self.wanted)
        hold = HoldFetch()
        self.slot.gate = hold
        if self.slot.turnstile is not None:
            self.slot.turnstile.clear()  # what a dead connection was still sent
        worker = await self._boot.start(spec, launch)
        self._worker = worker
        worker.output.subscribe(self._line)
        lane.hear(worker)
        try:
            # A worker that fetches is ready, whatever it prints; one that waits for its first fetch may print nothing.
            await wait_for(
                lambda: hold.reached.is_set() or not worker.alive or not lane.alive,
                f"{name} to fetch",
                deadline=lane.stage.deadline,
            )
        except WaitTimeout:
            silent = self._silent(name) + self._hints()
            raise WorkerError(silent, hint=f"its output is in {worker.name}.log of the run") from None
        lane.check_alive()
        if not worker.alive:
            try:
                await worker.ready()
            except WorkerError as error:
                raise WorkerError(error.message + self._hints(), hint=error.hint) from None

    def _silent(self, name: str) -> str:
        """What a worker that lives and fetches nothing most likely lacks."""
        tail = "".join(f"\n    {line}" for line in self.tail()) or " none"
        broker = self.lane.rig.system.broker
        said = f"{name} was not ready within {self.lane.stage.deadline:g} s"
        if not self.slot.listeners[broker].bytes:
            return (
                f"{said}: it never used the tap of {broker!r}: it has another broker address (name the variable that "
                f"it reads in the rig's env), or still waits for something else; its last lines:{tail}"
            )
        return f"{said}: it fetched no job; its last lines:{tail}"

    def _hints(self) -> str:
        """What its sockets and the wire say about why."""
        lane = self.lane
        away = dict.fromkeys(
            peer
            for host, port in (peers(self.pids()) if self.alive else ())
            if host not in (self.slot.host, lane.stage.host) and (peer := around.named(host, port))
        )
        found = [*around.sentences(lane, away, "the worker"), *around.hints(lane)]
        return "".join(f"\n  {sentence}" for sentence in found)

    def _line(self, line: Line) -> None:
        ended = self.lane.rig.system.ended(line.text)
        if ended is not None:
            job, how = ended
            self.ends[job] = how
            self.lane.kept[TELLS] = True
            self.slot.ended(job)

    def filed(self, jobs: Sequence[str]) -> str:
        """Empty, or how one of the jobs failed."""
        return next((self.ends[job] for job in jobs if self.ends.get(job, "").startswith("failed")), "")

    async def kill(self) -> None:
        """SIGKILL to the whole tree, then its upstream connections are closed, seen by the servers."""
        if self._worker is not None:
            await self.lane.stage.supervisor.forget(self._worker)
        await self.slot.cut()
        self.dialect.reset()
