"""The shop on RabbitMQ: the handler's bugs are found where they are on Redis, and the transport loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.checks.contracts import at_least_once, exactly_once
from jobcheck.events import Bus
from jobcheck.explore.points import point_id
from jobcheck.history.ids import short_id
from jobcheck.history.report import Report, SubjectReport
from jobcheck.runner import facade
from jobcheck.runner.demo import bad_points
from jobcheck.runner.facade import Job, Request
from jobcheck.runner.rig import load_rig
from jobcheck.runner.samples import sample

_PUBLISH = point_id("broker", "amqp basic.publish celery", 1, "request")
LOST_PUBLISH = short_id("chain/celery-rabbitmq", _PUBLISH, "lose-request", "before")
"""The connection breaks when the first job of the chain enqueues the next one."""
PLANTED = {"naive": 3, "marker_after": 2, "locked": 0}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = sample("apps", "invoices", "rig.py")
    contracts = (exactly_once("payments POST /charges"), at_least_once("mail"))
    request = Request(
        command="test",
        rig=load_rig(f"{path}:shop_on_rabbitmq"),
        jobs=[
            *(Job(variant, "queue", f"{path}:new_invoice_{variant}", "", contracts) for variant in PLANTED),
            Job("chain", "queue", f"{path}:new_invoice", "", contracts, only=LOST_PUBLISH),
        ],
        reports=tmp_path_factory.mktemp("reports"),
        lanes=1,
        seed=5,
    )
    return facade.run(lambda: facade.explore(request, Bus())).report


def subject(report: Report, variant: str) -> SubjectReport:
    return next(item for item in report.subjects if item.name == variant)


@pytest.mark.parametrize("variant", PLANTED)
def test_the_handler_has_the_same_bad_points_and_the_transport_none(report: Report, variant: str) -> None:
    item = subject(report, variant)
    assert item.problem == ""
    assert (bad_points(item, "handler"), bad_points(item, "transport")) == (PLANTED[variant], 0)
    assert item.verdict == ("broken" if PLANTED[variant] else "ok")


def test_the_points_of_the_broker_are_the_delivery_and_the_ack(report: Report) -> None:
    points = subject(report, "locked").points
    assert [point.shape for point in points if point.broker] == ["amqp basic.deliver celery", "amqp basic.ack"]
    assert (len(points), len(subject(report, "locked").strikes)) == (5, 6)


def test_a_dead_workers_delivery_comes_back_without_a_rewind(report: Report) -> None:
    redelivered = [strike.redelivered for strike in subject(report, "locked").strikes]
    assert redelivered == [True] * 5 + [False], "after the ack there is nothing to give out again"


def test_a_follow_up_that_was_sent_and_never_arrived_is_laid_at_the_settings(report: Report) -> None:
    """Celery does not ask RabbitMQ to confirm what it sends, so the job that sends it is none the wiser."""
    item = subject(report, "chain")
    (strike,) = item.strikes
    assert (strike.fired, strike.verdict, strike.layer) == (True, "lost", "settings"), item.problem
    (finding,) = item.findings
    assert "broker_transport_options={'confirm_publish': True}" in finding.advice
    assert item.verdict == "broken"


def test_the_server_is_named_with_its_version(report: Report, tmp_path: Path) -> None:
    assert report.environment["broker"].startswith("rabbitmq ")
