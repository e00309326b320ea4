"""Lays values over settings modules as soon as they have been imported. Standard library of Python 3.8.

JOBCHECK_OVERLAY names a JSON file: `{"config.settings.production": {"DATABASES.default.HOST": "127.0.0.1"}}`. A part
of a dotted path is a key of a dict, a number in a list, or else an attribute.
"""

import importlib.abc
import importlib.machinery
import json
import sys


class Finder(importlib.abc.MetaPathFinder):
    """Finds the named modules as they would be found without it, and lays the values over after they have run."""

    def __init__(self, overlays):
        self.overlays = overlays
        self.busy = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self.overlays or name in self.busy:
            return None
        self.busy.add(name)
        try:
            spec = self.others(name, path, target)
        finally:
            self.busy.discard(name)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = Loader(spec.loader, self.overlays[name])
        return spec

    def others(self, name, path, target):
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


class Loader(importlib.abc.Loader):
    """Runs the module by its own loader, then changes it."""

    def __init__(self, real, values):
        self.real = real
        self.values = values

    def create_module(self, spec):
        return self.real.create_module(spec)

    def exec_module(self, module):
        self.real.exec_module(module)
        for path, value in self.values.items():
            lay(module, path.split("."), value)

    def __getattr__(self, name):
        return getattr(self.real, name)


def lay(module, parts, value):
    """Sets what the path names; only its last part may be new. Raises LookupError, which says what is missing."""
    found = module
    for at, part in enumerate(parts[:-1]):
        try:
            found = found[index(found, part)] if isinstance(found, (dict, list)) else getattr(found, part)
        except (LookupError, AttributeError, ValueError):
            raise LookupError(
                "jobcheck: cannot lay %s over %s: there is no %s"
                % (".".join(parts), module.__name__, ".".join(parts[: at + 1]))
            ) from None
    if isinstance(found, (dict, list)):
        found[index(found, parts[-1])] = value
    else:
        setattr(found, parts[-1], value)


def index(found, part):
    return int(part) if isinstance(found, list) else part


def install(file):
    with open(file) as stream:
        lay_over(json.load(stream))


def lay_over(overlays):
    """Does so from now on: `{module: {dotted path: value}}`."""
    sys.meta_path.insert(0, Finder(overlays))
