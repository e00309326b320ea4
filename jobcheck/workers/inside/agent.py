"""The agent: a child in the app's own environment that does what the harness must never do itself.

It imports the app, enqueues cases, calls library code for recovery, and forks handlers. It is run by path with the
app's interpreter, so it is standard library only, for Python 3.8 and later, and knows nothing of jobcheck's package.

Requests and answers are JSON lines on the Unix socket whose path is in JOBCHECK_AGENT:

    {"id": 1, "do": "case", "function": "rig.py:new_invoice", "case": {...}}  ->  {"id": 1, "ok": true, ...}
    {"id": 2, "do": "call", "file": "/.../recover.py", "function": "restore", "args": {...}}
    {"id": 3, "do": "fork", "function": "shop.jobs:charge", "args": [...], "kwargs": {...}}  ->  {"pid": ...}
    {"id": 4, "do": "fork", "function": "rig.py:new_invoice", "case": {...}}  ->  {"pid": ...}
    an ended fork tells by itself:  {"event": "exit", "pid": 4711, "status": 0, "error": null}

Forks are what most time goes into, so what the first of them did for good is done here, once, before the others: lazy
objects of the app are made (a Celery task is one until it is touched), and modules of the standard library imported.
Modules of others stay with the forks: they may open connections when they are imported.
"""

import gc
import importlib
import importlib.util
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import traceback


class Case:
    """What an enqueue function gets: `case.number`, `case.id`, `case.owns(...)`, `case.fake`."""

    def __init__(self, data):
        self.id = data["id"]
        self.number = data["number"]
        self.values = data.get("values", {})
        """The workload's own values of a scenario file."""
        self._seed = data.get("seed", 0)
        self._ids = {}
        self._fake = None

    def owns(self, **ids):
        """Effects in which one of these ids occurs belong to this case."""
        for name, value in ids.items():
            self._ids[name] = str(value)

    @property
    def fake(self):
        """A Faker with a seed of this case's own."""
        if self._fake is None:
            try:
                from faker import Faker
            except ImportError:
                raise RuntimeError(
                    "case.fake needs the package faker in the app's environment: pip install faker"
                ) from None
            self._fake = Faker()
            self._fake.seed_instance("%s/%s" % (self._seed, self.number))
        return self._fake


_loaded = {}
_before = [name for name in os.environ.get("JOBCHECK_BEFORE", "").split(",") if name]
"""Modules that are imported before the first of the user's: frameworks that must be set up."""
_frameworks = []
"""Those that have been."""


def load(where):
    """The module of `package.module` or of `/path/file.py`."""
    while _before:
        _frameworks.append(importlib.import_module(_before[0]))
        del _before[0]
    if not where.endswith(".py"):
        return importlib.import_module(where)
    path = os.path.abspath(where)
    if path not in _loaded:
        name = "jobcheck_user_" + os.path.splitext(os.path.basename(path))[0]
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        _loaded[path] = module
    return _loaded[path]


def share_nothing():
    """Closes what the frameworks have opened, before a fork: two processes on one connection spoil it for both."""
    for module in _frameworks:
        module.before_fork()


_frozen = []
"""Something, once the garbage collector leaves alone what was there before the first fork."""


def ready_to_fork():
    """Shares nothing, and what is there before the first fork is no matter of the garbage collector any more: a fork
    that collects would touch all of it, and so copy it page by page. (billiard collects before each child; that was
    half of a Celery worker's boot.)"""
    share_nothing()
    if not _frozen and hasattr(gc, "freeze"):  # PyPy has none
        gc.collect()
        gc.freeze()
        _frozen.append(True)


def apart(folder):
    """Temporary files of this process go to a folder of its own below the usual one, unless the rig chose another."""
    usual = os.environ.get("TMPDIR", "")
    if not folder or os.path.dirname(folder) != usual:
        return
    os.makedirs(folder, exist_ok=True)
    os.environ["TMPDIR"] = folder
    module = sys.modules.get("tempfile")
    if module is not None and module.tempdir == usual:
        module.tempdir = None  # it remembers what it found first


def resolve(function):
    """The object that `module:qualname` or `file.py:qualname` names."""
    where, _, qualname = function.rpartition(":")
    found = load(where)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def plain(value):
    """A JSON value, or the text of what is none."""
    try:
        json.dumps(value)
        return value
    except (TypeError, ValueError):
        return repr(value)


def failure(error):
    """What went wrong, with the frames of the app and not those of the agent."""
    frames = traceback.extract_tb(error.__traceback__)
    shown = [frame for frame in frames if frame.filename != __file__ and not frame.filename.startswith("<frozen ")]
    where = ["%s:%s %s" % (frame.filename, frame.lineno, frame.name) for frame in shown[-12:]]
    return {"error": type(error).__name__, "message": str(error) or repr(error), "where": where}


STANDARD = getattr(sys, "stdlib_module_names", frozenset())
"""Empty before Python 3.10."""


