"""What an app's files say without running any: its frameworks, its Celery apps, the variables that it reads."""

from __future__ import annotations

import ast
import configparser
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED = {
    *("node_modules", "site-packages", "dist-packages", "build", "dist", "__pycache__", "migrations", "venv", "env"),
    *("static", "media", "docs"),
}
MOST_FILES = 5000
OTHER_SYSTEMS = ("rq", "django-rq", "dramatiq", "huey", "arq", "procrastinate", "taskiq", "django-q2", "apscheduler")
"""Job systems that an app may use instead, by the name of their package."""
READERS = {"getenv", "env", "config"}
"""Functions whose first argument names a variable: of the os module, environ, decouple, environs and the like."""
FROM_A_FACTORY = re.compile(r"celery", re.I)
"""What the text of an expression says that gives a Celery app without naming the class: `make_celery(app)`."""
URLISH = re.compile(r"^[a-z][a-z0-9+.-]*://", re.I)


@dataclass(slots=True)
class Variable:
    """A variable that the code names literally."""

    name: str
    where: str
    default: str | None = None
    """The literal default beside it; None where there is none."""


@dataclass(slots=True)
class Scan:
    """What the files of one project say. Paths are relative to its root."""

    root: Path
    paths: list[str] = field(default_factory=lambda: ["."])
    """Folders that modules are imported from."""
    manage: str = ""
    """`manage.py`, where there is one."""
    settings: dict[str, list[str]] = field(default_factory=dict)
    """Django settings modules that some file names, and the files."""
    test_settings: str = ""
    celery: list[tuple[str, str]] = field(default_factory=list)
    """`module:name` and `file:line` of each Celery app; of each name that may be one, where none is made openly."""
    variables: dict[str, Variable] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)
    """Names of the packages that the project depends on."""
    imports: set[str] = field(default_factory=set)
    """First parts of the modules that it imports."""
    aws: dict[str, str] = field(default_factory=dict)
    """Names of AWS services that clients are made for, and the lines."""
    loads_dotenv: str = ""
    """The line that reads a .env file, where there is one and the file exists."""

    @property
    def other_systems(self) -> list[str]:
        return [name for name in OTHER_SYSTEMS if name in self.packages]


def scan(root: Path) -> Scan:
    """Reads the project's files; what is no Python that we can read is left out."""
    found = Scan(root)
    if (root / "src").is_dir():
        found.paths.append("src")
    found.packages = _dependencies(root)
    found.test_settings = _test_settings(root)
    guesses: list[tuple[str, str]] = []
    for path in _files(root):
        try:
            tree = ast.parse(path.read_bytes(), str(path))
        except (OSError, SyntaxError, ValueError):
            continue
        relative = str(path.relative_to(root))
        if path.name == "manage.py":
            found.manage = found.manage or relative
            if path.parent != root:
                found.paths.append(str(path.parent.relative_to(root)))
        _read(found, tree, relative, guesses)
    found.celery = [(_module(found, where), line) for where, line in found.celery or _likely(guesses)]
    if not (root / ".env").is_file():
        found.loads_dotenv = ""
    return found


