"""An app with roles: workers of another queue, a relay, a web server, a scheduler, each a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobcheck.history.report import SubjectReport
from jobcheck.runner.scenarios.campaign import dry

from . import bad_day

pytestmark = pytest.mark.timeout(300)

ROUTES = 'app.conf.task_routes = {"tiny.post": {"queue": "mail"}}'
FOLLOWED = """    jobcheck.mark("done", key)
    post.delay(key)

@app.task
def post(key):
    jobcheck.mark("posted", os.environ.get("WHO", "") + key)
"""
RELAY = """
import os, time, redis, tiny
wishes = redis.Redis.from_url(os.environ["WISHES"])
print("relay is up", flush=True)
while True:
    for key in wishes.smembers("wishes"):
        {steps}
    time.sleep(0.02)
"""
RIGHT = 'tiny.work.delay(key.decode()); wishes.srem("wishes", key)'
WRONG = 'wishes.srem("wishes", key); tiny.work.delay(key.decode())'
RELAY_ROLE = 'processes={"relay": jobcheck.process("python relay.py", ready="relay is up")}'
WISH = """

def wish(case):
    import os, redis
    key = f"key-{case.number}"
    case.owns(key=key)
    redis.Redis.from_url(os.environ["WISHES"]).sadd("wishes", key)

def post(case):
    import tiny
    key = f"key-{case.number}"
    case.owns(key=key)
    tiny.post.delay(key)
