"""Is what was written before a file closed in it, whoever closes it while threads write?

A write that has returned is in the file, or whoever closed the file was told that it is not.  A
write that comes too late is refused.
"""

import contextlib
import gc
import random
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

import chunkwise
from chunkwise.errors import ChunkwiseError

SHORT = 12

ROWS = 600
# What threads are told that come too late, by us or by h5py.
REFUSALS = (ChunkwiseError, ValueError, RuntimeError, OSError, AttributeError)

LEAVING = """
import sys, threading, time
import numpy as np
import chunkwise
path, seed, daemon = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "True"
file = chunkwise.open(path, "w", sync=False)
d = file.create_dataset("x", (600, 40), "i4", chunks=(4, 40), filters="deflate:1")
log = open(path + ".log", "w", buffering=1)
def write(first):
    for row in range(first, 600, 3):
        try:
            d[row] = row + 1
        except Exception:
            return
        log.write(f"{row}\\n")
threads = [threading.Thread(target=write, args=(first,), daemon=daemon) for first in range(3)]
for thread in threads:
    thread.start()
time.sleep(seed % 7 / 100)
"""


def attempt(seed: int, folder: Path) -> None:
    """Close, flush, collect or leave while threads write."""
    rng = random.Random(seed)
    path = folder / "x.h5"
    how = rng.choice(["close", "h5py", "with", "twice", "flush", "collect", "leave"])
    if how == "leave":
        _leave(path, seed, rng.random() < 0.5)
    elif how == "collect":
        _collect(path, rng)
    else:
        _close(path, how, rng)


class _Writers:
    """Threads that write rows, and what became of each."""

    def __init__(self, datasets: list[chunkwise.Dataset], rng: random.Random) -> None:
        self.returned = np.zeros((len(datasets), ROWS), bool)
        self.late: list[BaseException] = []
        self._stopped = threading.Event()
        count = rng.randint(1, 6)
        kinds = [rng.choice(["row", "list", "mask", "read", "flush"]) for _ in range(count)]
        kinds[0] = "row"
        self._threads = [
            threading.Thread(target=self._write, args=(datasets, first, count, kinds[first]))
            for first in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _write(self, datasets: list[chunkwise.Dataset], first: int, count: int, kind: str) -> None:
        try:
            for row in range(first, ROWS, count):
                for number, d in enumerate(datasets):
                    if self._stopped.is_set():
                        return
                    self._one(d, row, kind)
                    self.returned[number, row] = True
        except REFUSALS as error:
            self.late.append(error)

    def _one(self, d: chunkwise.Dataset, row: int, kind: str) -> None:
        if kind == "list":
            d[[row]] = np.full((1, 40), row + 1)
            return
        if kind == "mask":
            mask = np.zeros(ROWS, bool)
            mask[row] = True
            d[mask] = np.full((1, 40), row + 1)
            return
        d[row] = row + 1
        if kind == "read":
            assert (d[row] == row + 1).all(), f"row {row} is not what was just written"
        elif kind == "flush":
            d.flush()

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a thread that writes hangs"
        wrong = [error for error in self.late if "lost" in str(error)]
        assert not wrong, f"a write that returned was lost: {wrong[0]}"


def _made(file: Any, rng: random.Random) -> list[chunkwise.Dataset]:
    filters = rng.choice(["none", "deflate:1", "shuffle+deflate:1", "lzf", "deflate:1+fletcher32"])
    chunks = (rng.choice([1, 3, 16, 200]), 40)
    names = ["x", "y"][: rng.randint(1, 2)]
    made = [
        file.create_dataset(name, (ROWS, 40), "i4", chunks=chunks, filters=filters)
        for name in names
    ]
    if rng.random() < 0.2:
        made.append(file.create_dataset("contiguous", (ROWS, 40), "i4", chunks=False))
    return made


def _close(path: Path, how: str, rng: random.Random) -> None:
    file = chunkwise.open(path, "w", sync=False)
    made = _made(file, rng)
    names = [d.name for d in made]
    writers = _Writers(made, rng)
    time.sleep(rng.random() * 0.06)
    if how == "flush":
        before = writers.returned.copy()
        file.flush()
        _check_flushed(file, names, before)
        before = writers.returned.copy()
        file.h5py.flush()
        writers.stop()
        file.close()
        _check(path, names, writers.returned)
        return
    ways: dict[str, Callable[[], Any]] = {
        "close": file.close,
        "h5py": file.h5py.file.close,
        "with": lambda: file.__exit__(None, None, None),
        "twice": file.close,
    }
    other = threading.Thread(target=file.close) if how == "twice" else None
    if other is not None:
        other.start()
    ways[how]()
    if other is not None:
        other.join(60)
        assert not other.is_alive(), "a thread that closes hangs"
    for d in made:
        with contextlib.suppress(ChunkwiseError):
            d[0] = 1
            raise AssertionError("a write to a closed file returned")
    writers.join()
    _check(path, names, writers.returned)


def _check_flushed(file: chunkwise.File, names: list[str], before: npt.NDArray[np.bool_]) -> None:
    for name, rows in zip(names, before, strict=True):
        got = h5py.Dataset(file[name].id)[:, 0]
        lost = np.flatnonzero(rows & (got != np.arange(1, ROWS + 1)))
        assert not lost.size, f"{name}: flush() returned without rows {lost.tolist()}"


def _check(path: Path, names: list[str], returned: npt.NDArray[np.bool_]) -> None:
    with h5py.File(path) as file:
        for name, rows in zip(names, returned, strict=True):
            got = file[name][...]
            want = np.broadcast_to(np.arange(1, ROWS + 1)[:, None], got.shape)
            lost = np.flatnonzero(rows & (got != want).any(axis=1))
            assert not lost.size, f"{name}: rows that were written are lost: {lost.tolist()}"
            torn = (got != got[:, :1]).any(axis=1)
            assert not torn.any(), f"{name}: rows are written in part: {np.flatnonzero(torn)}"


def _collect(path: Path, rng: random.Random) -> None:
    """Nobody refers to the dataset any more, while another thread closes the file."""
    file = chunkwise.open(path, "w", sync=False)
    h5 = file.h5py.file
    h5.create_dataset("x", (ROWS, 40), "i4", chunks=(16, 40), compression=1)
    returned = np.zeros((1, ROWS), bool)
    begun = threading.Event()

    def write() -> None:
        for row in range(ROWS):
            try:
                d = chunkwise.wrap(h5["x"])
                d[row] = row + 1
            except (*REFUSALS, KeyError):
                return
            returned[0, row] = True
            begun.set()
            del d
            if row % 50 == 0:
                gc.collect()

    thread = threading.Thread(target=write)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        thread.start()
        begun.wait(10)
        time.sleep(rng.random() * 0.02)
        if rng.random() < 0.5:
            h5.close()
        file.close()
        thread.join(60)
    assert not thread.is_alive(), "a thread that writes hangs"
    _check(path, ["x"], returned)


def _leave(path: Path, seed: int, daemon: bool) -> None:
    """The program ends while threads write."""
    command = [sys.executable, "-c", LEAVING, str(path), str(seed), str(daemon)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0,), f"it ended with {done.returncode}: {done.stderr}"
    assert "lost" not in done.stderr, done.stderr
    said = Path(f"{path}.log").read_text().split("\n")[:-1]
    returned = np.zeros((1, ROWS), bool)
    returned[0, [int(row) for row in said]] = True
    assert daemon or returned.all(), "threads that the program waits for were refused"
    _check(path, ["x"], returned)
