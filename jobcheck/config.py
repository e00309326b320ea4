"""`[tool.jobcheck]` of the nearest pyproject.toml: the defaults of the command line and of the pytest plugin.

Standard library only, and read only when somebody asks: a test suite that never explores pays nothing for it.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import UsageError

FAIL_ON = ("handler", "settings", "all", "none")
"""Whose findings fail a run: each word includes those before it; `all` adds the transport's."""
BOOTS = ("zygote", "standby", "cold")
"""How workers are booted, the quickest way first."""
ASSUME = ("at-least-once",)
FAULTS = (
    "kill",
    "kill-child",
    "kill-parent",
    "reset",
    "zombie",
    "term",
    "duplicate",
    "order",
    "webhook",
    "race",
    "all",
)
"""Families of strikes (`faults.strikes.FAMILIES`)."""
RULESETS = (1,)
"""Those that this version knows; docs/ci.md says what they pin."""
PYPROJECT = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is told beside the job itself."""

    rig: str = ""
    """`tests/rig.py:shop` or `package.module:shop`; a path counts from the project."""
    reports: str = "reports"
    """Folder of the run folders; a relative one counts from the project."""
    seed: int | None = None
    fail_on: str = "settings"
    """One of FAIL_ON."""
    faults: str = ""
    """Families of strikes: `kill, reset, zombie`, or `all`; empty: kills alone."""
    max_points: int = 0
    """Strikes at most; 0: all of them."""
    budget: str = ""
    """`60s`, `5m`: no further strike is begun after it, and the coverage says so; empty: no bound."""
    deadline: str = "30s"
    """Of real time: how long a job may run until it is called hung, and a worker may take until it is ready."""
    speed: int = 1
    """How many times as fast the app lives, workers, broker and database together; 1: real time."""
    real_clocks: bool = False
    """Leases run out by themselves, and the job system's own recovery gives a job out again: nothing is rewound."""
    profile: str = ""
    """`quick`, `ci`, `nightly`, or a table `[tool.jobcheck.profiles.NAME]` of the project's own."""
    boot: str = "zygote"
    lanes: int = 2
    assume: str = ""
    """`at-least-once`: the workers run with safe settings, whatever the app's are."""
    secrets: tuple[str, ...] = ()
    """Names of further fields whose values are secret: `["iban", "national-id"]`."""
    keep_bodies: bool = False
    """Field values in bodies, rows and messages are written down as they are; credentials are not."""
    ruleset: int = RULESETS[-1]
    """What is a point, what is struck and how it is judged: an update changes no verdict of an unchanged app."""


PROFILES: dict[str, dict[str, Any]] = {
    "quick": {"budget": "20s", "max_points": 12},
    "ci": {"budget": "5m"},
    "nightly": {"boot": "cold", "fail_on": "settings"},
}
"""What a profile stands for; a project may say otherwise. `nightly` boots every worker as production does."""
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)")
_UNITS = {"s": 1, "m": 60, "h": 3600}
KEYS = tuple(field.name for field in dataclasses.fields(Settings))
_CHOICES = {"fail_on": FAIL_ON, "boot": BOOTS, "assume": ASSUME}
_TIMES = ("budget", "deadline")
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0", "")
_LEAST = {"seed": 0, "max_points": 0, "lanes": 1, "speed": 1}
_MOST = {"speed": 1000}
"""The same bound as in scenario files."""


def dashed(key: str) -> str:
    """A key as people write it: `max-points`."""
    return key.replace("_", "-")


def project_of(start: Path) -> Path:
    """The nearest folder from `start` upwards with a pyproject.toml; `start` itself when there is none."""
    start = start.resolve()
    return next((folder for folder in (start, *start.parents) if (folder / PYPROJECT).is_file()), start)


def rig_from(reference: str, base: Path, project: Path) -> str:
    """A rig's name whose path counts from `base`, as it is found again from the project: paths below it are short."""
    where, colon, name = reference.rpartition(":")
    if not where.endswith(".py"):
        return reference
    path = (base / where).resolve()
    return f"{path.relative_to(project) if path.is_relative_to(project) else path}{colon}{name}"


def read_settings(project: Path) -> Settings:
    """The settings in the project's pyproject.toml. Raises UsageError when a key or a value is wrong."""
    file = project / PYPROJECT
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from None
    table = _table(file, text)
    profiles = table.pop("profiles", {})
    where = f"[tool.jobcheck] in {file}"
    settings = merged(Settings(), table, where=where)
    if settings.profile:
        settings = merged(settings, _profile(profiles, settings.profile, where), where=where)
    return settings


