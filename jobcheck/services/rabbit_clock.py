"""RabbitMQ on a faster clock: the whole node goes along, with its heartbeats, times to live and consumer timeouts.

Erlang waits by its own clock, but a scheduler that sleeps while another one is awake sleeps in a system call that
libfaketime does not see: with two schedulers a wait of 10 s took up to 740 s of the node's own time, with one it took
10.08 s (measured with Erlang/OTP 25.2 under libfaketime 0.9.10, at speed 100). So a node on a faster clock has one
scheduler. It boots in real time, because Erlang gives up the parts of a start after 5 s each (at speed 1000 a node did
not come up), and its clock leaps to where the others are when it is there. Whether this machine's Erlang follows at all
is asked before anything is started.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..aio import wait_until
from ..errors import WaitTimeout, WorkerError
from ..workers.pace import Pace
from ..workers.spec import ProcessSpec
from ..workers.supervisor import Supervisor
from . import base
from .base import Place
from .rabbit_control import NodeControl

ONE_SCHEDULER = ("+S", "1")
"""Arguments of Erlang."""
TRIES = 3
"""A busy machine may be late once."""
ANSWERS_WITHIN = 20.0
"""Seconds of real time."""
WAITED, LATE = 0.1, 0.5
"""Seconds of real time that it is to wait, and how late it may be."""
ENOUGH = 0.7
"""The share of the asked speed that a busy machine must show."""
ASK = """\
Up = fun() -> {ok, Text} = file:read_file("/proc/uptime"), [Word | _] = string:lexemes(Text, " "),
    binary_to_float(Word) end,
Real = Up(), Own = erlang:monotonic_time(millisecond),
Took = [begin T = erlang:monotonic_time(millisecond), timer:sleep(@WAIT@),
    erlang:monotonic_time(millisecond) - T end || _ <- [1, 2, 3]],
io:format("took ~p own ~p real ~p~n", [lists:max(Took), erlang:monotonic_time(millisecond) - Own, Up() - Real]),
halt().
"""
"""Three waits of so many milliseconds: the longest of them, and all three by both clocks. Nothing fakes
`/proc/uptime`."""
TOLD = re.compile(r"took (\d+) own (\d+) real ([\d.]+)")


CLOCK = "clock"
"""The file of a node's folder that says how fast it lives."""
LEAPS_WITHIN = 15.0
"""Seconds of real time: libfaketime looks into the file once a second."""


def booting(place: Place, data: Path) -> dict[str, str]:
    """The variables of a node that is started now: in real time, until it is `quickened`."""
    return place.pace.booting(data / CLOCK) if place.pace is not None else {}


async def quickened(place: Place, data: Path, control: NodeControl) -> None:
    """The node lives as fast as all others from now on. Raises WaitTimeout when its clock does not come to theirs."""
    pace = place.pace
    if pace is None:
        return
    apart = pace.wall() - await control.wall()
    pace.quicken(data / CLOCK)
    seen = apart

    async def there() -> bool:
        nonlocal seen
        seen = pace.wall() - await control.wall()
        return seen < apart / 2

    what = f"the clock of {place.name} to go {pace.speed:g} times as fast"
    await wait_until(there, what, deadline=LEAPS_WITHIN, every=0.02, last_seen=lambda: f"it was {seen:.0f} s behind")


async def refusal(pace: Pace, supervisor: Supervisor, folder: Path) -> str:
    """Why this machine's Erlang cannot live so fast; empty when it can."""
    why = ""
    for _ in range(TRIES):
        why = await _asked(pace, supervisor, folder)
        if not why:
            return ""
    return why


async def _asked(pace: Pace, supervisor: Supervisor, folder: Path) -> str:
    ask = ASK.replace("@WAIT@", str(round(WAITED * pace.speed * 1000)))
    env = {**base.server_env(folder), **pace.environment()}
    spec = ProcessSpec("clock-of-erlang", ["erl", *ONE_SCHEDULER, "-noinput", "-eval", ask], env, folder)
    try:
        worker = await supervisor.start(spec)
    except WorkerError as error:
        return f"Erlang was not asked: {error.message}"
    try:
        await worker.wait(ANSWERS_WITHIN)
    except WaitTimeout:
        return f"Erlang did not come back from waits within {ANSWERS_WITHIN:g} s"
    finally:
        await supervisor.forget(worker)
    return read(worker.output.text, pace.speed)


def read(text: str, speed: float) -> str:
    """What Erlang's answer says: why it does not follow a clock of this speed; empty when it does."""
    told = TOLD.search(text)
    if told is None:
        return f"Erlang was asked, and said {text.strip()[-200:] or 'nothing'}"
    longest, own, real = int(told[1]) / 1000, int(told[2]) / 1000, float(told[3])
    if own / max(real, 0.01) < speed * ENOUGH:
        return f"Erlang's clock went {own / max(real, 0.01):.3g} times as fast as the kernel's"
    if longest > (WAITED + LATE) * speed:
        return f"a wait of {WAITED * speed:g} s in Erlang took {longest:.0f} s of its own time"
    return ""
