"""What `jobcheck init` calls: find out about an app, and write its first rig and test. Nothing is ever overwritten."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UsageError, WorkerError
from ..runner.rig import expand
from ..runner.surroundings import PRELOAD
from ..services.spec import Address
from ..workers.env import scrubbed
from .plan import Plan, plan
from .scan import Scan, scan
from .texts import CONFTEST, TEST, job_text, rig_text, row_text

SURVEY = Path(__file__).parent / "inside" / "survey.py"
WITHIN = 300.0
"""Seconds for one survey: some forty imports of the settings."""
FOLDER = "tests/jobs"
RIG, TESTS = "jobcheck_rig.py", "test_jobcheck.py"
SCHEMES = {"redis": "redis", "postgres": "postgresql", "rabbitmq": "amqp", "provider": "http", "smtp": "smtp"}
MOST_JOBS = 5
MADE_UP_HOST = "example.com"
"""Of the addresses in rows that `survey_rows` makes up."""
WORTH = (
    (re.compile(r"charg|pay|captur|refund|transfer|payout|invoice", re.I), 4),
    (re.compile(r"requests\.|httpx|\.post\(|client\.", re.I), 3),
    (re.compile(r"mail|send|notif|sms", re.I), 2),
    (re.compile(r"\.save\(|\.create\(|commit|execute\(", re.I), 1),
)
"""What makes a job worth a first look: money, calls, mails, rows."""


@dataclass(slots=True)
class Found:
    """What is known of an app."""

    scan: Scan
    plan: Plan
    root: Path
    """The folder that its processes run in."""
    setup: str = ""
    tasks: list[dict[str, Any]] = field(default_factory=list)
    """The best first."""
    rows: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)

    @property
    def jobs(self) -> list[tuple[str, dict[str, Any]]]:
        """Name of the enqueue function and task, of those that get one."""
        return [(task["function"], task) for task in self.tasks[:MOST_JOBS]]


@dataclass(frozen=True, slots=True)
class Written:
    """One file: `written`, or `kept` because it was there."""

    path: str
    state: str
    text: str = ""


def find(project: Path, python: str, app: str = "") -> Found:
    """`app` is the Celery app's `module:name`, where it is told. Raises UsageError where there is none, WorkerError
    where it cannot be imported."""
    seen = scan(project)
    if app:
        seen.celery = [(app, "--app")]
    if not seen.celery:
        raise UsageError(
            _no_celery(seen),
            hint="jobcheck init --app MODULE:NAME, as `celery -A` is told; docs/tutorial.md shows a rig by hand",
        )
    celery = seen.celery[0][0]
    root = (project / seen.manage).parent if seen.manage else project
    settings = _settings(seen)
    paths = [os.path.relpath(project / path, root) for path in seen.paths]
    ask = {
        "django": bool(settings),
        "paths": paths,
        "preload": str(PRELOAD),
        "celery": celery,
        "imports": sorted(seen.imports),
    }
    ask["broker"] = "redis" if "redis" in seen.packages | seen.imports else ""
    env = scrubbed({"DJANGO_SETTINGS_MODULE": settings} if settings else {})
    module = settings or celery.partition(":")[0]
    told = _survey(python, root, {**ask, "do": "settings", "module": module, "env": env})
    if error := told.get("error"):
        raise WorkerError(
            _cannot(module, error), hint="it was imported with no variables of your shell; " + _needs(told)
        )
    first = plan(seen, settings, celery, told, _broker_url(told))
    jobs = _survey(python, root, {**ask, "do": "jobs", "env": {**env, **_nobody(first)}})
    if error := jobs.get("error"):
        raise WorkerError(_cannot(celery, error), hint=_needs(told))
    conf = jobs["found"]["conf"]
    made = plan(seen, settings, celery, told, _broker_url(told) or conf["broker_url"])
    found = Found(seen, made, root, variables=told["variables"])
    found.tasks = sorted(jobs["found"]["tasks"], key=_rank)
    found.rows = jobs["found"]["rows"]
    made.packages = sorted({task["module"].partition(".")[0] for _, task in found.jobs if not task["own"]})
    _called(found)
    found.setup = _set_up(found)
    _doubt(found, conf)
    return found


def _survey(python: str, root: Path, task: Mapping[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="jobcheck-init-") as folder:
        asked, told = Path(folder, "asked.json"), Path(folder, "told.json")
        asked.write_text(json.dumps(task))
        try:
            done = subprocess.run(
                [python, str(SURVEY), str(asked), str(told)],
                cwd=root,
                env=scrubbed({}, home=Path(folder)),
                capture_output=True,
                text=True,
                timeout=WITHIN,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise WorkerError(f"could not look at the app with {python}: {error}") from None
        if not told.is_file():
            raise WorkerError(f"could not look at the app with {python}: {done.stderr.strip()[-600:]}")
        return dict(json.loads(told.read_text()))


def _no_celery(seen: Scan) -> str:
    if seen.other_systems:
        others = ", ".join(seen.other_systems)
        return f"no Celery app in {seen.root}; the project uses {others}, which jobcheck does not know yet"
    return f"no Celery app in {seen.root}: no module there says NAME = Celery(...)"


def _settings(seen: Scan) -> str:
    """The settings that production has: those that the Celery app or the web server names, and never the tests'."""
    candidates = {name: files for name, files in seen.settings.items() if name != seen.test_settings}
    for word in ("celery", "wsgi", "asgi", "manage"):
        for name, files in candidates.items():
            if any(word in Path(file).stem for file in files):
                return name
    return next(iter(candidates), "")


