"""The agent: the child in the app's environment that makes cases, calls library code and forks handlers."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from jobcheck.errors import CaseError, WorkerError
from jobcheck.runner.agents import Agent
from jobcheck.workers.env import scrubbed
from jobcheck.workers.guardian import Guardian
from jobcheck.workers.supervisor import Supervisor

APP = """
import gc, os, sys, time

def case(case):
    case.owns(invoice=case.number + 1)
    return {"n": case.number}

def bad(case):
    raise ValueError("no such customer")

def halfway(case):
    case.owns(invoice=case.number, plan=case.values["plan"])
    raise ValueError("the broker is away")

def leaves(case):
    sys.exit("gone")

def dies(case):
    os._exit(3)

def job(path, text):
    open(path, "w").write(text)

def failing(path, text):
    raise KeyError(text)

def asleep(path, text):
    time.sleep(60)

def add(one, two):
    return one + two

def left_alone(path, text):
    frozen = gc.get_freeze_count()
    with open(path, "a") as out: out.write("%s %s\\n" % (frozen > 1000, frozen > len(gc.get_objects())))

def lazily(path, text):
    known = "colorsys" in sys.modules, "lazy_gateway" in sys.modules
    import colorsys, lazy_gateway
    with open(path, "a") as out: out.write("%s %s\\n" % known)

class Lazy:
    made = 0

    def __getattr__(self, name):
        Lazy.made += 1
        self.__name__ = "job"
        return "job"

    def __call__(self, path, text):
        with open(path, "a") as out: out.write("%s %s\\n" % (self.__name__, Lazy.made))

lazy = Lazy()
"""


def with_agent(tmp_path: Path, body: Callable[[Agent], Coroutine[Any, Any, None]]) -> None:
    (tmp_path / "shop.py").write_text(APP)

    async def main() -> None:
        guardian = Guardian.start("agenttest")
        supervisor = Supervisor("agenttest", tmp_path / "logs", guardian)
        try:
            agent = await Agent.start(
                supervisor, name="producer", python=sys.executable, cwd=tmp_path, env=scrubbed({}), folder=tmp_path
            )
            await body(agent)
            await agent.close()
        finally:
            await supervisor.close()
            guardian.close()

    asyncio.run(main())


def case(number: int) -> dict[str, Any]:
    return {"id": f"case-{number}", "number": number, "seed": 1}


def test_a_case_gives_its_ids_and_its_value(tmp_path: Path) -> None:
    async def body(agent: Agent) -> None:
        answer = await agent.request("case", function="shop:case", case=case(7))
        assert answer["ids"] == {"invoice": "8"}
        assert answer["value"] == {"n": 7}

    with_agent(tmp_path, body)


def test_a_function_is_found_in_a_file_too(tmp_path: Path) -> None:
    async def body(agent: Agent) -> None:
        assert await agent.call(str(tmp_path / "shop.py"), "add", one=1, two=2) == 3

    with_agent(tmp_path, body)


def test_what_the_app_raises_is_the_error_with_its_own_line(tmp_path: Path) -> None:
    async def body(agent: Agent) -> None:
        with pytest.raises(CaseError, match="shop:bad raised ValueError: no such customer") as caught:
            await agent.request("case", function="shop:bad", case=case(1))
        assert "shop.py:9 bad" in str(caught.value)
        with pytest.raises(CaseError, match="SystemExit: gone"):
            await agent.request("case", function="shop:leaves", case=case(1))
        assert (await agent.request("case", function="shop:case", case=case(2)))["ids"] == {"invoice": "3"}

    with_agent(tmp_path, body)


def test_an_app_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    async def body(agent: Agent) -> None:
        with pytest.raises(CaseError, match="ModuleNotFoundError: No module named 'shopp'"):
            await agent.request("import", function="shopp:job")

    with_agent(tmp_path, body)


def test_an_agent_that_dies_is_told_at_once_to_who_waits(tmp_path: Path) -> None:
    async def body(agent: Agent) -> None:
        with pytest.raises(WorkerError, match="producer ended by itself"):
            await agent.request("case", function="shop:dies", case=case(1))

    with_agent(tmp_path, body)


def test_a_fork_runs_the_handler_and_tells_how_it_ended(tmp_path: Path) -> None:
    async def body(agent: Agent) -> None:
        good = await agent.exit_of(await agent.fork("shop:job", [str(tmp_path / "out"), "done"], {}))
        assert (good.status, (tmp_path / "out").read_text()) == (0, "done")
        bad = await agent.exit_of(await agent.fork("shop:failing", ["", "invoice"], {}))
        assert (bad.status, bad.text) == (1, "KeyError: 'invoice'")

    with_agent(tmp_path, body)


def test_a_killed_fork_is_told_as_killed_and_the_agent_lives(tmp_path: Path) -> None:
    async def body(agent: Agent) -> None:
        pid = await agent.fork("shop:asleep", ["", ""], {})
        os.kill(pid, signal.SIGKILL)
        assert (await agent.exit_of(pid)).status == -signal.SIGKILL
        assert await agent.call(str(tmp_path / "shop.py"), "add", one=2, two=2) == 4

    with_agent(tmp_path, body)


def test_a_case_that_fails_halfway_tells_what_it_owned_by_then(tmp_path: Path) -> None:
    async def body(agent: Agent) -> None:
        with pytest.raises(CaseError) as caught:
            await agent.request("case", function="shop:halfway", case={**case(4), "values": {"plan": "gold"}})
        assert caught.value.ids == {"invoice": "4", "plan": "gold"}

    with_agent(tmp_path, body)


async def forked(agent: Agent, function: str, path: Path) -> None:
    pid = await agent.fork(function, [str(path), ""], {})
    assert (await asyncio.wait_for(agent.exit_of(pid), 10)).status == 0


def test_a_module_of_the_standard_library_is_imported_by_the_first_fork_only_and_others_by_each(tmp_path: Path) -> None:
    (tmp_path / "lazy_gateway.py").write_text("")
    out = tmp_path / "out"

    async def body(agent: Agent) -> None:
        for _ in range(3):
            await forked(agent, "shop:lazily", out)
            assert await agent.call(str(tmp_path / "shop.py"), "add", one=1, two=1) == 2  # the import is over
        assert out.read_text().splitlines() == ["False False", "True False", "True False"]

    with_agent(tmp_path, body)


def test_what_the_forks_share_is_left_alone_by_their_garbage_collectors(tmp_path: Path) -> None:
    """A collection would copy every page of it."""
    out = tmp_path / "out"

    async def body(agent: Agent) -> None:
        for _ in range(2):
            await forked(agent, "shop:left_alone", out)
        assert out.read_text().splitlines() == ["True True", "True True"]

    with_agent(tmp_path, body)


def test_a_lazy_object_of_the_app_is_made_before_the_forks(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def body(agent: Agent) -> None:
        await agent.request("import", function="shop:lazy")
        for _ in range(2):
            await forked(agent, "shop:lazy", out)
        assert out.read_text().splitlines() == ["job 1", "job 1"]

    with_agent(tmp_path, body)
