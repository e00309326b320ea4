"""Looks at an app's settings and jobs from inside its own environment. Run by path; standard library, Python 3.8.

It is told what to do in a JSON file (first argument) and writes what it found to another (second argument). Each look
is a fork of its own, so that an import can be tried again with other variables:

    settings   imports a module with some variables set; which variables are read, in which line, and which values they
               end up in: a variable is given a value that occurs nowhere else, and what changed is compared
    jobs       loads the Celery app; its settings, its tasks with their parameters, and a recipe for the rows they need
"""

import importlib
import importlib.util
import inspect
import json
import os
import select
import sys
import time
import traceback

WITHIN = 60.0
"""Seconds for one look."""
MISSING_TRIES = 60
HEAVY = ("celery", "django", "sqlalchemy", "requests", "httpx", "stripe", "boto3", "psycopg", "pydantic", "pandas")
"""Libraries that take long to import and do nothing else then."""
OWN = ("DJANGO_SETTINGS_MODULE", "PATH", "HOME", "PYTHONPATH", "TMPDIR", "LANG", "TZ", "VIRTUAL_ENV")
URL_SCHEMES = (
    ("postgresql", ("DATABASE", "POSTGRES", "PG", "DB_")),
    ("amqp", ("AMQP", "RABBIT")),
    ("redis", ("REDIS", "BROKER", "CELERY", "CACHE", "RESULT", "QUEUE")),
)


def look(work, env, root):
    """Runs `work()` in a fork with these variables; a dict with what it gave, what was read, and its error."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        answer, reads = {}, []
        try:
            os.close(read)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            os.environ.clear()
            os.environ.update(env)
            import jobcheck_reads

            jobcheck_reads.watch(root, lambda name, value, where: reads.append([name, value is not None, where]))
            answer["found"] = work()
        except BaseException as error:
            frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename.startswith(root)]
            where = "%s:%s" % (os.path.relpath(frames[-1].filename, root), frames[-1].lineno) if frames else ""
            answer["error"] = {"kind": type(error).__name__, "text": str(error), "where": where}
        answer["reads"] = reads
        with os.fdopen(write, "w") as stream:
            json.dump(answer, stream, default=repr)
        os._exit(0)
    os.close(write)
    return wait(pid, read)


def wait(pid, read):
    text, until = b"", time.monotonic() + WITHIN
    while True:
        ready, _, _ = select.select([read], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            os.kill(pid, 9)
            break
        part = os.read(read, 1 << 16)
        if not part:
            break
        text += part
    os.close(read)
    os.waitpid(pid, 0)
    if text:
        return json.loads(text)
    text = "importing it did not end within %g s" % WITHIN
    return {"reads": [], "error": {"kind": "Timeout", "text": text, "where": ""}}


def flat(value, path="", depth=0):
    """`{"DATABASES.default.HOST": "localhost"}` of nested values."""
    if isinstance(value, (str, int, float, bool)) or value is None:
        return {path: value}
    if isinstance(value, os.PathLike):
        return {path: os.fspath(value)}
    found = {}
    if type(value).__name__ == "Celery" and hasattr(value, "conf"):
        conf = {key: str(getattr(value.conf, key, None) or "") for key in ("broker_url", "result_backend")}
        return flat({key: item for key, item in conf.items() if item}, path + ".conf", depth + 1)
    if depth < 6 and isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str) and "." not in key:
                found.update(flat(item, "%s.%s" % (path, key) if path else key, depth + 1))
    elif depth < 6 and isinstance(value, (list, tuple)):
        for at, item in enumerate(value[:60]):
            found.update(flat(item, "%s.%d" % (path, at), depth + 1))
    elif depth < 3 and getattr(type(value), "__module__", "builtins") != "builtins":
        fields = getattr(type(value), "model_fields", None) or getattr(value, "__dict__", {})
        module = sys.modules.get(type(value).__module__)
        if own(module) or getattr(type(value), "model_fields", None):
            for key in list(fields):
                found.update(flat(getattr(value, key, None), "%s.%s" % (path, key), depth + 1))
    return found


def own(module):
    """Whether a module is the app's own."""
    file = getattr(module, "__file__", None) or ""
    root = os.path.join(os.getcwd(), "")
    return file.startswith(root) and "site-packages" not in file and "dist-packages" not in file


def settings_of(name, django):
    """The values of the settings module, or of all of the app's modules that it imports."""
    module = importlib.import_module(name)
    if django:
        return {name: flat({key: value for key, value in vars(module).items() if key.isupper()})}
    found = {}
    for one in [item for item in list(sys.modules.values()) if own(item)]:
        values = {key: value for key, value in vars(one).items() if not key.startswith("__") and plain(value)}
        found[one.__name__] = flat(values)
    return found


def plain(value):
    return not (inspect.ismodule(value) or inspect.isroutine(value) or inspect.isclass(value))