def with_profile(project: Path, settings: Settings, name: str) -> Settings:
    """The settings with those of a profile over them. Raises UsageError for one that is not there."""
    file = project / PYPROJECT
    text = file.read_text("utf-8") if file.is_file() else ""
    where = f"[tool.jobcheck.profiles] in {file}"
    return merged(
        settings, {**_profile(_table(file, text).get("profiles", {}), name, where), "profile": name}, where=where
    )


def _table(file: Path, text: str) -> dict[str, Any]:
    if "tool.jobcheck" not in text and "[tool]" not in text:
        return {}  # most projects: no parser is loaded
    import tomllib

    try:
        return dict(tomllib.loads(text).get("tool", {}).get("jobcheck", {}))
    except ValueError as error:
        raise UsageError(f"{file} is no TOML: {error}") from None


def _profile(own: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    known = {**PROFILES, **own}
    if name not in known:
        raise UsageError(f"{where}: no profile {name!r}; there are {', '.join(known)}", hint=nearest(name, known))
    return dict(known[name])


def seconds(text: str) -> float:
    """Seconds of `60s`, `5m`, `1.5h`; 0 for an empty text. Raises ValueError."""
    if not text:
        return 0.0
    found = _BUDGET.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return float(found[1]) * _UNITS[found[2]]


def merged(settings: Settings, values: Mapping[str, Any], *, where: str) -> Settings:
    """The settings with these values over them. Keys may be written with dashes; texts are read as numbers where
    numbers are wanted. Raises UsageError with the nearest right word; `where` names the place."""
    fresh = {}
    for name, value in values.items():
        key = name.replace("-", "_")
        if key not in KEYS:
            raise UsageError(
                f"{where} has no key {name!r}; there are {', '.join(map(dashed, KEYS))}",
                hint=nearest(name, map(dashed, KEYS)),
            )
        fresh[key] = _checked(key, value, f"{where}: {dashed(key)}")
    return dataclasses.replace(settings, **fresh)


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean max-points?`, or nothing."""
    near = difflib.get_close_matches(word.replace("_", "-"), list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else ""


def _checked(key: str, value: Any, where: str) -> Any:
    if key in _LEAST:
        least = _LEAST[key]
        if isinstance(value, str) and value.strip().isdigit():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise UsageError(f"{where}: expected a number from {least} on, got {value!r}")
        if key in _MOST and value > _MOST[key]:
            raise UsageError(f"{where}: expected a number of at most {_MOST[key]}, got {value!r}")
        return value
    if key == "ruleset":
        return _ruleset(value, where)
    if key == "secrets":
        return _names(value, where)
    if key in ("keep_bodies", "real_clocks"):
        return _flag(value, where)
    if not isinstance(value, str):
        raise UsageError(f"{where}: expected a text, got {value!r}")
    if key in _TIMES:
        try:
            if seconds(value) <= 0 and key == "deadline":
                raise ValueError(value)
        except ValueError:
            raise UsageError(f"{where}: expected a time such as 60s or 5m, got {value!r}") from None
    if key == "faults":
        for word in value.replace(",", " ").split():
            if word not in FAULTS:
                raise UsageError(
                    f"{where}: expected some of {', '.join(FAULTS)}, got {word!r}", hint=nearest(word, FAULTS)
                )
    choices = _CHOICES.get(key)
    if choices is not None and value not in choices and not (key == "assume" and not value):
        words = f"one of {', '.join(choices)}" if len(choices) > 1 else choices[0]
        raise UsageError(f"{where}: expected {words}, got {value!r}", hint=nearest(value, choices))
    return value


def _ruleset(value: Any, where: str) -> int:
    number = int(value) if isinstance(value, str) and value.strip().isdigit() else value
    if isinstance(number, bool) or number not in RULESETS:
        known = ", ".join(map(str, RULESETS))
        raise UsageError(
            f"{where}: this version knows the rulesets {known}, got {value!r}",
            hint=f"ruleset = {RULESETS[-1]}, or a version of jobcheck that knows it (CHANGELOG.md)",
        )
    return int(number)


def _names(value: Any, where: str) -> tuple[str, ...]:
    """A list of names; texts of an ini file or a command line have commas between them."""
    names = [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(
        isinstance(name, str) and re.search(r"\w", name) for name in names
    ):
        raise UsageError(f'{where}: expected names of fields such as ["iban", "pin_code"], got {value!r}')
    return tuple(names)


def _flag(value: Any, where: str) -> bool:
    word = str(value).strip().lower()
    if isinstance(value, bool | str) and word in (*_TRUE, *_FALSE):
        return word in _TRUE
    raise UsageError(f"{where}: expected true or false, got {value!r}")
