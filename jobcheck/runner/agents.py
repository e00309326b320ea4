"""The harness's side of the agent: a child in the app's environment that answers requests."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..aio import Tasks, bounded, within
from ..errors import CaseError, WaitTimeout, WorkerError
from ..workers import platform
from ..workers.platform import signal_name
from ..workers.spec import ProcessSpec, ReadyNow
from ..workers.supervisor import Supervisor, Worker

AGENT = Path(__file__).parent.parent / "workers" / "inside" / "agent.py"
PACKAGES = Path(__file__).resolve().parent.parent.parent
_sockets = itertools.count(1)


class Exit:
    """How a forked handler ended."""

    def __init__(self, status: int, told: Mapping[str, Any] | None) -> None:
        self.status = status
        self.error = told if status else None
        self.answer: Mapping[str, Any] = told or {} if status == 0 else {}
        """Of a function that was called with a case: its `ids`."""

    @property
    def text(self) -> str:
        """Empty after a success, else the exception or the signal."""
        if self.error:
            return f"{self.error.get('error')}: {self.error.get('message')}"
        if self.status < 0:
            return f"ended by {signal_name(-self.status)}, which jobcheck did not send"
        return "" if self.status == 0 else f"ended with status {self.status}"


class Agent:
    """One agent process. `request` raises CaseError with the app's own message when the app raised."""

    def __init__(self, worker: Worker, server: asyncio.Server) -> None:
        self.worker = worker
        self._server = server
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._exits: dict[int, asyncio.Future[Exit]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._ready: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._tasks = Tasks()

    @classmethod
    async def start(
        cls,
        supervisor: Supervisor,
        *,
        name: str,
        python: str,
        cwd: Path,
        env: Mapping[str, str],
        folder: Path,
        ready_within: float = 30.0,
    ) -> Agent:
        """Boots an agent and waits until it has connected."""
        path = folder / f"a{next(_sockets)}"
        box: list[Agent] = []
        early: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if box:
                box[0]._connected(reader, writer)
            else:
                early.append((reader, writer))

        server = await asyncio.start_unix_server(accept, str(path), limit=64 * 1024 * 1024)
        spec = ProcessSpec(
            name=name,
            argv=(python, str(AGENT)),
            env={**env, "JOBCHECK_AGENT": str(path), "JOBCHECK_PATH": str(PACKAGES)},
            cwd=cwd,
            ready=ReadyNow(),
        )
        try:
            agent = cls(await supervisor.start(spec), server)
        except BaseException:
            server.close()
            raise
        box.append(agent)
        for pair in early:
            agent._connected(*pair)
        agent.worker.on_exit(lambda *_: agent._gone())
        try:
            await within(asyncio.shield(agent._ready), ready_within, f"{name} to start")
        except BaseException:
            await agent.close()
            raise
        return agent

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._tasks.start(f"{self.worker.name} reader", self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            message = json.loads(line)
            event = message.get("event")
            if event == "ready" and not self._ready.done():
                self._ready.set_result(message)
            elif event == "exit":
                self._exit(message["pid"]).set_result(Exit(message["status"], message["error"]))
            elif (waiter := self._waiting.pop(message.get("id", 0), None)) is not None and not waiter.done():
                waiter.set_result(message)
        self._gone()

    def _exit(self, pid: int) -> asyncio.Future[Exit]:
        return self._exits.setdefault(pid, asyncio.get_running_loop().create_future())

    def _gone(self) -> None:
        """The process ended by itself: nobody waits for ever."""
        tail = "\n    ".join(self.worker.output.tail(8))
        error = WorkerError(f"{self.worker.name} ended by itself; its last lines:\n    {tail}")
        waiters: list[asyncio.Future[Any]] = [self._ready, *self._waiting.values(), *self._exits.values()]
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(error)
                waiter.exception()

    async def request(self, do: str, *, seconds: float = 30.0, **values: Any) -> dict[str, Any]:
        """Sends one request and gives its answer; `seconds` bounds the wait."""
        if self._writer is None or not self.worker.alive:
            self._gone()
            raise WorkerError(f"{self.worker.name} is not running", hint=f"its log is {self.worker.name}.log")
        number = next(self._ids)
        waiter: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiter
        self._writer.write(json.dumps({"id": number, "do": do, **values}).encode() + b"\n")
        try:
            answer = await within(waiter, seconds, f"{self.worker.name} to answer {do} {values.get('function', '')}")
        except WaitTimeout as late:
            raise WorkerError(
                f"{late.message}; its last lines:\n    " + "\n    ".join(self.worker.output.tail(8) or ["(nothing)"]),
                hint="does importing the app, or the function, wait for something that is not there?",
            ) from None
        if not answer["ok"]:
            where = "".join(f"\n    {line}" for line in answer.get("where", ()))
            error = CaseError(f"{values.get('function', do)} raised {answer['error']}: {answer['message']}{where}")
            error.ids = answer.get("ids", {})
            raise error
        return answer

    async def call(self, file: str, function: str, **args: Any) -> Any:
        """Runs library code in the child."""
        return (await self.request("call", file=file, function=function, args=args))["value"]

    async def fork(self, function: str, args: list[Any], kwargs: Mapping[str, Any], temporary: str = "") -> int:
        """Forks a child that runs the function, and gives its pid at once. `temporary` is the folder of its files."""
        answer = await self.request("fork", function=function, args=args, kwargs=dict(kwargs), temporary=temporary)
        return int(answer["pid"])

    async def fork_case(self, function: str, case: Mapping[str, Any]) -> int:
        """The same for a function that is called with a case; what it made of it is in the exit's `answer`."""
        return int((await self.request("fork", function=function, case=dict(case)))["pid"])

    def exit_of(self, pid: int) -> asyncio.Future[Exit]:
        """How a forked child ended, once it did."""
        return self._exit(pid)

    def forget(self, pid: int) -> None:
        self._exits.pop(pid, None)

    async def end(self, pid: int) -> None:
        """SIGKILL to a fork and to everything that it started: it leads its own session. Raises WorkerError."""
        for one in platform.processes():
            if one.session == pid:
                platform.send(one.pid, signal.SIGKILL)
        platform.send(pid, signal.SIGKILL)
        try:
            await bounded(asyncio.shield(self.exit_of(pid)), 5)
        except TimeoutError:
            raise WorkerError(f"the handler (pid {pid}) did not end within 5 s of SIGKILL") from None
        self.forget(pid)

    async def close(self) -> None:
        await self.worker.kill_tree()
        await self._tasks.close()
        if self._writer is not None:
            self._writer.close()
        self._server.close()
