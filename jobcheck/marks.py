"""`mark(kind, key)`: one line to the harness that says "this happened", for effects that no tap can see.

This file is imported by workers under test: standard library only, Python 3.8 syntax, nothing else of jobcheck. In
production, where `JOBCHECK_MARKS` is not set, a mark does nothing. Any other language can do the same in one line:
connect to `JOBCHECK_MARKS` (`host:port`), send `mark <kind> <key>\\n`, read `ok\\n`. Where it need not be a point, a
line of output is enough: `jobcheck-mark: <kind> <key>`.
"""

from __future__ import annotations

import os
import socket


def mark(kind: str, key: str = "") -> None:
    """Tells the harness that `kind` happened for `key` (a business id), and waits until it has taken note.

    `kind` is one word; `key` is the rest of the line. Because the mark is answered, it is a point: jobcheck can strike
    right before and right after it. Without `JOBCHECK_MARKS` in the environment nothing is done at all. A harness that
    cannot be reached is not the app's trouble and raises nothing. Raises ValueError when kind or key cannot be sent as
    one line, RuntimeError when the harness refuses the mark.
    """
    address = os.environ.get("JOBCHECK_MARKS", "")
    if not address:
        return
    kind, key = str(kind), str(key)
    if not kind or kind.split() != [kind]:
        raise ValueError("jobcheck.mark: kind must be one word without spaces, got %r" % (kind,))  # noqa: UP031
    if "\n" in key or "\r" in key:
        raise ValueError("jobcheck.mark: key must be one line, got %r" % (key,))  # noqa: UP031
    answer = _say(address, "mark " + kind + " " + key + "\n")
    if answer and answer != "ok":
        raise RuntimeError("jobcheck.mark: the harness refused the mark: " + answer)


def _say(address: str, line: str) -> str:
    """The harness's answer to one line; empty when it went away. A new connection each time: marks survive forks."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), 10) as link:
            # While the harness holds this mark as a point, the worker has to wait, however long that takes.
            link.settimeout(None)
            link.sendall(line.encode("utf-8"))
            answer = b""
            while not answer.endswith(b"\n"):
                data = link.recv(4096)
                if not data:
                    return ""
                answer += data
            return answer.decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
