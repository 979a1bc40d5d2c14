"""Is what was flushed still there after the disk was full, and does the file open?

Rows are written in slices, lists and masks until there is no room, and a few more after that.  A
row that a flush has confirmed holds its value, or one that was written later.
"""

import contextlib
import os
import random
import resource
import signal
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import chunkwise
from chunkwise.errors import ChunkwiseError

SHORT = 6

COLUMNS = 2000
ROWS = 1500


def attempt(seed: int, folder: Path) -> None:
    """Fill a disk, or what a file may take, and look at what is left."""
    rng = random.Random(seed)
    room = rng.randint(1_100_000, 3_000_000)
    with _limited(folder, room, by_mount=seed % 2 == 0):
        path = folder / "x.h5"
        rows = _write(path, rng)
        told = "; ".join(rows.told)
        failure = None
        try:
            with h5py.File(path) as file:
                rows.check(file)
        except OSError as error:
            failure = str(error)
        if failure is not None:
            assert not rows.confirmed, f"the file does not open any more: {failure}; {told}"
            assert rows.errors, f"the file does not open, and nobody said so: {failure}; {told}"


class _Rows:
    """Which values each row of a dataset may have."""

    def __init__(self) -> None:
        # The last confirmed one first.
        self.allowed: dict[tuple[str, int], list[int]] = {}
        self.confirmed: set[tuple[str, int]] = set()
        # Those whose last write returned.
        self.returned: set[tuple[str, int]] = set()
        self.errors: list[str] = []
        self.told: list[str] = []

    def begin(self, name: str, rows: list[int], value: int) -> None:
        for row in rows:
            self.allowed.setdefault((name, row), [0]).append(value)
            self.returned.discard((name, row))

    def done(self, name: str, rows: list[int]) -> None:
        self.returned.update((name, row) for row in rows)

    def flushed(self) -> None:
        for key in self.returned:
            self.allowed[key] = self.allowed[key][-1:]
        self.confirmed |= self.returned

    def check(self, file: h5py.File) -> None:
        told = "; ".join(self.told)
        for (name, row), values in self.allowed.items():
            if (name, row) not in self.confirmed:
                continue
            try:
                got = file[name][row]
            except (OSError, KeyError, ValueError) as error:
                raise AssertionError(f"{name}[{row}] cannot be read: {error}; {told}") from error
            right = any((got == _row(row, value)).all() for value in values)
            assert right, f"{name}[{row}] is none of {values}; {told}"


def _row(row: int, value: int) -> Any:
    if value == 0:
        return np.zeros(COLUMNS, "u1")
    return np.random.default_rng((row, value)).integers(0, 256, COLUMNS, "u1")


def _write(path: Path, rng: random.Random) -> _Rows:
    rows = _Rows()
    file = chunkwise.open(path, "w", sync=False, libver=rng.choice(["earliest", "latest"]))
    names = ["x", "y"][: rng.randint(1, 2)]
    filters = rng.choice(["none", "deflate:1", "shuffle+deflate:1", "lzf", "fletcher32"])
    for name in names:
        chunks = (rng.choice([1, 4, 32]), COLUMNS)
        file.create_dataset(
            name, (ROWS, COLUMNS), "u1", chunks=chunks, maxshape=(None, None), filters=filters
        )
    try:
        file.flush()
    except ChunkwiseError as error:
        rows.errors.append(str(error))
    failed = 0
    for value in range(1, 150):
        if failed > 4:
            break
        try:
            _step(file, names, value, rng, rows)
        except (ChunkwiseError, OSError, RuntimeError) as error:
            failed += 1
            rows.errors.append(str(error))
            rows.told.append(f"{type(error).__name__}: {str(error)[-160:]}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file.close()
        rows.told.append("close")
        rows.flushed()
    except (ChunkwiseError, OSError, RuntimeError) as error:
        rows.errors.append(str(error))
        rows.told.append(f"close: {type(error).__name__}: {str(error)[-200:]}")
    return rows


def _step(
    file: chunkwise.File, names: list[str], value: int, rng: random.Random, rows: _Rows
) -> None:
    step = rng.choice(["slice", "list", "list", "mask", "flush", "flush dataset"])
    name = rng.choice(names)
    d: Any = file[name]
    rows.told.append(f"{step} {name} {value}")
    if step == "flush":
        file.flush()
        rows.flushed()
        return
    if step == "flush dataset":
        d.flush()
        for key in [key for key in rows.returned if key[0] == name]:
            rows.allowed[key] = rows.allowed[key][-1:]
            rows.confirmed.add(key)
        return
    first = rng.randrange(ROWS)
    chosen = list(range(first, min(first + rng.randint(1, 120), ROWS)))
    if step != "slice":
        chosen = sorted(rng.sample(range(ROWS), rng.randint(1, 150)))
    elements = np.stack([_row(row, value) for row in chosen])
    rows.begin(name, chosen, value)
    if step == "slice":
        d[chosen[0] : chosen[-1] + 1] = elements
    elif step == "list":
        d[chosen] = elements
    else:
        mask = np.zeros(ROWS, bool)
        mask[chosen] = True
        d[mask, :] = elements
    rows.done(name, chosen)


@contextlib.contextmanager
def _limited(folder: Path, nbytes: int, by_mount: bool) -> Iterator[None]:
    """Give a folder no more room than this: a disk of its own, where that may be made."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={nbytes}", "tmpfs", str(folder)]
    mounted = False
    if by_mount and os.geteuid() == 0:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if not mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, handler)
        if mounted:
            subprocess.run(["umount", str(folder)], check=False)
