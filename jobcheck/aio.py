"""Named tasks and named waits: the one place that starts tasks, so that none is lost and none fails unseen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from .clock import REAL
from .errors import WaitTimeout

T = TypeVar("T")
P = ParamSpec("P")


class Tasks:
    """A set of named tasks with one owner. Closing it cancels and awaits every one of them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self.failures: list[BaseException] = []

    def start(self, name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs `work` as a task; a failure is kept in `failures` when nobody awaits it."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)

    async def close(self) -> None:
        """Cancels what still runs and waits for it."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def wait_for(
    condition: Callable[[], T | None],
    what: str,
    *,
    deadline: float,
    every: float = 0.002,
    last_seen: Callable[[], str] | None = None,
) -> T:
    """Waits until `condition` gives something true and returns it.

    `deadline` and `every` are seconds. Raises WaitTimeout naming `what` and what was last seen.
    """
    end = REAL.now() + deadline
    while True:
        if result := condition():
            return result
        if REAL.now() >= end:
            seen = f"; last seen: {last_seen()}" if last_seen else ""
            raise WaitTimeout(f"waited {deadline:g} s for {what}{seen}")
        await asyncio.sleep(every)


async def wait_until(
    condition: Callable[[], Awaitable[T | None]],
    what: str,
    *,
    deadline: float,
    every: float = 0.005,
    last_seen: Callable[[], str] | None = None,
) -> T:
    """The same as `wait_for`, for a condition that has to be awaited."""
    end = REAL.now() + deadline
    while True:
        if result := await condition():
            return result
        if REAL.now() >= end:
            seen = f"; last seen: {last_seen()}" if last_seen else ""
            raise WaitTimeout(f"waited {deadline:g} s for {what}{seen}")
        await asyncio.sleep(every)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs a blocking function in a thread. When this is cancelled, the function is waited for nevertheless: what it
    still writes would otherwise appear after everything was cleared away."""
    work = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            await asyncio.wait([work])
        raise


async def within(work: Awaitable[T], seconds: float, what: str) -> T:
    """Awaits `work`; raises WaitTimeout naming `what` when it takes longer than `seconds`."""
    try:
        return await asyncio.wait_for(work, seconds)
    except TimeoutError:
        raise WaitTimeout(f"waited {seconds:g} s for {what}") from None
