"""Makes timed waits on Python's locks follow a clock that is sped up. Loaded by `sitecustomize` in such processes only.

Python 3.11 and later wait for a lock by `sem_clockwait` where the system has it, and libfaketime before 0.9.12 does not
know that call: the moment until which is waited is then one of the fast clock, and the wait for it one of the slow
clock. So whatever waits with a timeout looks again and again instead, with pauses that the fast clock knows. What waits
without a timeout is left alone. Standard library only, for Python 3.8 and later.
"""

import time

SHORTEST, LONGEST = 0.0003, 0.005
"""Seconds of real time between two looks."""


class Polled:
    """A lock whose timed wait is a number of looks."""

    __slots__ = ("_lock", "_speed")

    def __init__(self, lock, speed):
        self._lock = lock
        self._speed = speed

    def acquire(self, blocking=True, timeout=-1):
        """As a lock does it."""
        if not blocking or timeout is None or timeout < 0:
            return self._lock.acquire(blocking)
        end = time.monotonic() + timeout
        pause = SHORTEST
        while not self._lock.acquire(False):
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, pause * self._speed))
            pause = min(LONGEST, pause * 2)
        return True

    def release(self):
        self._lock.release()

    def locked(self):
        return self._lock.locked()

    def __enter__(self):
        return self._lock.__enter__()

    def __exit__(self, *error):
        return self._lock.__exit__(*error)

    def _at_fork_reinit(self):
        self._lock._at_fork_reinit()


def install(speed):
    """Conditions (and so events, queues, semaphores, futures), joins of threads, and simple queues."""
    import queue
    import threading

    allocate = threading._allocate_lock
    # What a condition waits by; locks that the app makes itself stay what they are.
    threading._allocate_lock = lambda: Polled(allocate(), speed)
    # The one in C waits inside C; the standard library has one in Python, which waits by a condition.
    queue.SimpleQueue = queue._PySimpleQueue
    join = threading.Thread.join

    def polled(self, timeout=None):
        if timeout is None:
            return join(self)
        end = time.monotonic() + max(timeout, 0)
        pause = SHORTEST
        join(self, 0)
        while self.is_alive() and time.monotonic() < end:
            time.sleep(min(max(end - time.monotonic(), 0), pause * speed))
            pause = min(LONGEST, pause * 2)
            join(self, 0)
        return None

    threading.Thread.join = polled