def _broker_url(told: Mapping[str, Any]) -> str:
    for values in told.get("values", {}).values():
        for path, value in values.items():
            if path.lower().endswith("broker_url") and isinstance(value, str) and "://" in value:
                return value
    return ""


def _nobody(made: Plan) -> dict[str, str]:
    """The rig's variables with addresses at which nobody listens."""
    nobody = {
        name: Address(SCHEMES.get(kind, "http"), "127.0.0.1", 9, path="0") for name, kind in made.upstreams.items()
    }
    return {name: expand(text, nobody, folder="") for name, text in made.env.items()}


def _cannot(what: str, error: Mapping[str, str]) -> str:
    where = f" ({error['where']})" if error["where"] else ""
    return f"{what} cannot be imported: {error['kind']}: {error['text']}{where}"


def _needs(told: Mapping[str, Any]) -> str:
    needed = told.get("needed", {})
    return (
        f"variables that it demanded got made-up values: {', '.join(needed)}" if needed else "is everything installed?"
    )


def _rank(task: Mapping[str, Any]) -> tuple[bool, int, str]:
    """The best first; one that its own module keeps to itself comes last."""
    return str(task["function"]).startswith("_"), -_worth(task), str(task["name"])


def _worth(task: Mapping[str, Any]) -> int:
    text = f"{task['function']}\n{task['source']}"
    return sum(points for pattern, points in WORTH if pattern.search(text))


def _set_up(found: Found) -> str:
    if "postgres" not in found.plan.upstreams.values():
        return ""
    if found.scan.manage:
        return "python manage.py migrate --noinput"
    if (found.root / "alembic.ini").is_file():
        return "alembic upgrade head"
    for file in ("schema.sql", "db/schema.sql", "sql/schema.sql"):
        if (found.root / file).is_file():
            return file
    return ""


def _doubt(found: Found, conf: Mapping[str, Any]) -> None:
    doubts = found.plan.doubts
    if len(found.scan.celery) > 1:
        others = ", ".join(f"{name} ({where})" for name, where in found.scan.celery[1:])
        doubts.append(f"more Celery apps than one; {found.plan.celery} is taken, not {others}")
    if "postgres" in found.plan.upstreams.values() and not found.setup:
        doubts.append("how the tables are made: give db its setup=, a .sql file or a command")
    if conf["eager"]:
        doubts.append("the app runs its jobs eagerly (task_always_eager) with these settings, so none reaches a queue")
    if found.scan.loads_dotenv:
        doubts.append(f"{found.scan.loads_dotenv} reads .env: what the rig's env does not name comes from there")
    if not found.tasks:
        doubts.append("no task of the app's own is registered: are their modules imported or autodiscovered?")
    if found.tasks and (unknown := [one for one in found.tasks[0]["needs"] if one not in found.rows]):
        doubts.append(f"what {found.tasks[0]['name']} needs as {', '.join(unknown)}: complete its function in the rig")


def _called(found: Found) -> None:
    """The hosts of the addresses that made-up rows hold: a job that has such a row calls it."""
    for _, task in found.jobs:
        for recipe in filter(None, map(found.rows.get, task["needs"])):
            for step in recipe["steps"]:
                if step["urls"]:
                    name = found.plan.add(step["name"], "provider", f"the address in {step['name']}_row")
                    found.plan.hosts[name] = MADE_UP_HOST


def texts(found: Found, project: Path) -> dict[str, str]:
    """The files to write, by their path in the project."""
    root = os.path.relpath(found.root, project / FOLDER)
    jobs: list[str] = []
    rows: dict[str, list[str]] = {}
    for name, task in found.jobs:
        for parameter in task["needs"]:
            if (recipe := found.rows.get(parameter)) is not None:
                rows[recipe["model"]] = row_text(recipe)
        jobs += job_text(task, name, found.rows)
    made = [line for lines in rows.values() for line in lines]
    files = {
        f"{FOLDER}/conftest.py": CONFTEST,
        f"{FOLDER}/{RIG}": rig_text(found.plan, root, found.setup, [*made, *jobs]),
    }
    if found.tasks:
        files[f"{FOLDER}/{TESTS}"] = TEST.format(job=found.jobs[0][0])
    return files


def write(found: Found, project: Path) -> list[Written]:
    """Writes what is not there yet."""
    out = []
    for name, text in texts(found, project).items():
        path = project / name
        if path.exists():
            out.append(Written(name, "kept"))
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        out.append(Written(name, "written", text))
    return [*out, _configure(project)]


def _configure(project: Path) -> Written:
    """Names the rig in pyproject.toml: a new file, or a table at the end of the one that is there."""
    path = project / "pyproject.toml"
    table = f'[tool.jobcheck]\nrig = "{FOLDER}/{RIG}:rig"\n'
    if not path.exists():
        path.write_text(table, "utf-8")
        return Written("pyproject.toml", "written", table)
    text = path.read_text("utf-8")
    if re.search(r"^\[tool\.jobcheck[\].]", text, re.M) or re.search(r"^\[tool\]", text, re.M):
        return Written("pyproject.toml", "kept", table)
    with path.open("a", encoding="utf-8") as file:
        file.write(("" if text.endswith("\n") or not text else "\n") + "\n" + table)
    return Written("pyproject.toml", "added to", table)
