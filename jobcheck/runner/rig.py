"""The rig: the app under test, as its user describes it. Data only; nothing here starts anything."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import UsageError
from ..services.spec import Address, UpstreamSpec
from ..systems.contract import System
from .overlay import Overlay
from .roles import Process, Workers, read_roles

ANY_ORDER = "any"
Function = str | Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that count as effects: what `query` gives on this upstream's database, one effect a row."""

    upstream: str
    query: str


@dataclass(frozen=True, slots=True)
class Files:
    """Files that count as effects: what appears or changes below this folder."""

    folder: str


@dataclass(slots=True)
class Rig:
    """The app under test: its job system, its upstreams, and the variables that carry their addresses.

    `env` values are templates: `{broker.url}`, `{db.host}`, `{payments.base}` ... are the addresses of the taps;
    `{folder}` is an empty folder of the run. `effects` names rows and files that count as effects. `root` is the folder
    that processes run in; by default the nearest folder around the rig file that holds the app's package.
    """

    system: System
    upstreams: Mapping[str, UpstreamSpec]
    env: Mapping[str, str] = field(default_factory=dict)
    effects: Mapping[str, Rows | Files] = field(default_factory=dict)
    root: str = ""
    settle: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    """Shapes that are no points, with `*`: `redis SET cache:*`, `db SELECT nextval*`. For caches and the like."""
    order: str = ""
    """`any`: the same messages may come in any order (fan-outs); both sides of each point are struck."""
    file: str = ""
    """The rig's own file; set when it is loaded."""
    name: str = ""
    settings: Overlay | Sequence[Overlay] = ()
    """Settings modules with values over them: `jobcheck.django(...)`, `jobcheck.overlay(...)`."""
    preload: str | Sequence[str] = ()
    """Files that run before the app is imported, in every process of it: `.py`, `.js`, `.rb`. They count from the
    rig's file."""
    workers: Mapping[str, str | Sequence[str] | Workers] = field(default_factory=dict)
    """Workers beside the first, which serve other queues: `{"mail": "-Q mail -c 2"}`."""
    processes: Mapping[str, str | Sequence[str] | Process] = field(default_factory=dict)
    """Other long-running processes of the app: `{"relay": "python -m shop.relay", "web": jobcheck.process(...)}`."""

    packages: Sequence[str] = ()
    """Installed packages that the jobs are in, for an app that came from an index: their lines are shown as yours."""

    def __post_init__(self) -> None:
        if isinstance(self.packages, str):
            self.packages = (self.packages,)
        if self.system.broker not in self.upstreams:
            raise UsageError(
                f"the rig has no upstream {self.system.broker!r}, which {self.system.name} needs as its broker; "
                f"it has {', '.join(self.upstreams) or 'none'}",
                hint='upstreams={"broker": jobcheck.redis(), ...}',
            )
        if self.order not in ("", ANY_ORDER):
            raise UsageError(f"expected order={ANY_ORDER!r} or none, got {self.order!r}")
        self.workers = read_roles(self.workers, Workers, self.upstreams)
        self.processes = read_roles(self.processes, Process, self.upstreams)
        if both := sorted(set(self.workers) & set(self.processes)):
            raise UsageError(f"workers and processes of the rig share a name: {', '.join(both)}")
        self.system = self.system.on(self.upstreams[self.system.broker].kind)
        self.system = self.system.beside({name: one.words for name, one in self.crews.items()})
        known = {name: Address("x", "h", 1) for name in (*self.upstreams, *self.processes)}
        self.preload = (self.preload,) if isinstance(self.preload, str) else tuple(self.preload)
        templates = [(f"env[{variable!r}]", text) for variable, text in self.env.items()]
        for one in self.overlays:
            templates += [(f"{path} over {one.module}", text) for path, text in one.texts()]
        for name, spec in self.upstreams.items():
            templates += [(f"webhook of {name}", hook.to) for hook in getattr(spec, "webhooks", ())]
        roles: dict[str, Workers | Process] = {**self.crews, **self.others}
        for name, role in roles.items():
            templates += [(f"role {name}", text) for text in (*role.words, *role.env.values())]
        for where, template in templates:
            try:
                expand(template, known, folder="")
            except UsageError as error:
                raise UsageError(f"{where} of the rig: {error.message}", hint=error.hint) from None

    @property
    def overlays(self) -> tuple[Overlay, ...]:
        """The settings modules with values over them."""
        return (self.settings,) if isinstance(self.settings, Overlay) else tuple(self.settings)

    @property
    def crews(self) -> dict[str, Workers]:
        """The workers beside the first ones, by role."""
        return {name: role for name, role in self.workers.items() if isinstance(role, Workers)}

    @property
    def others(self) -> dict[str, Process]:
        """The other processes of the app, by role."""
        return {name: role for name, role in self.processes.items() if isinstance(role, Process)}

    def listens(self, process: str) -> bool:
        """Whether anything in the rig names the address of this process."""
        role = self.others[process]
        hooks = [hook.to for spec in self.upstreams.values() for hook in getattr(spec, "webhooks", ())]
        texts = [*self.templates(), *role.words, *role.env.values(), *hooks]
        return any(found.partition(".")[0] == process for text in texts for found in _FIELD.findall(text))

    def beside(self, file: str) -> Path:
        """A file that the rig names, which counts from the rig's own."""
        return ((Path(self.file).parent if self.file else Path.cwd()) / file).resolve()

    def templates(self) -> list[str]:
        """Every text in which an upstream's address may stand."""
        return [*self.env.values(), *(text for one in self.overlays for _, text in one.texts())]

    def picks_its_number(self, upstream: str) -> bool:
        """Whether the app is told the host of this upstream and chooses the database number by itself."""
        named = [found for text in self.templates() for found in _FIELD.findall(text)]
        mine = {found.partition(".")[2] for found in named if found.partition(".")[0] == upstream}
        return bool(mine & {"host", "port"}) and not mine & {"url", "name"}

    @property
    def folder(self) -> Path:
        """The folder that the app's processes run in."""
        here = Path(self.file).parent if self.file else Path.cwd()
        if self.root:
            return (here / self.root).resolve()
        package = getattr(self.system, "app", "").split(":")[0].split(".")[0]
        for candidate in (here, *here.parents):
            if package and ((candidate / package).is_dir() or (candidate / f"{package}.py").is_file()):
                return candidate.resolve()
        return here.resolve()

    def ignores(self, upstream: str, shape: str) -> bool:
        """Whether the user wants no point of this shape."""
        bare = f"{upstream} {shape.split(' ', 1)[-1]}"
        return any(fnmatchcase(shape, pattern) or fnmatchcase(bare, pattern) for pattern in self.ignore)

    def reference(self, function: Function) -> str:
        """`module:qualname` or `/path/file.py:qualname` of a function that is run in a child, never here."""
        if callable(function):
            return _reference_of(function)
        where, _, qualname = function.rpartition(":")
        if not qualname:
            raise UsageError(f"expected module:function, got {function!r}")
        if not where:
            if not self.file:
                raise UsageError(f"{function!r} names no module, and the rig was not loaded from a file")
            where = self.file
        elif where.endswith(".py"):
            where = str(Path(where).resolve())
        return f"{where}:{qualname}"


