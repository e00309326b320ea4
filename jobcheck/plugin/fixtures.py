"""The fixtures' objects: explorations of one test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from ..checks.contracts import Contract
from ..config import seconds
from ..errors import JobcheckError, Stopped, UsageError
from ..events import Bus, Event, Warned
from ..history.report import FindingReport, Report, SubjectReport
from ..report.text import coverage_line, in_job, label, plural, tone
from ..report.writer import write_all
from ..runner.asked import deployed, handler_job, producer_job, queue_job, strikes_of, struck_at
from ..runner.expectations import fails, read_contract, unsure
from ..runner.facade import Job, Redaction, Request, Result, explore, run
from ..runner.rig import Function, Rig, load_rig
from .failing import EXPLORED, Told, command_of, finding_text
from .settings import PLAN, Plan, test_plan

Faults = str | Sequence[str]
"""`"kill, reset"` or `["kill", "reset"]`."""
Expect = Contract | str | Mapping[str, Any]
MakeJob = Callable[[Rig, tuple[Contract, ...], Plan], Job]


@dataclass(slots=True)
class Explorer:
    """What both fixtures share: one exploration, told to pytest."""

    node: pytest.Item
    subtests: pytest.Subtests

    def explore(self, make: MakeJob, expect: Iterable[Expect], overrides: Mapping[str, object]) -> SubjectReport:
        """Explores one job in a run folder of its own. Each finding that fails is a failed subtest; what is unknown
        fails the test. Returns the subject's report."""
        try:
            plan = self._plan(overrides)
            rig = self._rig(plan)
            contracts = tuple(read_contract(value, "expect") for value in expect)
            request = self._request(plan, rig, make(rig, contracts, plan))
            warnings: list[str] = []
            result = _carried_out(request, warnings)
            path = write_all(result.report, result.folder, fail_transport=plan.settings.fail_on == "all")
        except JobcheckError as error:
            raise Told(_first_line(error.message), f"jobcheck: {error}") from None
        subject = result.report.subjects[0]
        self._keep(subject, result.report, plan, str(path), warnings)
        for finding in subject.findings:
            if fails(finding, plan.settings.fail_on):
                self._fail(subject, finding, request.seed)
        if unsure(subject):
            raise Told(f"unknown: {_first_line(subject.problem)}", _unknown_text(subject, str(path)))
        return subject

    def _plan(self, overrides: Mapping[str, object]) -> Plan:
        given = {key: value for key, value in overrides.items() if value is not None}
        plan = test_plan(self.node, self.node.config.stash[PLAN])
        return plan.over(given, self.node.config.rootpath, "explore()")

    def _rig(self, plan: Plan) -> Rig:
        if not plan.settings.rig:
            raise UsageError(
                f"no rig for {self.node.nodeid}: neither [tool.jobcheck] in {plan.project / 'pyproject.toml'} nor the "
                "test's marker names one",
                hint='rig = "tests/rig.py:shop" there, or @pytest.mark.jobcheck(rig="tests/rig.py:shop")',
            )
        return load_rig(plan.settings.rig, base=plan.project)

    def _request(self, plan: Plan, rig: Rig, job: Job) -> Request:
        return Request(
            command=f"pytest {self.node.nodeid}",
            rig=rig,
            rig_reference=plan.settings.rig,
            jobs=[job],
            name=self.node.nodeid.rpartition("/")[2],
            seed=plan.settings.seed or 0,
            reports=plan.reports,
            project=plan.project,
            node=self.node.nodeid,
            boot=plan.settings.boot,
            lanes=plan.settings.lanes,
            faults=strikes_of(plan.settings.faults),
            max_points=plan.settings.max_points,
            budget=seconds(plan.settings.budget),
            speed=float(plan.settings.speed),
            real_clocks=plan.settings.real_clocks,
            deadline=seconds(plan.settings.deadline),
            redaction=Redaction(plan.settings.secrets, plan.settings.keep_bodies),
            ruleset=plan.settings.ruleset,
        )

    def _fail(self, subject: SubjectReport, finding: FindingReport, seed: int) -> None:
        """One red line with its story."""
        with self.subtests.test(f"{finding.id} {finding.effect or 'the job'}: {finding.verdict}"):
            raise Told(finding.title, finding_text(subject, finding, command_of(self.node, seed)))

    def _keep(self, subject: SubjectReport, report: Report, plan: Plan, path: str, warnings: list[str]) -> None:
        """For the terminal summary, as plain values; the coverage for JUnit too."""
        line = coverage_line([subject])
        self.node.user_properties += [
            ("jobcheck.coverage", f"{label(subject)}: {line}"),
            ("jobcheck.verdict", subject.verdict),
            ("jobcheck.report", path),
        ]
        passing = [item for item in subject.findings if not fails(item, plan.settings.fail_on)]
        failed = len(subject.findings) - len(passing)
        self.node.stash.setdefault(EXPLORED, []).append(
            {
                "label": label(subject),
                "tone": "bad" if failed else "unsure" if unsure(subject) else tone("ok"),
                "coverage": line,
                "problem": _first_line(subject.problem),
                "shown": [
                    f"{'accepted' if item.accepted else item.layer}: {item.title}; {item.replay}" for item in passing
                ],
                "uncontracted": list(subject.uncontracted),
                "warnings": warnings,
                "report": path,
            }
        )


