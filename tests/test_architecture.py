"""The house rules that a script can see (DESIGN section 4): who may import whom, and what only one module may do.

Direct imports are read from the source by `ast`, those inside functions and under TYPE_CHECKING too. Where the table
of the design leaves room, the strictest reading that works is taken:

* Parts of the pure band and of the runner band see only those that stand before them here.
* A *spec module* holds what a user says, as data. It may be imported from band 2 upwards, and in return it must be as
  pure as band 1.
* `*/inside/`, `inside_*.py` and `recover.py` run by path in the app's own environment: they may import the job
  libraries and no jobcheck at all.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

GROUND = ["errors", "clock", "seeds", "events", "aio", "marks", "config"]
PURE = ["wire", "history", "faults", "checks", "explore", "scenario"]
DRIVERS = ["store", "tap", "network", "workers", "effects", "services"]
ADAPTERS = ["systems", "load"]
RUNNER = ["runner", "onboarding", "payloads", "selftest"]
FACES = ["api", "cli", "plugin", "pytest_plugin", "strategies", "__main__"]

SPECS = ["workers.spec", "services.spec", "effects.spec"]
"""Spec modules of band 2."""

FOR_FACES = [
    *("history", "checks", "scenario", "report", "store", "systems.registry"),
    *("runner.facade", "runner.rig", "runner.demo", "runner.asked", "runner.expectations", "runner.judging"),
    *(
        "runner.overlay",
        "runner.roles",
        "runner.probing",
        "runner.replaying",
        "runner.scenarios.campaign",
        "runner.scenarios.live",
        "payloads.facade",
        "selftest",
        "onboarding.facade",
    ),
    *("runner.presets", "runner.toxiproxy", "services.doctor", "services.find", "services.wheels"),
]
"""What people say (contracts, scenarios, the rig), what came out (history, report, store), the doors of the runner, one
module per command, and what is on this machine. No face sees a lane, a tap or a decoder."""


def _before(parts: list[str], part: str) -> list[str]:
    return parts[: parts.index(part)]


GROUND_FOR_PURE = [part for part in GROUND if part not in ("aio", "marks", "config")]
MAY_IMPORT: dict[str, list[str]] = {
    **{part: [other for other in GROUND if other != part] for part in GROUND},
    **{part: GROUND_FOR_PURE + _before(PURE, part) for part in PURE},
    **dict.fromkeys(DRIVERS, GROUND + PURE + SPECS),
    **{part: GROUND + PURE + SPECS + ["services.clients"] for part in ADAPTERS},
    **{part: GROUND + PURE + DRIVERS + ADAPTERS + _before(RUNNER, part) for part in RUNNER},
    "report": [*GROUND, *PURE, "store"],
    **{part: [*GROUND, *SPECS, *_before(FACES, part), *FOR_FACES] for part in FACES},
    "": ["marks", "api"],
}
MAY_IMPORT["tap"] = [*MAY_IMPORT["tap"], "network.toxics"]
MAY_IMPORT["services"] = [*MAY_IMPORT["services"], "workers"]
MAY_IMPORT["marks"] = []

JOB_LIBRARIES = {
    *("celery", "kombu", "billiard", "amqp", "rq", "dramatiq", "huey", "arq", "procrastinate", "taskiq"),
    *("temporalio", "pgqueuer", "apscheduler", "django_q", "locust", "gevent"),
}
IMPURE = {
    *("asyncio", "socket", "ssl", "select", "selectors", "socketserver", "http", "smtplib", "urllib.request"),
    *("subprocess", "multiprocessing", "threading", "concurrent", "signal", "pty", "fcntl", "mmap", "sqlite3"),
    *("os", "io", "shutil", "tempfile", "glob", "fileinput", "pathlib", "time", "random", "secrets"),
    *("psutil", "redis", "psycopg"),
}
"""What the pure band may not import; the standard library's other modules and parsing libraries it may."""
FOR_SPECS = {"pathlib", "signal"}
"""What spec modules may import nevertheless: they name folders and signals, and touch none."""