def _files(root: Path) -> Iterator[Path]:
    count = 0
    for folder, folders, names in os.walk(root):
        inside = Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if name not in SKIPPED and not name.startswith(".") and not (inside / name / "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            if name.endswith(".py"):
                count += 1
                if count > MOST_FILES:
                    return
                yield inside / name


def _likely(guesses: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The likeliest first: of a file that workers are started with, by a name that says so."""
    words = ("worker", "celery", "tasks")
    return sorted(guesses, key=lambda one: [word not in one[0].lower() for word in words])


def _read(found: Scan, tree: ast.Module, file: str, guesses: list[tuple[str, str]]) -> None:
    in_tests = any(part in ("tests", "test", "conftest.py") or part.startswith("test_") for part in Path(file).parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.imports.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.imports.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Call):
            _call(found, node, file, in_tests)
        elif isinstance(node, ast.Subscript) and _is_environ(node.value) and not in_tests:
            _variable(found, node.slice, f"{file}:{node.lineno}", None)
            if isinstance(node.ctx, ast.Store):
                _forced_settings(found, tree, node, file)
    if not in_tests:
        for statement in tree.body:
            if not isinstance(statement, ast.Assign):
                continue
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
            apps = [(f"{file}:{name}", f"{file}:{statement.lineno}") for name in names]
            if _makes_celery(statement.value):
                found.celery += apps
            elif _gives_celery(statement):
                guesses += apps


def _forced_settings(found: Scan, tree: ast.Module, node: ast.Subscript, file: str) -> None:
    """`os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"`."""
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign) and node in statement.targets:
            _settings(found, [node.slice, statement.value], file)


def _call(found: Scan, node: ast.Call, file: str, in_tests: bool) -> None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "setdefault" and isinstance(node.func, ast.Attribute) and _is_environ(node.func.value):
        _settings(found, node.args, file)
    if name in ("read_env", "load_dotenv"):
        found.loads_dotenv = found.loads_dotenv or f"{file}:{node.lineno}"
    if in_tests or not node.args:
        return
    if name in ("client", "resource") and isinstance(node.args[0], ast.Constant) and "boto3" in found.imports:
        found.aws.setdefault(str(node.args[0].value), f"{file}:{node.lineno}")
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    typed = isinstance(owner, ast.Name) and owner.id in READERS  # env.int("PORT", default=1)
    if name in READERS or typed or (name == "get" and owner is not None and _is_environ(owner)):
        default = node.args[1] if len(node.args) > 1 else None
        default = next((word.value for word in node.keywords if word.arg == "default"), default)
        _variable(found, node.args[0], f"{file}:{node.lineno}", default)


def _settings(found: Scan, arguments: list[ast.expr], file: str) -> None:
    texts = [node.value for node in arguments if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if len(texts) == 2 and texts[0] == "DJANGO_SETTINGS_MODULE":
        found.settings.setdefault(texts[1], []).append(file)


def _variable(found: Scan, name: ast.expr, where: str, default: ast.expr | None) -> None:
    if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.isidentifier():
        literal = str(default.value) if isinstance(default, ast.Constant) else "" if default is not None else None
        found.variables.setdefault(name.value, Variable(name.value, where, literal))


def _is_environ(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )


def _makes_celery(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) == "Celery"


def _gives_celery(statement: ast.Assign) -> bool:
    """`celery = make_celery(app)`, `celery_app = create_app().extensions["celery"]` and the like; no setting."""
    constant = isinstance(statement.value, ast.Constant | ast.Dict | ast.List | ast.Tuple | ast.Set | ast.JoinedStr)
    upper = any(isinstance(target, ast.Name) and target.id.isupper() for target in statement.targets)
    return not constant and not upper and bool(FROM_A_FACTORY.search(ast.unparse(statement.value)))


def _module(found: Scan, where: str) -> str:
    """`config.celery:app` of `config/celery.py:app`, from the nearest folder that modules are imported from."""
    file, _, name = where.rpartition(":")
    for folder in sorted(found.paths, key=len, reverse=True):
        if folder != "." and file.startswith(f"{folder}/"):
            file = file.removeprefix(f"{folder}/")
            break
    dotted = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return f"{dotted}:{name}"


def _dependencies(root: Path) -> set[str]:
    lines: list[str] = []
    try:
        table = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    except (OSError, ValueError):
        table = {}
    project = table.get("project", {})
    extras = project.get("optional-dependencies", {}).values()
    lines += [*project.get("dependencies", []), *(line for extra in extras for line in extra)]
    lines += [line for group in table.get("dependency-groups", {}).values() for line in group if isinstance(line, str)]
    lines += table.get("tool", {}).get("poetry", {}).get("dependencies", {})
    for file in [*root.glob("requirements*.txt"), *root.glob("requirements/*.txt"), *root.glob("requirements/*.in")]:
        lines += file.read_text("utf-8", "replace").splitlines()
    names = (re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", line) for line in lines)
    found = {re.sub(r"[-_.]+", "-", name[1]).lower() for name in names if name}
    return found | {"redis"} if any(re.match(r"\s*celery\[[^]]*redis", line) for line in lines) else found


def _test_settings(root: Path) -> str:
    try:
        table = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
        options = table.get("tool", {}).get("pytest", {})
        if found := {**options, **options.get("ini_options", {})}.get("DJANGO_SETTINGS_MODULE"):
            return str(found)
    except (OSError, ValueError):
        pass
    for name, section in (("pytest.ini", "pytest"), ("setup.cfg", "tool:pytest"), ("tox.ini", "pytest")):
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read(root / name, "utf-8")
        except configparser.Error:
            continue
        if found := parser.get(section, "DJANGO_SETTINGS_MODULE", fallback=""):
            return found
    return ""
