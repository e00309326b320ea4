"""A faster clock for the app's processes: libfaketime is loaded into them, and every one agrees on the time.

A process that is started later would begin with the real time again, so it gets what the others are ahead by; a fork
goes on with its parent's time. Measured with libfaketime 0.9.10 (Debian 12) and CPython 3.11: sleeps and `select`
follow the clock by themselves, timed waits on locks only with `inside/preload/jobcheck_waits`, and a bare
`Lock.acquire(timeout=)` not at all. What is true of an app's own interpreter is asked of it (`inside/waits`) before
anything is begun.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..clock import Clock
from ..errors import ServiceError, WaitTimeout
from .spec import ProcessSpec
from .supervisor import Supervisor

WAITS = Path(__file__).parent / "inside" / "waits.py"
ANSWERS_WITHIN = 20.0
"""Seconds of real time; longer means a wait that never ends, or a machine that is too busy to tell."""
TRIED, PATIENCE = 0.05, 2.0
"""Seconds of real time that each way waits, and after which it counts as one that never ends."""
NEEDED = ("time.sleep", "select.select", "Event.wait", "queue.Queue.get")
"""Ways without which no job system keeps its times."""
ENOUGH = 0.7
"""The share of the asked speed that a busy machine must show."""
INSTALL = "apt-get install libfaketime"


@dataclass(frozen=True, slots=True)
class Pace:
    """How much faster, since when, and by which library."""

    speed: float
    library: Path
    clock: Clock
    """The real one."""
    began: float
    """When both clocks were the same, on the real one."""

    @property
    def ahead(self) -> float:
        """Seconds that the faster clock is ahead by now."""
        return (self.clock.now() - self.began) * (self.speed - 1)

    def wall(self) -> float:
        """Seconds since the Unix epoch, on the faster clock."""
        return self.clock.wall() + self.ahead

    def environment(self) -> dict[str, str]:
        """The variables of a process that is started now."""
        return {
            "LD_PRELOAD": str(self.library),
            "FAKETIME": f"+{self.ahead:.3f} x{self.speed:g}",
            "JOBCHECK_SPEED": f"{self.speed:g}",
        }

    def booting(self, file: Path) -> dict[str, str]:
        """The variables of a process that is started now and lives in real time, until `quicken`."""
        file.write_text(f"+{self.ahead:.3f} x1\n")
        return {
            "LD_PRELOAD": str(self.library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_CACHE_DURATION": "1",
        }

    def quicken(self, file: Path) -> None:
        """Its clock leaps to where those of the others are, and goes on as fast. It sees that within two seconds."""
        ahead = file.read_text().partition(" ")[0]  # by that much it was behind the others when it was started
        whole = file.with_suffix(".new")
        whole.write_text(f"{ahead} x{self.speed:g}\n")
        whole.replace(file)

    async def check(self, python: str, supervisor: Supervisor, env: Mapping[str, str], folder: Path) -> list[str]:
        """Asks this interpreter whether it follows the clock; what of it does not, for the report.

        Raises ServiceError when it does not, so that nobody takes a clock that stands for a job that hangs.
        """
        argv = [python, str(WAITS), f"{TRIED * self.speed:g}", f"{PATIENCE * self.speed:g}"]
        worker = await supervisor.start(ProcessSpec("clock", argv, {**env, **self.environment()}, folder))
        try:
            await worker.wait(ANSWERS_WITHIN)
            told = json.loads(worker.output.tail(1)[0])
        except (WaitTimeout, ValueError, IndexError):
            said = " | ".join(worker.output.tail(3)) or "nothing"
            raise self._refused(python, f"it did not answer within {ANSWERS_WITHIN:g} s; it said {said}") from None
        finally:
            await supervisor.forget(worker)
        return self.read(python, told["took"], float(told["rate"]))

    def read(self, python: str, took: Mapping[str, float | None], rate: float) -> list[str]:
        """What its answer means. Raises ServiceError."""
        if rate < self.speed * ENOUGH:
            linked = "; a program that is linked statically loads no library" if rate < 2 else ""
            raise self._refused(python, f"its clock went {rate:g} times as fast as the kernel's{linked}")
        stuck = [way for way, seconds in took.items() if seconds is None]
        if needed := [way for way in stuck if way in NEEDED]:
            raise self._refused(python, f"{', '.join(needed)} did not come back; libfaketime 0.9.12 mends that")
        return [
            f"{way} with a timeout does not follow the faster clock in {python}: what waits so is unknown, not hung"
            for way in stuck
        ]

    def _refused(self, python: str, why: str) -> ServiceError:
        return ServiceError(
            f"expected {python} to follow a clock that is {self.speed:g} times as fast, and {why}",
            hint="the run then lives in real time",
        )


def pace(speed: float, clock: Clock, libraries: Sequence[Path]) -> Pace:
    """The pace from now on. Raises ServiceError when this machine has no libfaketime."""
    if not libraries:
        raise ServiceError(f"expected libfaketime for a clock that is {speed:g} times as fast", hint=INSTALL)
    return Pace(speed, libraries[0], clock, clock.now())
