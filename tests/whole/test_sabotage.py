"""Does the shim that makes calls go wrong do exactly what it says?  Other tests rely on it."""

import signal
import sys
from pathlib import Path

import pytest

from tests.support.sabotage import Done, Plan, run

PROGRAM = """
import os, sys
there = os.open("x", os.O_RDWR | os.O_CREAT)
for step in range(3):
    try:
        print(os.pwrite(there, b"abcdefgh", 8 * step))
    except OSError as error:
        print(error.strerror)
try:
    os.fsync(there)
    os.rename("x", "y")
except OSError as error:
    print(error.strerror)
"""
NO_ROOM, BROKEN = "No space left on device", "Input/output error"


def ran(folder: Path, plan: Plan | None = None) -> Done:
    return run([sys.executable, "-c", PROGRAM], folder, plan)


def test_calls_are_counted_in_their_order(tmp_path: Path) -> None:
    done = ran(tmp_path)
    assert done.code == 0, done.err
    names = [(call.name, call.nbytes) for call in done.calls]
    assert names == [("pwrite", 8)] * 3 + [("fsync", 0), ("rename", 0)]
    assert [call.number for call in done.calls] == [1, 2, 3, 4, 5]
    assert done.calls[-1].path == f"{tmp_path}/y"
    assert not done.struck
    # Only those of which a plan speaks.
    only = ran(tmp_path, Plan(calls=("fsync", "rename")))
    assert [call.name for call in only.calls] == ["fsync", "rename"]


@pytest.mark.parametrize(
    ("faults", "printed", "there"),
    [
        ("flip", "8 8 8", b"abcdefghabcdufghabcdefgh"),
        ("drop", "8 8 8", b"abcdefgh" + bytes(8) + b"abcdefgh"),
        ("short", "8 4 8", b"abcdefghabcd" + bytes(4) + b"abcdefgh"),
        ("enospc", f"8 {NO_ROOM} 8", b"abcdefgh" + bytes(8) + b"abcdefgh"),
        ("eio", f"8 {BROKEN} 8", b"abcdefgh" + bytes(8) + b"abcdefgh"),
        ("late", f"8 {BROKEN} 8", b"abcdefgh" * 3),
        ("short,enospc", f"8 4 {NO_ROOM}", b"abcdefghabcd"),
        ("pass,drop", "8 8 8", b"abcdefgh" * 2),
    ],
)
def test_each_fault(tmp_path: Path, faults: str, printed: str, there: bytes) -> None:
    done = ran(tmp_path, Plan(2, faults))
    assert done.out.split("\n") == [*_lines(printed), ""], done.err
    assert (tmp_path / "y").read_bytes() == there


def _lines(printed: str) -> list[str]:
    for text in (NO_ROOM, BROKEN):
        printed = printed.replace(text, text.replace(" ", "_"))
    return [word.replace("_", " ") for word in printed.split()]


def test_a_fault_that_lasts(tmp_path: Path) -> None:
    done = ran(tmp_path, Plan(3, "enospc..."))
    assert done.out.splitlines() == ["8", "8", NO_ROOM, NO_ROOM]
    assert [call.number for call in done.struck] == [3, 4]
    assert (tmp_path / "x").read_bytes() == b"abcdefgh" * 2


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_call_without_data(tmp_path: Path, call: str) -> None:
    done = ran(tmp_path, Plan(1, "eio", (call,)))
    assert done.out.splitlines()[3:] == [BROKEN]
    assert (tmp_path / "x").exists()
    (tmp_path / "x").unlink()
    done = ran(tmp_path, Plan(1, "drop", (call,)))
    assert done.out.splitlines()[3:] == []
    assert (tmp_path / "y").exists() == (call != "rename")


def test_a_kill(tmp_path: Path) -> None:
    done = ran(tmp_path, Plan(2, "kill"))
    assert done.code == -signal.SIGKILL
    assert done.crashed
    assert (tmp_path / "x").read_bytes() == b"abcdefgh"
