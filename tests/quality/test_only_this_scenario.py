"""What the scenarios of the self-test find is found by them alone: no strike of `explore` shows it, and no scenario
that is next to its own one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from blameless import only_the_transport_loses

from jobcheck.events import Bus
from jobcheck.explore.causes import TRANSPORT
from jobcheck.faults.strikes import FAMILIES, WORKERS_ONLY
from jobcheck.history.report import SubjectReport
from jobcheck.runner import facade
from jobcheck.runner.facade import Job
from jobcheck.runner.scenarios.campaign import ScenarioRequest, run_scenarios
from jobcheck.selftest.in_trouble import PAIRS
from jobcheck.selftest.kinds import HANDLER_MODE, QUEUE_MODE
from jobcheck.selftest.rounds import request_for
from jobcheck.selftest.runs import LANES, loaded

pytestmark = pytest.mark.timeout(300)
WRONG = {wrong.name: wrong for wrong, _ in PAIRS}
THROUGH_THE_QUEUE = ("mails_in_the_queue", "enqueue_given_up")
"""Their mail is sent by somebody else: by what settles, and by a follow-up job."""
ALONE = [name for name in WRONG if name not in THROUGH_THE_QUEUE]
FAMILIES_OF = {HANDLER_MODE: [one for one in FAMILIES if one not in WORKERS_ONLY], QUEUE_MODE: ["kill", "reset"]}
"""What each is put under. By hand the two in the queue were put under those that take long, too: they find nothing."""
FEW = {HANDLER_MODE: 20, QUEUE_MODE: 6}
"""Strikes of one job at most, of every family. By hand all of them were tried: they find nothing either."""
NEXT_TO = {
    "enqueue_given_up": "broker-wiped",
    "read_only_passed_over": "db-killed",
    "entry_left_out": "db-killed",
    "connection_kept_for_good": "db-exhausted",
    "tries_that_run_out": "payments-cut-twice",
    "always_from_the_start": "payments-down",
    "first_piece_is_all": "payments-garbage",
    "one_second_try": "payments-garbage",
}
"""Scenarios in which something else of the same server fails, so that the job meets it, and stands it."""


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SubjectReport]:
    """Every wrong one under the strikes of `explore`."""
    request = request_for(7, only=["no_key"], modes=[HANDLER_MODE], reports=tmp_path_factory.mktemp("struck"))
    path = request.rig_reference.rpartition(":")[0]
    jobs = [
        Job(name, HANDLER_MODE, f"{path}:member", f"club.wrong_in_trouble:{name}", WRONG[name].contracts)
        for name in ALONE
    ]
    jobs += [
        Job(name, QUEUE_MODE, f"{path}:enqueue_wrong_{name}", "", WRONG[name].contracts) for name in THROUGH_THE_QUEUE
    ]
    jobs = [replace(job, faults=tuple(FAMILIES_OF[job.mode]), max_points=FEW[job.mode]) for job in jobs]
    rig = replace(request.rig, settle=("send_mails",))
    report = facade.run(lambda: facade.explore(replace(request, rig=rig, jobs=jobs, verify=1), Bus())).report
    return {subject.name: subject for subject in report.subjects}


@pytest.mark.parametrize("name", WRONG)
def test_no_strike_of_explore_shows_it(struck: dict[str, SubjectReport], name: str) -> None:
    """The points are the steps that were written down beside the bug, and each was struck."""
    subject = struck[name]
    only_the_transport_loses(subject, set(FAMILIES_OF[subject.mode]))
    own = [f"{one.upstream} {one.shape.split(' ', 1)[1]}" + f" #{one.nth}" * (one.nth > 1) for one in subject.points]
    assert [step for step in own if step in WRONG[name].steps] == list(WRONG[name].steps)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Wrong ones in the scenarios of others, judged as in their own."""
    runs = []
    for name, other in NEXT_TO.items():
        own, there = loaded(WRONG[name], 7).scenario, loaded(WRONG[name], 7, other)
        runs.append(replace(there, scenario=replace(there.scenario, expect=own.expect, settle=own.settle)))
    request = ScenarioRequest(loaded=runs, reports=tmp_path_factory.mktemp("beside"), lanes=LANES)
    report = facade.run(lambda: run_scenarios(request, Bus())).report
    return dict(zip(NEXT_TO, report.scenarios, strict=True))


@pytest.mark.parametrize("name", NEXT_TO)
def test_a_scenario_next_to_its_own_does_not_show_it(beside: dict[str, dict[str, Any]], name: str) -> None:
    run = beside[name]
    assert (run["verdict"], run["problem"]) == ("ok", "")
    assert [case for case in run["bad"] if case["layer"] != TRANSPORT] == []
    assert all(fault["met"] for fault in run["faults"])
