"""Run by path by the app's own interpreter, with a faster clock: which ways to wait follow it? Prints a line of JSON.

    python waits.py SECONDS DEADLINE

Each way waits SECONDS of the fast clock in a thread of its own; after DEADLINE of them, those that still wait are
reported as null. `rate` is how much faster the clock is than the kernel's, by /proc/uptime, which nothing fakes.
Standard library only, for Python 3.8 and later.
"""

import json
import os
import select
import sys
import threading
import time


def _queue(seconds):
    import queue

    try:
        queue.Queue().get(timeout=seconds)
    except queue.Empty:
        pass


def _simple_queue(seconds):
    import queue

    try:
        queue.SimpleQueue().get(timeout=seconds)
    except queue.Empty:
        pass


def _lock(seconds):
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=seconds)


def _join(seconds):
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    thread.join(seconds)


WAYS = {
    "time.sleep": time.sleep,
    "select.select": lambda seconds: select.select([], [], [], seconds),
    "Event.wait": lambda seconds: threading.Event().wait(seconds),
    "queue.Queue.get": _queue,
    "Thread.join": _join,
    "queue.SimpleQueue.get": _simple_queue,
    "Lock.acquire": _lock,
}


def _uptime():
    with open("/proc/uptime") as file:
        return float(file.read().split()[0])


def main(seconds, deadline):
    """Prints the seconds that each way took, and the clock's rate."""
    took = dict.fromkeys(WAYS)

    def one(name, wait):
        began = time.monotonic()
        wait(seconds)
        took[name] = round(time.monotonic() - began, 3)

    real, fast = _uptime(), time.monotonic()
    for name, wait in WAYS.items():
        threading.Thread(target=one, args=(name, wait), daemon=True).start()
    end = time.monotonic() + deadline
    while None in took.values() and time.monotonic() < end:
        time.sleep(seconds / 10)
    rate = (time.monotonic() - fast) / max(_uptime() - real, 0.01)
    print(json.dumps({"took": took, "rate": round(rate, 2)}), flush=True)
    os._exit(0)  # threads that wait for ever are no reason to stay


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]))