class Agent:
    def __init__(self, connection):
        self.connection = connection
        self.buffer = b""
        self.children = {}
        self.wake, self.wake_write = os.pipe()
        os.set_blocking(self.wake_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)

    def say(self, message):
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def run(self):
        self.say({"event": "ready", "pid": os.getpid(), "python": sys.version.split()[0]})
        while True:
            readable, _, _ = select.select([self.connection, self.wake], [], [])
            if self.wake in readable:
                os.read(self.wake, 4096)
                self.reap()
            if self.connection in readable:
                data = self.connection.recv(65536)
                if not data:
                    return
                self.buffer += data
                while b"\n" in self.buffer:
                    line, self.buffer = self.buffer.split(b"\n", 1)
                    self.handle(json.loads(line))

    def handle(self, request):
        answer = {"id": request["id"], "ok": True}
        try:
            answer.update(getattr(self, "do_" + request["do"])(request))
        except BaseException as error:  # whatever the app raises is the answer, SystemExit included
            if isinstance(error, KeyboardInterrupt):
                raise
            answer["ok"] = False
            answer["ids"] = getattr(error, "jobcheck_ids", {})
            answer.update(failure(error))
        self.say(answer)

    def do_import(self, request):
        if ":" in request["function"]:
            getattr(resolve(request["function"]), "__name__", "")  # a lazy object becomes the real one
        else:
            load(request["function"])
        share_nothing()
        return {}

    def do_case(self, request):
        case = Case(request["case"])
        try:
            value = resolve(request["function"])(case)
        except BaseException as error:
            error.jobcheck_ids = case._ids  # what it did before it failed has an owner too
            raise
        return {"ids": case._ids, "value": plain(value)}

    def do_call(self, request):
        return {"value": plain(resolve(request["file"] + ":" + request["function"])(**request.get("args", {})))}

    def do_fork(self, request):
        target = resolve(request["function"])
        getattr(target, "__name__", "")
        ready_to_fork()
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            self.child(target, request, read, write)
        os.close(write)
        self.children[pid] = read
        return {"pid": pid}

    def child(self, target, request, read, write):
        """In the fork: runs the function and leaves, with its error on the pipe, or with what it made and imported."""
        status = 70
        known = set(sys.modules)
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(read)
            self.connection.close()
            told = {}
            apart(request.get("temporary", ""))
            if request.get("case") is None:
                target(*request.get("args", ()), **request.get("kwargs", {}))
            else:
                case = Case(request["case"])
                target(case)
                told["ids"] = case._ids
            status = 0
            imported = [name for name in sys.modules if name not in known and name.split(".")[0] in STANDARD]
            if imported:
                told["imported"] = imported[:500]
            if told:
                os.write(write, json.dumps(told).encode())  # fits into the pipe
        except BaseException as error:
            status = 1
            os.write(write, json.dumps(failure(error)).encode()[:60000])
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def do_warm(self, request):
        """Imports what a worker will need, so that its forks start ready. Tells what a fork would share."""
        for name in request["modules"]:
            try:
                load(name)
            except ImportError:
                if name in request["must"]:
                    raise
        share_nothing()
        return {"threads": [one.name for one in threading.enumerate() if one is not threading.main_thread()]}

    def do_spawn(self, request):
        """Forks a child that becomes `python -m MODULE ARGS`, with its output in a FIFO."""
        ready_to_fork()
        pid = os.fork()
        if pid == 0:
            self.program(request)
        self.children[pid] = None
        return {"pid": pid}

    def program(self, request):
        """In the fork: the program's own main, as the interpreter would run it."""
        status = 70
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.connection.close()
            out = os.open(request["output"], os.O_WRONLY)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.close(out)
            sys.argv = [request["module"]] + request["args"]
            runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
            status = 0
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else int(left.code is not None)
        except BaseException:
            status = 1
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def reap(self):
        for pid in list(self.children):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done == 0:
                continue
            read = self.children.pop(pid)
            text = b""
            if read is not None:
                with os.fdopen(read, "rb") as pipe:
                    text = pipe.read()
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            told = json.loads(text) if text else None
            imported = told.pop("imported", ()) if told else ()
            self.say({"event": "exit", "pid": pid, "status": code, "error": told or None})
            for name in imported:
                try:
                    importlib.import_module(name)
                except ImportError:  # the app had put it there itself, or it is one of another interpreter's
                    pass


class HarnessesOwn:
    """A rig file says `import jobcheck`; where the app's environment has none, the harness's own serves.

    That package alone: what else lies beside it is not installed for the app, and is not to be found by it.
    """

    def __init__(self, folder):
        self._folder = os.path.join(folder, "jobcheck")

    def find_spec(self, name, path=None, target=None):
        if name != "jobcheck":
            return None
        file = os.path.join(self._folder, "__init__.py")
        return importlib.util.spec_from_file_location(name, file, submodule_search_locations=[self._folder])


def main():
    sys.path.insert(0, os.getcwd())
    if importlib.util.find_spec("jobcheck") is None:
        sys.meta_path.append(HarnessesOwn(os.environ["JOBCHECK_PATH"]))
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(os.environ["JOBCHECK_AGENT"])
    Agent(connection).run()


if __name__ == "__main__":
    # Run by path, the agent's own folder would shadow modules of the app: the app's folder takes its place.
    sys.path[:] = [
        entry for entry in sys.path if os.path.abspath(entry or ".") != os.path.dirname(os.path.abspath(__file__))
    ]
    main()