def _reference_of(function: Callable[..., Any]) -> str:
    qualname = getattr(function, "__qualname__", "")
    if "<lambda>" in qualname or "<locals>" in qualname or not qualname:
        raise UsageError(
            f"{qualname or function!r} is a lambda or a closure; "
            "it runs in a child process and must be found there by name",
            hint='define it at the top of a module and pass it, or "module:function"',
        )
    module = sys.modules.get(function.__module__)
    path = getattr(module, "__file__", None)
    if path:
        return f"{Path(path).resolve()}:{qualname}"
    return f"{function.__module__}:{qualname}"


_FIELD = re.compile(r"\{([^{}]*)\}")
_PROPERTIES = ("url", "host", "port", "user", "password", "name", "base")
"""`name` is the database, its number, or the virtual host; `{db.db}` says the same."""


def expand(template: str, addresses: Mapping[str, Address], *, folder: str) -> str:
    """Fills `{upstream.property}` and `{folder}`. Raises UsageError for a name that is not there."""

    def fill(found: re.Match[str]) -> str:
        text = found[1]
        if text == "folder":
            return folder
        upstream, _, what = text.partition(".")
        if upstream not in addresses:
            raise UsageError(f"no upstream {upstream!r} for {{{text}}}; the rig has {', '.join(addresses)}")
        what = "name" if what == "db" else what
        if what not in _PROPERTIES:
            raise UsageError(f"no property {what!r} in {{{text}}}; there are {', '.join(_PROPERTIES)}")
        return str(getattr(addresses[upstream], what))

    return _FIELD.sub(fill, template)


def load_rig(reference: str, base: Path | None = None) -> Rig:
    """The rig that `tests/rig.py:shop` or `package.module:shop` names. Raises UsageError when there is none."""
    where, _, name = reference.rpartition(":")
    if not where or not name:
        raise UsageError(f"expected a rig like tests/rig.py:shop, got {reference!r}")
    module = _module(where, base or Path.cwd())
    found = getattr(module, name, None)
    if not isinstance(found, Rig):
        rigs = [key for key, value in vars(module).items() if isinstance(value, Rig)]
        raise UsageError(
            f"{where} has no rig {name!r}; it has {', '.join(rigs) or 'no rig at all'}",
            hint=f"{where}:{rigs[0]}" if rigs else "shop = jobcheck.Rig(...)",
        )
    found.file = found.file or str(Path(module.__file__ or "").resolve())
    found.name = found.name or name
    return found


def _module(where: str, base: Path) -> ModuleType:
    try:
        if not where.endswith(".py"):
            return importlib.import_module(where)
        path = (base / where).resolve()
        if not path.is_file():
            raise UsageError(f"no rig file {path}", hint="give the path from here, such as tests/rig.py:shop")
        known = f"jobcheck_rig_{abs(hash(str(path)))}"
        if known in sys.modules:
            return sys.modules[known]
        spec = importlib.util.spec_from_file_location(known, path)
        if spec is None or spec.loader is None:
            raise UsageError(f"cannot read {path} as Python")
        module = importlib.util.module_from_spec(spec)
        sys.modules[known] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[known]
            raise
        return module
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # a module that calls sys.exit() would end us with the code of a success
        hint = "the rig is read outside the app's environment: import the app inside the functions, not at the top"
        raise UsageError(
            f"{where} cannot be loaded: {type(error).__name__}: {error}",
            hint="" if isinstance(error, SyntaxError) else hint,
        ) from None