MAX_FILE_LINES = 400
MAX_TEST_LINES = 600
MAX_FUNCTION_LINES = 60
TOO_LONG: dict[str, str] = {
    "jobcheck/wire/resp_commands.py:_table": "a table: what each Redis command does, a row for each kind",
}
"""`path` or `path:function` -> why it may be longer."""


@dataclass(frozen=True)
class Module:
    """One file of the package: `tap.link` of `jobcheck/tap/link.py`, `tap` of its `__init__`, empty for the root."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def part(self) -> str:
        return self.name.partition(".")[0]

    @property
    def in_the_app(self) -> bool:
        """Runs in the app's environment, by path."""
        return "inside" in self.path.parts or self.path.name.startswith("inside_") or self.path.name == "recover.py"


def modules(root: Path) -> list[Module]:
    """All modules of the package in `root/jobcheck`."""
    found = []
    for path in sorted((root / "jobcheck").rglob("*.py")):
        names = path.relative_to(root / "jobcheck").with_suffix("").parts
        if "_scenarios" in names:
            continue
        name = ".".join(names[:-1] if names[-1] == "__init__" else names)
        found.append(Module(name, path.relative_to(root), ast.parse(path.read_text(), str(path))))
    return found


def imports(module: Module, known: set[str]) -> Iterator[tuple[int, str]]:
    """Line and full name of each module that is imported; `jobcheck.` leads our own."""
    package = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - (node.level - 1)] if package else []
                base = ".".join(["jobcheck", *above, *([base] if base else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                is_module = whole.removeprefix("jobcheck.") in known and whole.startswith("jobcheck.")
                yield node.lineno, whole if is_module or base == "urllib" else base


def within(name: str, allowed: list[str]) -> bool:
    """Whether `name` is one of the allowed modules or lies in one of them."""
    return any(name == one or name.startswith(f"{one}.") for one in allowed)


def import_faults(root: Path) -> list[str]:
    """One line for each import that the bands do not allow."""
    all_modules = modules(root)
    known = {module.name for module in all_modules}
    faults = []
    for module in all_modules:
        if module.part not in MAY_IMPORT:
            faults.append(f"{module.path}: {module.part!r} has no band; give it one in {Path(__file__).name}")
            continue
        for line, name in dict.fromkeys(imports(module, known)):
            if fault := import_fault(module, name):
                faults.append(f"{module.path}:{line} imports {name}: {fault}")
    return faults


def import_fault(module: Module, name: str) -> str:
    """Why `module` may not import `name`; empty when it may."""
    top = name.partition(".")[0]
    if top == "jobcheck":
        return own_fault(module, name.partition(".")[2])
    if top in JOB_LIBRARIES and not module.in_the_app:
        return "job libraries are imported in child processes only (*/inside/, inside_*.py, recover.py)"
    if module.in_the_app:
        return ""
    if top == "time" and module.name != "clock":
        return "only clock.py imports time; take the clock as an argument"
    if top in ("random", "secrets") and module.name != "seeds":
        return "only seeds.py imports random and secrets; take a stream of Seeds"
    impure = IMPURE - FOR_SPECS if module.name in SPECS else IMPURE
    if (module.part in PURE or module.name in SPECS) and within(name, sorted(impure)):
        return "this module is pure: no sockets, processes, threads, time, chance or files of our own code"
    if module.part in GROUND and top not in sys.stdlib_module_names:
        return "the ground band is standard library only"
    return ""


def own_fault(module: Module, name: str) -> str:
    """Why a module of ours may not import our module `name`; empty when it may."""
    if module.in_the_app:
        return "this file runs by path in the app's environment, where jobcheck may be missing"
    part = name.partition(".")[0]
    if name in ("", "__version__") and module.part in ["", *FACES, "report", "runner"]:
        return ""
    if part == module.part and part and module.name not in SPECS:
        return ""
    allowed = GROUND_FOR_PURE + PURE if module.name in SPECS else MAY_IMPORT[module.part]
    return "" if within(name, allowed) else f"{module.part or 'jobcheck/__init__'} may import {', '.join(allowed)}"


def call_faults(root: Path) -> list[str]:
    """One line for each use of tasks, wall clocks, chance and files outside the modules that own them."""
    faults = []
    for module in modules(root):
        if module.in_the_app:
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and (fault := call_fault(module, ast.unparse(node.func))):
                faults.append(f"{module.path}:{node.lineno} calls {ast.unparse(node.func)}: {fault}")
    return faults


def call_fault(module: Module, call: str) -> str:
    """Why `module` may not call what is written as `call`; empty when it may."""
    last = call.rpartition(".")[2]
    if last in ("create_task", "ensure_future", "run_coroutine_threadsafe") and module.name != "aio":
        return "tasks are started by aio.Tasks only, so that none is lost and none fails unseen"
    if call.endswith("asyncio.wait_for"):
        return "aio.bounded waits: wait_for of Python 3.11 loses a cancel that comes in the same moment"
    if call.endswith(("datetime.now", "datetime.utcnow", "datetime.today", "date.today")) and module.name != "clock":
        return "only clock.py reads the clock"
    if last in ("uuid1", "uuid4", "urandom") and module.name != "seeds":
        return "only seeds.py draws by chance"
    if call == "open" and module.part in PURE:
        return "this module is pure: it reads no files"
    return ""


def length_faults(root: Path, paths: list[Path]) -> list[str]:
    """One line for each file and each function that is too long."""
    faults = []
    for path in paths:
        name, text = str(path.relative_to(root)), path.read_text()
        most = MAX_TEST_LINES if name.startswith("tests/") else MAX_FILE_LINES
        if (lines := text.count("\n")) > most and name not in TOO_LONG:
            faults.append(f"{name} has {lines} lines, at most {most}: split it by what it does")
        for node in ast.walk(ast.parse(text, name)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or f"{name}:{node.name}" in TOO_LONG:
                continue
            if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES:
                faults.append(f"{name}:{node.lineno} {node.name} has {lines} lines, at most {MAX_FUNCTION_LINES}")
    return faults


def show(faults: list[str]) -> str:
    return "\n".join(["", *faults])


def test_every_part_imports_only_what_its_band_allows() -> None:
    """The table of DESIGN section 4, with job libraries, time and random."""
    faults = import_faults(ROOT)
    assert not faults, show(faults)


def test_only_their_owners_start_tasks_read_clocks_and_draw_lots() -> None:
    """`aio` starts tasks, `clock` reads clocks, `seeds` draws."""
    faults = call_faults(ROOT)
    assert not faults, show(faults)


def test_files_and_functions_stay_short() -> None:
    """400 lines a file, 60 a function; what may be longer is in TOO_LONG with its reason."""
    folders = [ROOT / "jobcheck", ROOT / "scenarios", ROOT / "tests"]
    paths = [ROOT / "conftest.py", *(path for folder in folders for path in sorted(folder.rglob("*.py")))]
    faults = length_faults(ROOT, paths)
    assert not faults, show(faults)
    stale = [name for name in TOO_LONG if not (ROOT / name.partition(":")[0]).exists()]
    assert not stale, f"no longer there: {stale}"


def test_loading_the_pytest_plugin_loads_no_engine() -> None:
    """A suite that uses no fixture of jobcheck's pays for the hooks and nothing else."""
    code = "import sys, jobcheck.pytest_plugin, jobcheck.plugin.settings; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr
    names = loaded.stdout.split()
    own = {name.split(".")[1] for name in names if name.startswith("jobcheck.")}
    assert own <= {"pytest_plugin", "plugin", *GROUND} - {"aio"}
    heavy = {
        "asyncio",
        "psutil",
        "yaml",
        "rich",
        "click",
        "redis",
        "psycopg",
        "celery",
        "pydantic",
        "jinja2",
        "tomllib",
    }
    assert not heavy & set(names)


PLANTED = {
    "wire/bad.py": ("import socket", "pure"),
    "wire/up.py": ("from ..history import records", "wire may import"),
    "checks/late.py": ("def f():\n    from ..aio import Tasks", "checks may import"),
    "explore/files.py": ("from pathlib import Path", "pure"),
    "tap/cross.py": ("from ..workers import spec, supervisor", "tap may import"),
    "tap/time.py": ("import time", "only clock.py"),
    "effects/chance.py": ("from random import random", "only seeds.py"),
    "systems/celery/adapter.py": ("from celery import Celery", "child processes only"),
    "systems/x.py": ("from ..services.found import find", "systems may import"),
    "services/spec.py": ("import subprocess", "pure"),
    "report/html.py": ("from ..runner import facade", "report may import"),
    "cli/demo.py": ("from jobcheck.tap import link", "cli may import"),
    "cli/deep.py": ("from ..runner import trial", "cli may import"),
    "runner/up.py": ("from ..cli import main", "runner may import"),
    "workers/inside/agent.py": ("import jobcheck", "in the app's environment"),
    "clock.py": ("import psutil", "standard library only"),
    "marks.py": ("from .aio import Tasks", "marks may import"),
    "surprise/__init__.py": ("", "has no band"),
}


@pytest.mark.parametrize("path", PLANTED)
def test_a_planted_import_is_found(tmp_path: Path, path: str) -> None:
    """Every kind of forbidden import gives one line with file, line number and reason."""
    source, reason = PLANTED[path]
    plant(tmp_path, path, source)
    for other in ("runner/trial.py", "runner/facade.py", "tap/link.py", "workers/spec.py", "workers/supervisor.py"):
        plant(tmp_path, other, "")
    faults = import_faults(tmp_path)
    assert len(faults) == 1, show(faults)
    assert faults[0].startswith(f"jobcheck/{path}:")
    assert reason in faults[0]


@pytest.mark.parametrize(
    "source",
    [
        "asyncio.create_task(f())",
        "loop.create_task(f())",
        "datetime.now()",
        "asyncio.wait_for(f(), 1)",
        "_dt.date.today()",
        "uuid.uuid4()",
    ],
)
def test_a_planted_call_is_found(tmp_path: Path, source: str) -> None:
    """However the owner of the call is named."""
    plant(tmp_path, "tap/link.py", source)
    assert len(call_faults(tmp_path)) == 1


def test_allowed_imports_pass(tmp_path: Path) -> None:
    """The exceptions of the table: toxics for the tap, workers for services, libraries inside the app."""
    plant(tmp_path, "network/toxics.py", "")
    plant(tmp_path, "tap/link.py", "from ..network.toxics import Latency\nfrom ..services.spec import Redis")
    plant(tmp_path, "services/private.py", "from ..workers.supervisor import Supervisor")
    plant(tmp_path, "systems/celery/recover.py", "from kombu import Connection")
    plant(tmp_path, "workers/inside/agent.py", "import socket, time, celery")
    plant(tmp_path, "cli/demo.py", "from ..runner.facade import explore\nfrom .. import __version__")
    assert import_faults(tmp_path) == []


def test_a_planted_long_file_and_function_are_found(tmp_path: Path) -> None:
    """Both limits, one line over."""
    body = "def f():\n" + "    pass\n" * MAX_FUNCTION_LINES + "x = 1\n" * (MAX_FILE_LINES - MAX_FUNCTION_LINES)
    path = plant(tmp_path, "tap/long.py", body)
    assert len(length_faults(tmp_path, [path])) == 2


def plant(root: Path, path: str, source: str) -> Path:
    file = root / "jobcheck" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    return file
