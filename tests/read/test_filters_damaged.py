"""Damaged chunks behind filters give an error that says so, or bytes; never a crash."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import ChunkwiseError
from tests.support.filtered import BLOSC2S, CASES, SZIPS, Case, create, values


def damaged(stored: bytes, rng: random.Random) -> Iterator[bytes]:
    """The bytes cut off, with bits flipped, with bytes overwritten, and others altogether."""
    yield stored[: rng.randrange(1, len(stored))]
    for _ in range(12):
        changed = bytearray(stored)
        for _ in range(rng.choice([1, 1, 3])):
            at = rng.randrange(min(len(changed), rng.choice([8, 40, len(changed)])))
            changed[at] = rng.choice([changed[at] ^ 1 << rng.randrange(8), 0, 255])
        yield bytes(changed)
    yield rng.randbytes(len(stored))


DAMAGED = {
    **CASES,
    **SZIPS,
    **BLOSC2S,
    "scaleoffset": Case(h5py.h5z.FILTER_SCALEOFFSET, (2, 0)),
    "nbit": Case(h5py.h5z.FILTER_NBIT),
}


@pytest.mark.filterwarnings("ignore:.*reading through libhdf5:RuntimeWarning")
@pytest.mark.parametrize("case", DAMAGED.values(), ids=DAMAGED.keys())
@pytest.mark.slow
def test_damaged_chunks(tmp_path: Path, case: Case) -> None:
    """An error that says so, or bytes; never a crash."""
    sound, path = tmp_path / "sound.h5", tmp_path / "damaged.h5"
    rng = random.Random(str(case))
    dtype = np.longdouble if case.number == h5py.h5z.FILTER_NBIT else "<i4"
    raw = values("<i4", (500,), "smooth")
    with h5py.File(sound, "w") as f:
        create(f, "x", dtype, (500,), (500,), [case])[...] = raw
    with h5py.File(sound) as f:
        _, stored = f["x"].id.read_direct_chunk((0,))
    for changed in damaged(stored, rng):
        shutil.copy(sound, path)
        with h5py.File(path, "r+") as f:
            f["x"].id.write_direct_chunk((0,), changed, 0)
        with h5py.File(path) as f:
            try:
                got = chunkwise.wrap(f["x"])[...]
            except (ChunkwiseError, OSError):
                continue
            assert got.shape == (500,)
