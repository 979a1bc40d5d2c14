"""Does a crash in a child stay there, and does everything else come back?"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chunkwise.contained import contained
from chunkwise.errors import CorruptDataError, FileFormatError


def crash() -> None:
    ctypes.string_at(0)


def refuse() -> None:
    raise FileFormatError("a.h5: no such file")


def test_results_come_back() -> None:
    parent = os.getpid()
    assert contained(os.getpid, "x") != parent
    assert contained(lambda: b"x" * (8 << 20), "x") == b"x" * (8 << 20)


def test_errors_come_back() -> None:
    with pytest.raises(FileFormatError, match="no such file"):
        contained(refuse, "x")


def test_a_crash_is_one_error() -> None:
    with pytest.raises(CorruptDataError, match=r"a\.h5: HDF5 .* crashed on it \(SIGSEGV\)"):
        contained(crash, "a.h5")


def test_no_child_and_no_descriptor_is_left() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        contained(os.getpid, "x")
        with pytest.raises(CorruptDataError):
            contained(crash, "x")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_ctrl_c_ends_the_child(tmp_path: Path) -> None:
    program = f"""
import os, time
from chunkwise.contained import contained
def work():
    open({str(tmp_path / "child")!r}, "w").write(str(os.getpid()))
    time.sleep(60)
contained(work, "x")
"""
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    child = tmp_path / "child"
    while not child.exists() or not child.read_text():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=30)
    assert b"KeyboardInterrupt" in message
    with pytest.raises(ProcessLookupError):
        os.kill(int(child.read_text()), 0)
