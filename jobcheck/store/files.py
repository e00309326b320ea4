"""Files written whole or not at all, files shared between processes, and what is said when a disk refuses."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobcheck.errors import Aborted, JobcheckError, UsageError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_REFUSED = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOENT, errno.ELOOP}
)


def refused(path: Path, error: OSError, doing: str = "write") -> JobcheckError:
    """The one clear error for an operating system that will not let us `doing` at `path`.

    A full disk ends the run (Aborted); a place that cannot be written is the user's to change (UsageError).
    """
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return Aborted(f"cannot {doing} {path}: {reason}", hint="free some space; what was written so far is kept")
    if error.errno in _REFUSED:
        return UsageError(f"cannot {doing} {path}: {reason}", hint="choose a folder that this user may write")
    return Aborted(f"cannot {doing} {path}: {reason}")


def write_whole(path: Path, text: str) -> Path:
    """Writes `text` as UTF-8 so that a reader sees the old content or the new one, never a part.

    Characters that UTF-8 cannot hold (lone surrogates) are written as escapes. Raises UsageError or Aborted.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        part = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            part.chmod(0o644)
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise refused(path, error) from error
    return path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock file at `path` against all other processes of this machine. The kernel frees it if we die.

    Not for the same process twice: the second caller would wait for the first.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise refused(path, error, "lock") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
