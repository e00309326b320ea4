"""Whether a program can be given a faster clock: libfaketime is a library that the dynamic linker loads before others.

A program that is linked statically loads none. A Go program asks the kernel for the time by itself, however it is
linked: Go marks what it builds with a header (`debug/buildinfo` of Go's library reads it).
"""

from __future__ import annotations

import mmap
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

ELF = b"\x7fELF"
INTERPRETER = 3
"""PT_INTERP: the program header that names the dynamic linker."""
GO = b"\xff Go buildinf:"
DEPTH = 3
"""So many scripts may name one another as their interpreter."""


def stays_real(words: Sequence[str], path: str, folder: Path) -> str:
    """Why a command lives in real time whatever it is told; empty where nothing is known against it.

    `path` is the PATH that its program is looked up in, `folder` where it is started.
    """
    program = words[0]
    for _ in range(DEPTH):
        found = folder / program if "/" in program else Path(shutil.which(program, path=path) or "")
        if not found.is_file():
            return ""  # that it is not there is told when it is started
        try:
            with found.open("rb") as file:
                head = file.read(256)
                if head.startswith(b"#!"):
                    program = _interpreter(head)
                    continue
                return _why(file.fileno(), head)
        except (OSError, ValueError, struct.error):
            return ""
    return ""


def _interpreter(head: bytes) -> str:
    """The program that a script names in its first line; of `env`, what that is to find."""
    words = head[2:].splitlines()[0].decode(errors="replace").split()
    named = [word for word in words if not word.startswith("-")]
    return named[1] if len(named) > 1 and named[0].endswith("/env") else words[0]


def _why(file: int, head: bytes) -> str:
    if not head.startswith(ELF):
        return ""
    with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as whole:
        if whole.find(GO) >= 0:
            return "is a Go program, which asks the kernel for the time by itself"
        return "" if _has_interpreter(whole) else "is linked statically, so it loads no library"


def _has_interpreter(whole: mmap.mmap) -> bool:
    wide, order = whole[4] == 2, "<" if whole[5] == 1 else ">"
    table = struct.unpack_from(order + ("Q" if wide else "I"), whole, 32 if wide else 28)[0]
    size, count = struct.unpack_from(order + "HH", whole, 54 if wide else 42)
    kinds = (struct.unpack_from(order + "I", whole, table + number * size)[0] for number in range(count))
    return INTERPRETER in kinds
