"""Notes which environment variables the app's own code reads, and in which line. Standard library of Python 3.8.

With JOBCHECK_READS each read is appended to that file as `NAME<tab>1 or 0 (was it set)<tab>FILE:LINE`; the app is what
lies below JOBCHECK_ROOT and is not installed there. A helper library that reads for the app counts as the app's line;
what a library reads for itself while it is imported does not.
"""

import os
import sys

HERE = os.path.realpath(__file__)
INSTALLED = ("site-packages", "dist-packages")
FOR_THE_APP = {
    *("environ", "environs", "decouple", "dj_database_url", "dj_email_url", "django_cache_url", "pydantic_settings"),
    *("pydantic", "dotenv", "dynaconf", "configurations", "prettyconf", "goodconf", "marshmallow", "everett"),
}
"""Libraries that read variables for the app; any other reads for itself."""


def reader(root):
    """File and line of the app's frame that asked for a variable just now; empty for anybody else."""
    frame = sys._getframe(2)
    while frame is not None and os.path.realpath(frame.f_code.co_filename) == HERE:
        frame = frame.f_back  # this file, which lies among the installed ones where jobcheck was installed by pip
    while frame is not None:
        name = frame.f_code.co_filename
        parts = name.split(os.sep)
        installed = next((parts[at + 1] for at, part in enumerate(parts[:-1]) if part in INSTALLED), "")
        if name.startswith("<frozen importlib") or not ours(name, installed, root):
            return ""
        if name.startswith(root) and not installed:
            return "%s:%s" % (os.path.normpath(name[len(root) :]), frame.f_lineno)
        frame = frame.f_back
    return ""


def ours(name, installed, root):
    """Whether a frame may stand between the app's line and the variable."""
    if installed:
        return os.path.splitext(installed)[0] in FOR_THE_APP
    plain = os.path.basename(name) in ("os.py", "_collections_abc.py") or name.startswith("<frozen")
    return name.startswith(root) or plain


def watch(root, note):
    """Calls `note(name, value or None, where)` whenever the code below `root` reads a variable."""
    root = os.path.join(os.path.realpath(root), "")
    busy = []

    class Watched(type(os.environ)):
        def __getitem__(self, key):
            try:
                value = super().__getitem__(key)
            except KeyError:
                self._note(key, None)
                raise
            self._note(key, value)
            return value

        def _note(self, key, value):
            if busy:
                return
            busy.append(key)
            try:
                where = reader(root)
                if where:
                    note(key, value, where)
            finally:
                busy.pop()

    os.environ.__class__ = Watched


def install(path, root):
    low = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    seen = set()

    def note(name, value, where):
        line = "%s\t%d\t%s\n" % (name, value is not None, where)
        if line not in seen:
            seen.add(line)
            os.write(low, line.encode("utf-8", "backslashreplace"))

    watch(root, note)
