"""Addresses of an app that reads them from a settings module: values laid over that module when it is imported.

Not a module of its own beside the real one: an app that sets DJANGO_SETTINGS_MODULE itself, or imports its settings by
name, would go around that. The values are laid over by `workers/inside/preload/jobcheck_overlay.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import UsageError

DJANGO_VARIABLE = "DJANGO_SETTINGS_MODULE"


@dataclass(frozen=True, slots=True)
class Overlay:
    """`values` by dotted path (`DATABASES.default.HOST`), laid over `module` as soon as it has been imported."""

    module: str
    values: Mapping[str, Any] = field(default_factory=dict)
    django: bool = False
    """Whether the module is what Django reads its settings from: agents then call `django.setup()` first."""

    def __post_init__(self) -> None:
        if not self.module or not all(part.isidentifier() for part in self.module.split(".")):
            raise UsageError(
                f"expected a settings module such as config.settings.production, got {self.module!r}",
                hint="name the module as the app imports it, not its file",
            )
        for path in self.values:
            if not all(path.split(".")):
                raise UsageError(f"expected a dotted path such as DATABASES.default.HOST, got {path!r}")
        try:
            json.dumps(dict(self.values))
        except TypeError as error:
            raise UsageError(
                f"the values laid over {self.module} must be texts, numbers, lists or dicts: {error}"
            ) from None

    def texts(self) -> list[tuple[str, str]]:
        """Path and text of every value that may be a template, lists and dicts looked through."""
        return [(path, text) for path, value in self.values.items() for text in _texts(value)]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return []


def django(settings: str, override: Mapping[str, Any] | None = None) -> Overlay:
    """The settings module that the rig's processes use, with values over it by dotted path:
    `jobcheck.django("config.settings.production", override={"DATABASES.default.HOST": "{db.host}"})`."""
    return Overlay(settings, dict(override or {}), django=True)


def overlay(module: str, override: Mapping[str, Any]) -> Overlay:
    """The same for any module: `jobcheck.overlay("shop.config", {"PAYMENTS_URL": "{payments.base}"})`."""
    return Overlay(module, dict(override))
