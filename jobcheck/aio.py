"""Named tasks, named waits and servers: the one place that starts tasks, so that none is lost and none fails unseen."""

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


class Listener:
    """A server of ours: listens and runs `serve` for each connection. Subclasses say what is spoken."""

    limit = 64 * 1024
    """Bytes that a reader keeps ahead, and the longest line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.host = ""
        """Empty before `start`."""
        self.port = 0
        """0 before `start`."""
        self._server: asyncio.Server | None = None
        self._tasks = Tasks()

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listens on a free loopback port, or where it is told to. Raises OSError when that fails."""
        self._server = await asyncio.start_server(self._accept, host, port, limit=self.limit)
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    async def stop(self) -> None:
        """Closes the listener and every connection. May be called twice."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        await self._tasks.close()
        await asyncio.sleep(0)  # the transports that were just aborted take one turn of the loop to close
        await server.wait_closed()

    @property
    def failures(self) -> list[BaseException]:
        """What went wrong in connections and was not the client's doing: our own defects."""
        return self._tasks.failures

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speaks with one client until it is done. ConnectionError is fine: clients get killed here."""
        raise NotImplementedError

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.start(f"{self.name} connection", self._guard(reader, writer))

    async def _guard(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.serve(reader, writer)
        except ConnectionError:
            pass  # a killed worker resets its connections; what it asked for completely was recorded
        except asyncio.CancelledError:
            writer.transport.abort()  # a stopped client that does not read must not hold up the end
            raise
        finally:
            writer.close()


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


async def side_by_side(name: str, count: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Does the work `count` times at once, in tasks named `lane 1`. When one of them fails, or this is cancelled, the
    others are ended."""
    tasks = Tasks()
    try:
        await asyncio.gather(*(tasks.start(f"{name} {number}", work()) for number in range(count)))
    finally:
        await tasks.close()


async def bounded(work: Awaitable[T], seconds: float) -> T:
    """Awaits `work` for so many seconds at most; raises TimeoutError.

    In place of `asyncio.wait_for`: that of Python 3.11 loses a Ctrl-C that comes in the same moment as what it waits
    for (python/cpython 86296).
    """
    async with asyncio.timeout(seconds):
        return await work


async def within(work: Awaitable[T], seconds: float, what: str) -> T:
    """Awaits `work`; raises WaitTimeout naming `what` when it takes longer than `seconds`."""
    try:
        return await bounded(work, seconds)
    except TimeoutError:
        raise WaitTimeout(f"waited {seconds:g} s for {what}") from None