@dataclass(slots=True)
class RigFixture:
    """`jobcheck_rig`: the app under test, with its real workers behind its real broker."""

    _explorer: Explorer

    def explore(
        self,
        function: Function,
        *,
        expect: Iterable[Expect] = (),
        name: str = "",
        assume: str | None = None,
        boot: str | None = None,
        faults: Faults | None = None,
        follow: bool = False,
        deploy: str = "",
        at: str = "",
        max_points: int | None = None,
        deadline: str | None = None,
        speed: int | None = None,
        real_clocks: bool | None = None,
        seed: int | None = None,
        fail_on: str | None = None,
    ) -> SubjectReport:
        """Strikes the job that `function` enqueues at every point where breaking can matter, and counts its effects.

        `function` is `module:function` or a function of a module's top level; it is called with a case, in a child
        process. `expect` are contracts; without them the test fails and shows those of a clean run to paste.
        `assume="at-least-once"` runs the workers with safe settings; `faults=["kill", "reset"]` chooses the strikes
        (kills alone by default, `"all"` for every one). `follow=True` strikes the jobs that the job causes too.
        `deploy="v2"` (a folder, a Python or a git revision) deploys that version at each point. `at="relay"` strikes
        that process of the rig instead of the worker. `deadline="2m"` is for jobs that take longer than half a minute;
        `speed=100` lets the app live so many times as fast, for retries of minutes; `real_clocks=True` lets leases run
        out by themselves instead of rewinding them. Each finding is one failed subtest.
        """

        def make(rig: Rig, contracts: tuple[Contract, ...], plan: Plan) -> Job:
            job = queue_job(rig, function, contracts, name=name, assume=plan.settings.assume, follow=follow)
            return struck_at(rig, deployed([job], deploy), at)[0]

        overrides = {"assume": assume, "boot": boot, "faults": _words(faults), "max_points": max_points}
        overrides |= {"deadline": deadline, "speed": speed, "real_clocks": real_clocks}
        return self._explorer.explore(make, expect, {**overrides, "seed": seed, "fail_on": fail_on})


@dataclass(slots=True)
class HandlerFixture:
    """What `jobcheck_handler(...)` gives: a job function to run without a queue."""

    _explorer: Explorer
    _handler: Function
    _case: Function

    def explore(
        self,
        *,
        expect: Iterable[Expect] = (),
        name: str = "",
        faults: Faults | None = None,
        max_points: int | None = None,
        deadline: str | None = None,
        speed: int | None = None,
        seed: int | None = None,
        fail_on: str | None = None,
    ) -> SubjectReport:
        """The same strikes and counts as `jobcheck_rig.explore`, on the function itself: it is killed and run again."""

        def make(rig: Rig, contracts: tuple[Contract, ...], plan: Plan) -> Job:
            return handler_job(rig, self._handler, self._case, contracts, name=name)

        overrides = {"faults": _words(faults), "max_points": max_points, "deadline": deadline, "speed": speed}
        return self._explorer.explore(make, expect, {**overrides, "seed": seed, "fail_on": fail_on})


@dataclass(slots=True)
class ProducerFixture:
    """What `jobcheck_producer(...)` gives: the code that stores a row and enqueues a job."""

    _explorer: Explorer
    _function: Function

    def explore(
        self,
        *,
        expect: Iterable[Expect] = (),
        name: str = "",
        faults: Faults | None = None,
        max_points: int | None = None,
        deadline: str | None = None,
        seed: int | None = None,
        fail_on: str | None = None,
    ) -> SubjectReport:
        """Strikes the function at each of its points: afterwards the row is there if and only if its job is.

        That needs no contract. `expect` adds to it: what it names happens if and only if the row is there.
        """

        def make(rig: Rig, contracts: tuple[Contract, ...], plan: Plan) -> Job:
            return producer_job(rig, self._function, contracts, name=name)

        overrides = {"faults": _words(faults), "max_points": max_points, "deadline": deadline}
        return self._explorer.explore(make, expect, {**overrides, "seed": seed, "fail_on": fail_on})


def _words(faults: Faults | None) -> str | None:
    return faults if faults is None or isinstance(faults, str) else ", ".join(faults)


def _carried_out(request: Request, warnings: list[str]) -> Result:
    bus = Bus()

    def listen(event: Event) -> None:
        if isinstance(event, Warned):
            warnings.append(event.text)

    bus.subscribe(listen)
    try:
        return run(lambda: explore(request, bus))
    except Stopped as error:
        # Ctrl-C ends the session, as in any other test.
        raise KeyboardInterrupt(error.message) from None


def _unknown_text(subject: SubjectReport, path: str) -> str:
    lines = [f"{label(subject)}: {subject.problem or 'no answer'}", ""]
    points = subject.struck
    for strike in subject.strikes:
        if tone(strike.verdict) == "unsure":
            point = points.get(strike.point)
            where = f"{in_job(point)}{point.upstream} {point.shape}" if point else strike.point
            lines.append(f"  {strike.verdict}: {strike.fault} {strike.when} {where}")
    struck = plural(len(subject.strikes), "strike")
    return "\n".join([*lines, f"{struck}; what could not be told apart never passes", f"report: {path}"])


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
