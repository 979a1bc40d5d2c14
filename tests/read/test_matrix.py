"""Any type x layout x filters x rank x edge case reads as h5py reads it, and by which path.

``CHUNKWISE_MATRIX=5000 pytest tests/read/test_matrix.py`` tries so many combinations.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import ChunkwiseError
from tests.support.matrix import Combination, combinations, reasons, write
from tests.support.reading import outcome, random_index, same

COUNT = int(os.environ.get("CHUNKWISE_MATRIX", "400"))
# Datasets in a file.
BATCH = 50


def batches() -> Iterator[list[Combination]]:
    drawn = combinations(COUNT, seed=1)
    while batch := list(islice(drawn, BATCH)):
        yield batch


def agree(ours: Any, theirs: Any) -> bool:
    """Whether both are the same, or both errors, of which ours says more."""
    if isinstance(theirs, Exception):
        return isinstance(ours, ChunkwiseError | type(theirs))
    return same(ours, theirs)


def compare(d: h5py.Dataset, c: Combination) -> str:
    """Read in many ways; gives the path that was taken."""
    ours = chunkwise.wrap(d)
    plan = ours.explain()
    rng = np.random.default_rng(c.seed)
    assert agree(outcome(lambda: ours[()]), outcome(lambda: d[()])), (c, plan)
    indexes = [random_index(rng, d.shape) for _ in range(3)] if d.shape else [...]
    for index in indexes:
        got, want = outcome(lambda i=index: ours[i]), outcome(lambda i=index: d[i])
        assert agree(got, want), (c, index, plan, got, want)
    if d.shape:
        assert agree(outcome(ours.read), outcome(lambda: d[()])), (c, plan)
        start = [int(rng.integers(0, n + 1)) for n in d.shape]
        count = [int(rng.integers(0, n - s + 1)) for n, s in zip(d.shape, start, strict=True)]
        box = tuple(slice(s, s + n) for s, n in zip(start, count, strict=True))
        slab = chunkwise.hyperslab(start, count)
        got, want = outcome(lambda: ours.read(slab)), outcome(lambda: d[box])
        assert agree(got, want), (c, slab, plan, got, want)
    wanted = reasons(c, d)
    if plan["path"] != "libhdf5":
        assert not wanted, (c, wanted)
    elif "wrong coordinates" in plan["reason"]:
        # Array indexes of which libhdf5 lists the chunks wrongly; see `chunks.rs`.
        assert c.maxshape not in ("fixed", "all unlimited"), c
    else:
        assert any(words in plan["reason"] for words in wanted), (c, wanted, plan["reason"])
    return str(plan["path"])


@pytest.mark.filterwarnings("error:.*reading through libhdf5:RuntimeWarning")
@pytest.mark.parametrize("number", range(-(-COUNT // BATCH)))
def test_every_combination_reads_as_h5py_reads_it(tmp_path: Path, number: int) -> None:
    batch = next(islice(batches(), number, None))
    path = tmp_path / "matrix.h5"
    libver = ["earliest", "latest"][number % 2]
    user_block = [0, 512, 2048][number % 3]
    made: dict[str, Combination] = {}
    with h5py.File(path, "w", libver=libver, userblock_size=user_block) as f:
        f["target"] = np.arange(9)
        for c in batch:
            try:
                write(f, str(c.seed), c)
            except (ValueError, RuntimeError, OSError, TypeError) as refused:
                print("HDF5 refuses", c, refused)
            else:
                made[str(c.seed)] = c
    with h5py.File(path) as f:
        paths = Counter(compare(f[name], c) for name, c in made.items())
    # That much is not refused, and read by the engine.
    assert paths.total() > BATCH // 2
    assert paths["chunked"] > BATCH // 8


def test_the_matrix_is_the_same_each_time() -> None:
    assert list(combinations(60, seed=1)) == list(combinations(60, seed=1))