"""


def write(folder: Path, roles: str, *, relay: str = RIGHT) -> Path:
    """The tiny app, with a second task on a queue of its own, a store of wishes, and these roles."""
    bad_day.project(folder, FOLLOWED, settings=ROUTES)
    (folder / "relay.py").write_text(RELAY.format(steps=relay))
    text = (folder / "rig.py").read_text()
    text = text.replace('"broker": jobcheck.redis()', '"broker": jobcheck.redis(), "kv": jobcheck.redis()')
    text = text.replace("env={", f'{roles}, env={{"WISHES": "{{kv.url}}", ')
    (folder / "rig.py").write_text(text + WISH)
    return folder


def explore(folder: Path, function: str, *expect: str, at: str = "", faults: str = "kill") -> SubjectReport:
    from jobcheck.events import Bus
    from jobcheck.runner import facade
    from jobcheck.runner.asked import queue_job, struck_at
    from jobcheck.runner.expectations import read_contract
    from jobcheck.runner.rig import load_rig

    rig = load_rig(f"{folder / 'rig.py'}:tiny")
    job = queue_job(rig, f":{function}", tuple(read_contract(text) for text in expect))
    request = facade.Request(
        command="test",
        rig=rig,
        jobs=struck_at(rig, [job], at),
        reports=folder / "reports",
        faults=tuple(faults.split(",")),
        lanes=1,
        verify=1,
        seed=3,
    )
    (subject,) = facade.run(lambda: facade.explore(request, Bus())).report.subjects
    return subject


def test_jobs_of_another_queue_are_done_by_its_own_workers_and_struck_there(tmp_path: Path) -> None:
    """Its workers live beside those that are struck; where a job comes by their queue, they are struck themselves."""
    roles = 'workers={"mail": jobcheck.worker("-Q mail -c 2 -P threads", env={"WHO": "mail-"})}'
    folder = write(tmp_path / "app", roles)
    chain = explore(folder, "enqueue", "at_least_once: mark done", "at_least_once: mark posted")
    assert (chain.problem, chain.effects) == ("", {"mark done": 1, "mark posted": 1})
    assert {strike.layer for strike in chain.strikes if strike.verdict != "ok"} == {"transport"}
    alone = explore(folder, "post", "at_least_once: mark posted")
    assert alone.problem == ""
    assert alone.coverage.fired == alone.coverage.strikes == alone.coverage.points + 1
    (lost,) = alone.findings
    assert lost.layer == "transport"
    assert any(line.lane.startswith("mail-w") for line in lost.story)


@pytest.fixture(scope="module")
def relayed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SubjectReport]:
    """Each relay under kills, and what its job must stand."""
    found = {}
    for name, steps in (("right", RIGHT), ("wrong", WRONG)):
        folder = write(tmp_path_factory.mktemp(name) / "app", RELAY_ROLE, relay=steps)
        contract = "exactly_once: mark done" if name == "right" else "at_least_once: mark done"
        found[name] = explore(folder, "wish", contract, at="relay")
    return found


def test_a_relay_that_is_killed_between_push_and_delete_pushes_twice(relayed: dict[str, SubjectReport]) -> None:
    subject = relayed["right"]
    assert (subject.problem, subject.coverage.fired, subject.coverage.points) == ("", 3, 2)
    (finding,) = subject.findings
    assert (finding.layer, finding.verdict) == ("handler", "duplicated")
    assert finding.title == "mark done happens again when relay dies after broker LPUSH celery, before kv SREM wishes"
    assert "let the job bear it" in finding.advice
    assert not any("takes over" in line.text for line in finding.story)
    assert any(line.text == "relay is started again, as its supervisor does it" for line in finding.story)


def test_a_relay_that_deletes_first_loses_what_it_was_killed_with(relayed: dict[str, SubjectReport]) -> None:
    subject = relayed["wrong"]
    (finding,) = subject.findings
    assert (subject.problem, finding.verdict) == ("", "lost")
    assert finding.title == "mark done is lost when relay dies after kv SREM wishes, before broker LPUSH celery"
    assert finding.code.startswith("relay.py:")
    assert "enqueue first, and only then delete" in finding.advice


def test_a_process_that_ends_in_the_middle_is_one_clear_error(tmp_path: Path) -> None:
    folder = write(tmp_path / "app", RELAY_ROLE, relay="raise SystemExit(f'no wish for {key}')")
    ended = bad_day.jobcheck(folder, "explore", "wish", *bad_day.ONCE, "--lanes", "1")
    ended.says(2, "relay, a process of the rig, ended by itself with exit code 1", "no wish for b'key-", "relay-1.log")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ('jobcheck.process("python -c pass", ready="up")', "ended by itself with exit code 0 before it was ready"),
        ('jobcheck.process("no-such-program")', "could not start tiny-0-web-1: No such file or directory"),
        ('jobcheck.process("sleep 60", env={"AT": "{web.port}"}, within=0.2)', "was not ready within 0.2 s"),
    ],
)
def test_a_process_that_does_not_become_ready_is_one_clear_error(tmp_path: Path, command: str, said: str) -> None:
    folder = write(tmp_path / "app", f'processes={{"web": {command}}}')
    bad_day.jobcheck(folder, "explore", *bad_day.QUEUE).says(2, said)


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ('workers={"mail": "-c 2"}', "expected the queues that they serve (-Q), got '-c 2'"),
        ('workers={"w2": "-Q mail"}', "expected a name of letters and digits that says nothing else"),
        ('processes={"kv": "python relay.py"}', "the rig has an upstream of this name already"),
        ('processes={"relay": ""}', "expected a command, got nothing"),
        ('processes={"web": "serve {wep.port}"}', "no upstream 'wep'"),
    ],
)
def test_roles_that_say_nothing_are_refused(tmp_path: Path, roles: str, said: str) -> None:
    folder = write(tmp_path / "app", roles)
    bad_day.jobcheck(folder, "explore", *bad_day.QUEUE).says(3, said)


def test_a_job_that_a_relay_enqueues_is_not_followed(tmp_path: Path) -> None:
    folder = write(tmp_path / "app", RELAY_ROLE)
    ended = bad_day.jobcheck(folder, "explore", "wish", "--follow", "--expect", "at_least_once: mark done")
    ended.says(3, "wish leaves a wish, and relay enqueues the job", "explore it without --follow")


def test_only_a_process_that_the_rig_has_can_be_struck(tmp_path: Path) -> None:
    folder = write(tmp_path / "app", RELAY_ROLE)
    bad_day.jobcheck(folder, "explore", *bad_day.QUEUE, "--at", "web").says(3, "no process 'web'", "it has relay")


MAIL = """
title: Jobs are done while the workers of the mails die
rig: rig.py:tiny
workload: {enqueue: enqueue, count: 12, rate: 12/s}
workers: 1
faults:
  - {kill: mail, at: 0.2s, for: 0.3s}
