"""Badly laid out files: each ``chunkwise repack`` that is printed keeps all data and cures.

Shapes, chunks, types and filters are random and mostly bad.  Each fix is pasted into a shell as
it is printed; the copy must hold every object, attribute and value, and the finding be gone.
"""

import math
import random
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from chunkwise.inspection import inspect
from chunkwise.inspection.finding import Finding
from tests.support.repacking import require_equal
from tests.support.tools import paste

SHORT = 6

_MOST_NBYTES = 256 << 20

_FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"compression": 1},
    {"compression": 1, "shuffle": True},
    {"compression": "lzf"},
    {"fletcher32": True},
    {"scaleoffset": 0},
)


def attempt(seed: int, folder: Path) -> None:
    """One file and all its fixes."""
    pick = random.Random(seed)
    path = folder / pick.choice(["a.h5", "a b.h5", "it's.nc", "-a.h5"])
    with h5py.File(path, "w") as file:
        for name in pick.sample(["x", "y y", "g/z", "it's"], pick.randrange(1, 4)):
            _dataset(pick, file, name)
        file.attrs["title"] = "kept"
    facts = inspect(str(path))
    tried = set()
    for finding in facts.findings:
        for fix in finding.fixes:
            if not fix.repacks or fix.text in tried:
                continue
            tried.add(fix.text)
            there = set(folder.iterdir())
            paste(fix.text, folder)
            (copy,) = set(folder.iterdir()) - there
            require_equal(path, copy)
            for left in inspect(str(copy)).findings:
                if (left.code, left.path) == (finding.code, finding.path):
                    assert _is_better(left, finding), f"{fix.text} left {left.summary}"
            copy.unlink()


def _is_better(now: Finding, before: Finding) -> bool:
    """Whether a smaller reader alone still pays, and less."""
    return now.code == "reads-exceed-cache" and now.waste_nbytes < before.waste_nbytes / 2


def _stored_nbytes(shape: tuple[int, ...], chunks: tuple[int, ...], itemsize: int) -> int:
    """Bytes of all chunks without filters."""
    padded = (-(-n // c) * c for n, c in zip(shape, chunks, strict=True))
    return math.prod(padded) * itemsize


def _dataset(pick: random.Random, file: h5py.File, name: str) -> None:
    shape = tuple(pick.choice([1, 100, 500, 1001, 3000]) for _ in range(pick.randrange(2, 4)))
    while math.prod(shape) > 3_000_000:
        shape = shape[:-1] if len(shape) > 1 else (3000,)
    dtype = pick.choice(["<i4", ">i2", "u1", "<i8"])
    data = (np.arange(math.prod(shape)) % pick.choice([2, 97, 251])).astype(dtype).reshape(shape)
    if pick.random() < 0.25:
        made = file.create_dataset(name, data=data)
    else:
        maxshape = tuple(None if pick.random() < 0.3 else n for n in shape)
        chunks = tuple(
            min(pick.choice([1, n, 1 + n // 2, 8, 100, 2000]), 4000 if m is None else n)
            for n, m in zip(shape, maxshape, strict=True)
        )
        while math.prod(-(-n // c) for n, c in zip(shape, chunks, strict=True)) > 20_000:
            chunks = tuple(min(2 * c, n) for n, c in zip(shape, chunks, strict=True))
        # Chunks may reach far beyond the shape: not so far that a file takes gigabytes.
        while _stored_nbytes(shape, chunks, data.itemsize) > _MOST_NBYTES:
            chunks = tuple(min(c, max(n, c // 2)) for n, c in zip(shape, chunks, strict=True))
        options = pick.choice(_FILTERS)
        made = file.create_dataset(name, data=data, chunks=chunks, maxshape=maxshape, **options)
    made.attrs["units"] = "K"
