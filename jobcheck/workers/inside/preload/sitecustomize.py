"""Loaded by every Python process of a worker, before the app: lets the harness ask where the process is.

It is found first on PYTHONPATH, so it also loads the environment's own `sitecustomize`, which it hides. It needs
nothing but the standard library of Python 3.8, says nothing, and never fails: a worker must start as it would alone.

When JOBCHECK_STACKS names a file, two real-time signals write there:
* SIGRTMIN+7: the stacks of all threads, written by C code at once, also while the process waits inside C code;
* SIGRTMIN+8: the awaits of all asyncio tasks. This one needs the interpreter, so it is only sent to a process whose
  stack shows an event loop that waits.

JOBCHECK_OVERLAY names values that are laid over settings modules (`jobcheck_overlay`). JOBCHECK_PRELOAD names files
that run before the app is imported; what fails in one is told on standard error, since the rig's author wants to know.
JOBCHECK_READS names a file for the variables that the app reads (`jobcheck_reads`). JOBCHECK_CA names the authority
that certifi tells, for clients that look at no variable.
"""


def _load_hidden():
    import importlib.machinery
    import importlib.util
    import os
    import sys

    here = os.path.realpath(os.path.dirname(__file__))
    elsewhere = [path for path in sys.path if os.path.realpath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _answer_signals():
    import os
    import signal

    path = os.environ.get("JOBCHECK_STACKS")
    if not path or not hasattr(signal, "SIGRTMIN"):
        return
    import faulthandler

    low = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        # Out of the range in which programs expect their own files, and which daemons close.
        import fcntl

        fd = fcntl.fcntl(low, getattr(fcntl, "F_DUPFD_CLOEXEC", fcntl.F_DUPFD), 200)
        os.close(low)
    except (ImportError, OSError, ValueError):
        fd = low
    faulthandler.register(signal.SIGRTMIN + 7, file=fd, all_threads=True, chain=False)
    signal.signal(signal.SIGRTMIN + 8, lambda _number, _frame: _write_tasks(fd))
    # A system call that this signal interrupts goes on by itself, as if nothing had happened.
    signal.siginterrupt(signal.SIGRTMIN + 8, False)


def _write_tasks(fd):
    """Writes the awaits of all tasks in the form of faulthandler's threads, in one piece."""
    try:
        import os
        import sys

        asyncio = sys.modules.get("asyncio")
        loop = asyncio.events._get_running_loop() if asyncio else None
        tasks = asyncio.all_tasks(loop) if loop is not None else ()
        lines = []
        for task in tasks:
            lines.append("Task %x (most recent call first):" % id(task))
            for code, line in reversed(_awaits(task.get_coro())):
                lines.append('  File "%s", line %d in %s' % (code.co_filename, line, code.co_name))
            lines.append("")
        lines.append("End of tasks\n")
        os.write(fd, "\n".join(lines).encode("ascii", "backslashreplace"))
    except Exception:
        pass


def _awaits(coroutine):
    """The chain of frames from a task's coroutine to what it waits for."""
    frames = []
    while coroutine is not None and len(frames) < 200:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        frame = frame or getattr(coroutine, "ag_frame", None)
        if frame is not None:
            frames.append((frame.f_code, frame.f_lineno))
        coroutine = (
            getattr(coroutine, "cr_await", None)
            or getattr(coroutine, "gi_yieldfrom", None)
            or getattr(coroutine, "ag_await", None)
        )
    return frames


def _follow_the_clock():
    import os

    if os.environ.get("JOBCHECK_SPEED"):
        import jobcheck_waits

        jobcheck_waits.install(float(os.environ["JOBCHECK_SPEED"]))


def _lay_over():
    import os

    if os.environ.get("JOBCHECK_OVERLAY"):
        import jobcheck_overlay

        jobcheck_overlay.install(os.environ["JOBCHECK_OVERLAY"])


def _trust():
    import os

    path = os.environ.get("JOBCHECK_CA")
    if path:
        import jobcheck_overlay

        def where():
            return path

        jobcheck_overlay.lay_over({"certifi": {"where": where, "core.where": where}})


def _run_preloads():
    import os
    import runpy
    import sys
    import traceback

    for path in filter(None, os.environ.get("JOBCHECK_PRELOAD", "").split(os.pathsep)):
        try:
            runpy.run_path(path, run_name="jobcheck_preload")
        except Exception:
            sys.stderr.write("jobcheck: the preload %s failed:\n%s" % (path, traceback.format_exc()))


def _note_reads():
    import os

    if os.environ.get("JOBCHECK_READS"):
        import jobcheck_reads

        jobcheck_reads.install(os.environ["JOBCHECK_READS"], os.environ["JOBCHECK_ROOT"])


for _part in (_load_hidden, _follow_the_clock, _answer_signals, _lay_over, _trust, _run_preloads, _note_reads):
    try:
        _part()
    except Exception:
        pass
del _part