expect:
  - at_least_once: mark done
"""
SCENARIO = """
title: Wishes are met while the relay dies
rig: rig.py:tiny
workload: {enqueue: wish, count: 15, rate: 20/s}
workers: 1
faults:
  - {kill: relay, at: 0.2s, for: 0.3s}
expect:
  - at_least_once: mark done
  - at_least_once: mark posted
"""
CLOCK = 'jobcheck.scheduler("--max-interval=1")'
TICKS = """
app.conf.beat_schedule = {"tick": {"task": "tiny.tick", "schedule": 0.2}}

@app.task
def tick():
    from pathlib import Path
    Path(os.environ["TICKS"]).touch()
"""


def test_a_scenario_runs_every_role_and_kills_a_relay(tmp_path: Path) -> None:
    """Workers of two queues, a relay that is down for a while, and the app's own beat."""
    roles = f'{RELAY_ROLE[:-1]}, "clock": {CLOCK}}}, workers={{"mail": "-Q mail -c 2"}}'
    folder = write(tmp_path / "app", roles)
    app = folder / "tiny.py"
    app.write_text(app.read_text() + TICKS)
    rig = folder / "rig.py"
    ticks = tmp_path / "ticks"
    rig.write_text(rig.read_text().replace("env={", f'env={{"TICKS": "{ticks}", '))
    (folder / "relay.yaml").write_text(SCENARIO)
    ended = bad_day.jobcheck(folder, "run", "relay.yaml")
    ended.says(0, "✓ outage of relay: killed for 0.3 s: once")
    assert ticks.exists()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("{wipe: mail}", "relay.yaml:7: 'mail' are workers of the app: say kill or restart"),
        ("{restart: mail, for: 1s}", "workers that are restarted end by themselves and come back at once"),
        ("{kill: post}", "unknown upstream 'post'"),
    ],
)
def test_what_is_done_to_servers_alone_is_not_done_to_workers_of_a_role(tmp_path: Path, fault: str, said: str) -> None:
    folder = write(tmp_path / "app", 'workers={"mail": "-Q mail"}')
    (folder / "relay.yaml").write_text(SCENARIO.replace("{kill: relay, at: 0.2s, for: 0.3s}", fault))
    bad_day.jobcheck(folder, "run", "relay.yaml").says(3, said)


def test_workers_of_a_role_are_killed_and_restarted(tmp_path: Path) -> None:
    """As the first ones are, for which they are not taken; a kill may lose a mail on Redis, and no other job."""
    folder = write(tmp_path / "app", 'workers={"mail": "-Q mail"}')
    app = folder / "tiny.py"
    slow = "def post(key):\n    import time\n    time.sleep(0.15)\n"  # so that the kill meets one that runs
    app.write_text(app.read_text().replace("def post(key):\n", slow))
    (folder / "mail.yaml").write_text(MAIL)
    bad_day.jobcheck(folder, "run", "mail.yaml").says(0, "✓ kill tree of mail: once")
    (folder / "mail.yaml").write_text(MAIL.replace("{kill: mail, at: 0.2s, for: 0.3s}", "{restart: mail, at: 300ms}"))
    (line,) = [line for line in dry(folder / "mail.yaml", 7) if "SIGTERM" in line]
    assert "restart mail" in line
