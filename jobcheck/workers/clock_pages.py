"""What libfaketime leaves in shared memory for each process that was killed: one page and one semaphore a process."""

from __future__ import annotations

from pathlib import Path

from .platform import process

SHARED_MEMORY = Path("/dev/shm")


def sweep() -> None:
    """Removes those whose process is gone, whoever's it was."""
    for pattern in ("faketime_shm_*", "sem.faketime_sem_*"):
        for path in SHARED_MEMORY.glob(pattern):
            number = path.name.rpartition("_")[2]
            if not number.isdigit():
                continue
            owner = process(int(number))
            if owner is None or not owner.alive:  # a zombie has written its last
                path.unlink(missing_ok=True)
