"""What each strike does to a handler that runs without its queue, and what comes after it.

There is no job system here that would say what happens next, so the hardest of the usual answers is taken: a run that
died or failed is followed by another one, as late acks or retries would do it.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from ..faults import strikes as known
from ..tap.gate import Armed
from .agents import Exit
from .locks import ends_or_waits
from .refusing import refuse
from .trial import Running

if TYPE_CHECKING:
    from .handler import Fork, HandlerMode


async def carry_out(mode: HandlerMode, running: Running, gate: Armed, fork: Fork) -> None:
    """Does to the held run what the strike says, and waits until everything has ended."""
    assert running.strike is not None
    assert gate.hit is not None
    fault = running.strike.fault
    match known.kind_of(fault):
        case known.KILL:
            await mode.kill(fork)
            await mode.slot.cut()
            await again(mode, running)
        case known.LOSE_REQUEST | known.LOSE_REPLY:
            gate.hit.link.lose()
            await _goes_on(mode, running, fork)
        case known.ERROR_REPLY:
            refuse(mode.lane, gate.hit, known.detail_of(fault))
            await _goes_on(mode, running, fork)
        case known.ZOMBIE:
            await _zombie(mode, running, gate, fork)
        case other:
            raise ValueError(f"{other} is no strike of a handler")


async def again(mode: HandlerMode, running: Running) -> None:
    """The function once more, to its end, where somebody runs it again."""
    running.fired = True
    if not mode.runs_again:
        return
    running.deliveries_after += 1
    await mode.finish(running, await mode.start(running))


async def _goes_on(mode: HandlerMode, running: Running, fork: Fork) -> None:
    """The run lives: its own error handling decides. Where it fails, another one follows."""
    exit_ = await mode.end_of(running, fork)
    if exit_ is None:
        return
    await mode.lane.settle_links([mode.slot])
    if exit_.status != 0:
        then = "it is run again, as a retry would" if mode.runs_again else "whoever called it was told"
        running.notes.append(f"the {mode.name} failed ({exit_.text}); {then}")
        await again(mode, running)


async def _zombie(mode: HandlerMode, running: Running, gate: Armed, fork: Fork) -> None:
    """The first run stands still while a second one does the whole job, and then goes on."""
    assert gate.hit is not None
    mine = set(mode.slot.links)
    fork.send(signal.SIGSTOP)
    running.deliveries_after += 1
    second = await mode.start(running)
    if not await ends_or_waits(
        mode.lane,
        second.ended.done,
        lambda: (sight for sight in mode.slot.in_flight() if sight.link not in mine),
        lambda: mine,
    ):
        running.notes.append("the second run waited for a lock of the first, which went on meanwhile")
    mode.slot.release()
    fork.send(signal.SIGCONT)
    ends = [await mode.end_of(running, second), await mode.end_of(running, fork)]
    await mode.lane.settle_links([mode.slot])
    failed = [exit_ for exit_ in ends if isinstance(exit_, Exit) and exit_.status != 0]
    if len(failed) == len(ends):
        running.filed = f"failed: {failed[0].text}"