def marks(name, number, value, broker):
    """Values that occur nowhere else, the likeliest kind first: what a variable of this name may be."""
    host, port = "jobcheck-%d.invalid" % number, 47000 + number
    scheme = str(value).partition("://")[0] if "://" in str(value or "") else ""
    if not scheme:
        scheme = next((one for one, words in URL_SCHEMES if any(word in name.upper() for word in words)), "https")
        if scheme == "redis" and "BROKER" in name.upper():
            scheme = broker or ("redis" if importlib.util.find_spec("redis") else "amqp")
    url = "%s://u%d:p%d@%s:%d/%d" % (scheme, number, number, host, port, number)
    if scheme in ("http", "https"):
        url = "%s://%s:%d" % (scheme, host, port)
    kinds = [("text", host), ("number", str(port)), ("url", url), ("flag", "true")]
    if scheme == "postgresql":  # SQLAlchemy takes the driver from it, and may lack the one that it takes by itself
        kinds += [("url", url.replace("://", "+%s://" % driver, 1)) for driver in ("psycopg", "asyncpg")]
    if any(word in name.upper() for word in ("URL", "URI", "DSN")) or "://" in str(value or ""):
        kinds.insert(0, kinds.pop(2))
    elif any(word in name.upper() for word in ("PORT", "TIMEOUT", "NUMBER", "SECONDS")):
        kinds.insert(0, kinds.pop(1))
    return kinds


def survey_settings(task, root):
    """What each variable feeds. `needed`: those without which the import fails, with a value that works."""
    env = dict(task["env"])
    needed, tried = {}, {}

    def work():
        return settings_of(task["module"], task["django"])

    for _ in range(MISSING_TRIES):
        base = look(work, {**env, **needed}, root)
        if "error" not in base:
            break
        missing = [name for name, there, _ in base["reads"] if not there and name not in OWN]
        last = missing[-1] if missing else next((name for name in reversed(list(needed)) if tried[name]), "")
        if not last:
            break
        if last not in tried:
            tried[last] = [value for _, value in marks(last, 900 + len(tried), "", task["broker"])]
        if not tried[last]:
            break
        needed[last] = tried[last].pop(0)
    where = {}
    for name, _, line in base["reads"]:
        where.setdefault(name, line)
    found = {"error": base.get("error"), "values": base.get("found", {}), "needed": needed, "variables": {}}
    for number, name in enumerate([name for name in where if name not in OWN], 1):
        found["variables"][name] = {"where": where[name], "needed": name in needed}
        if "error" in base:
            continue
        for kind, value in marks(name, number, needed.get(name, ""), task["broker"]):
            seen = look(work, {**env, **needed, name: value}, root)
            changed = changes(base["found"], seen.get("found", {})) if "error" not in seen else {}
            if changed:
                found["variables"][name].update(kind=kind, value=value, feeds=changed)
            if changed or ("error" not in seen and kind == "url"):
                break
    return found


def changes(before, after):
    """`{module: {path: new value}}` of what is different."""
    found = {}
    for module, values in after.items():
        old = before.get(module, {})
        mine = {path: value for path, value in values.items() if old.get(path, None) != value}
        if mine:
            found[module] = mine
    return found


def survey_jobs(task, root):
    def work():
        return jobs_of(task["celery"], task["django"])

    return look(work, task["env"], root)


def jobs_of(where, django):
    if django:
        import django as library

        library.setup()
    from celery.app.utils import find_app

    app = find_app(where)
    app.loader.import_default_modules()
    app.finalize()
    every = [(name, task) for name, task in sorted(app.tasks.items()) if not name.startswith(("celery.", "jobcheck."))]
    mine = [(name, task) for name, task in every if own(sys.modules.get(task.__module__))]
    tasks = [task_of(name, task) for name, task in mine or every]  # else those of the packages that it uses
    options = {"broker_url": str(app.conf.broker_url or ""), "result_backend": str(app.conf.result_backend or "")}
    options["eager"] = bool(app.conf.task_always_eager)
    options["beat"] = sorted({str(one.get("task")) for one in (app.conf.beat_schedule or {}).values()})
    rows = {}
    if django:
        import survey_rows

        rows = survey_rows.recipes({one for task in tasks for one in task["needs"]})
    return {"tasks": tasks, "conf": options, "rows": rows}


def task_of(name, task):
    run = inspect.unwrap(task.run)
    try:
        source, line = inspect.getsourcelines(run)
    except (OSError, TypeError):
        source, line = [], 0
    needs = []
    for one in inspect.signature(task.run).parameters.values():
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            needs.append([one.name, getattr(one.annotation, "__name__", str(one.annotation))])
    file = inspect.getsourcefile(run) or "" if source else ""
    mine = own(sys.modules.get(task.__module__))
    if mine:
        file = os.path.relpath(file, os.getcwd())
    return {
        "own": mine,
        "name": name,
        "module": task.__module__,
        "function": getattr(run, "__name__", name.rpartition(".")[2]),
        "where": "%s:%d" % (file, line),
        "needs": [parameter for parameter, _ in needs],
        "kinds": dict(needs),
        "source": "".join(source)[:4000],
        "calls": sorted(set(run.__code__.co_names)) if hasattr(run, "__code__") else [],
    }


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.getcwd()
    with open(sys.argv[1]) as stream:
        task = json.load(stream)
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    sys.path[:0] = [os.path.join(root, path) for path in task["paths"]]
    sys.path += [here, task["preload"]]
    for name in HEAVY:  # once here, and not once in each fork
        if name in task["imports"]:
            try:
                importlib.import_module(name)
            except Exception:
                pass  # not installed, or broken: the app's own import will say so
    found = (survey_settings if task["do"] == "settings" else survey_jobs)(task, root)
    with open(sys.argv[2], "w") as stream:
        json.dump(found, stream)


if __name__ == "__main__":
    main()
