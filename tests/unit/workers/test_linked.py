"""Programs that no library can give a faster clock."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

import pytest

from jobcheck.workers.linked import GO, stays_real


def program(folder: Path, *, interpreter: bool, go: bool = False, wide: bool = True, name: str = "relay") -> Path:
    """An ELF file with a program header or two, as `readelf -l` shows them."""
    kinds = [1, 3] if interpreter else [1]
    size, start = (56, 64) if wide else (32, 52)
    head = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
    head = head.ljust(start, b"\0")
    table = b"".join(struct.pack("<I", kind).ljust(size, b"\0") for kind in kinds)
    whole = bytearray(head + table + (GO if go else b"") + b"code")
    struct.pack_into("<Q" if wide else "<I", whole, 32 if wide else 28, start)
    struct.pack_into("<HH", whole, 54 if wide else 42, size, len(kinds))
    file = folder / name
    file.write_bytes(whole)
    file.chmod(0o755)
    return file


@pytest.mark.parametrize("wide", [True, False])
def test_what_is_linked_statically_or_by_go_stays_in_real_time(tmp_path: Path, wide: bool) -> None:
    def why(**kind: bool) -> str:
        program(tmp_path, wide=wide, **kind)
        return stays_real(["relay", "--fast"], str(tmp_path), tmp_path)

    assert why(interpreter=True) == ""
    assert why(interpreter=False) == "is linked statically, so it loads no library"
    assert why(interpreter=True, go=True) == "is a Go program, which asks the kernel for the time by itself"


def test_a_script_is_as_its_interpreter_is(tmp_path: Path) -> None:
    program(tmp_path, interpreter=False, name="tiny-sh")
    script = tmp_path / "run.sh"
    script.write_text(f"#!{tmp_path}/tiny-sh -e\n")
    script.chmod(0o755)
    assert "statically" in stays_real(["./run.sh"], "", tmp_path)
    script.write_text("#!/usr/bin/env -S tiny-sh\n")
    assert "statically" in stays_real(["./run.sh"], str(tmp_path), tmp_path)


def test_this_python_and_what_is_not_there_are_no_reason(tmp_path: Path) -> None:
    assert stays_real([sys.executable], os.defpath, tmp_path) == ""
    assert stays_real(["no-such-program"], os.defpath, tmp_path) == ""
    (tmp_path / "empty").touch(0o755)
    assert stays_real(["./empty"], os.defpath, tmp_path) == ""
