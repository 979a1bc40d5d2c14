"""Datasets whose partial chunks are stored without filters, resized and written at random.

With ``H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`` a resize changes how chunks at the edge are stored.
chunkwise and h5py write in turns; both must read what a NumPy array says.
"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

import chunkwise
from tests.support.filtered import with_plain_edges

SHORT = 6
STEPS = 60
FILTERS: tuple[tuple[str, ...], ...] = (
    ("deflate",),
    ("shuffle", "deflate"),
    ("deflate", "fletcher32"),
    ("shuffle",),
)


def attempt(seed: int, folder: Path) -> None:
    """One dataset, written, resized and read at random."""
    rng = np.random.default_rng(seed)
    path = folder / "x.h5"
    rank = int(rng.integers(1, 4))
    chunks = tuple(int(n) for n in rng.integers(1, (40, 9, 5)[rank - 1], rank))
    shape = tuple(int(rng.integers(1, 3 * chunk + 1)) for chunk in chunks)
    dtype = np.dtype(str(rng.choice(["u1", "<i4", ">f8"])))
    filters = FILTERS[rng.integers(len(FILTERS))]
    libver = str(rng.choice(["earliest", "latest"]))
    most = tuple(
        None if rng.random() < 0.7 else 4 * max(size, chunk)
        for size, chunk in zip(shape, chunks, strict=True)
    )
    how: dict[str, Any] = {"libver": libver}
    if rng.random() < 0.5:
        # Little of it stays in libhdf5's cache.
        how["rdcc_nbytes"] = int(np.prod(chunks)) * dtype.itemsize * int(rng.integers(0, 3))
    model = np.zeros(shape, dtype)
    with h5py.File(path, "w", **how) as file:
        with_plain_edges(file, shape, most, chunks, dtype, filters)
    file = h5py.File(path, "r+", **how)
    try:
        for step in range(STEPS):
            theirs = file["x"]
            ours = chunkwise.wrap(theirs)
            what = rng.choice(["ours", "ours", "theirs", "resize", "read", "reopen"])
            told = f"seed {seed}, step {step}: {what}"
            if what in ("ours", "theirs"):
                box = _box(rng, model.shape)
                values = rng.integers(0, 100, model[box].shape).astype(dtype)
                model[box] = values
                if what == "ours":
                    ours[box] = values
                else:
                    ours.flush()
                    theirs[box] = values
            elif what == "resize":
                new = tuple(int(rng.integers(1, 4 * chunk + 1)) for chunk in chunks)
                if rng.random() < 0.3 and theirs.id.get_storage_size():
                    # Of what was never written libhdf5 cannot (tests/upstream/grow_unwritten.c).
                    theirs.resize(new)
                else:
                    ours.resize(new)
                grown = np.zeros(new, dtype)
                both = tuple(slice(0, min(pair)) for pair in zip(new, model.shape, strict=True))
                grown[both] = model[both]
                model = grown
            elif what == "reopen":
                file.close()
                with h5py.File(path) as read:
                    _same(told + " by h5py", read["x"][...], model)
                    _same(told + " by chunkwise", chunkwise.wrap(read["x"])[...], model)
                file = h5py.File(path, "r+", **how)
            else:
                box = _box(rng, model.shape)
                _same(told + " by chunkwise", ours[box], model[box])
                ours.flush()
                _same(told + " by h5py", theirs[box], model[box])
    finally:
        file.close()


def _box(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[slice, ...]:
    begins = [int(rng.integers(0, size)) for size in shape]
    if rng.random() < 0.2:
        return tuple(slice(0, size) for size in shape)
    return tuple(
        slice(begin, int(rng.integers(begin + 1, size + 1)))
        for begin, size in zip(begins, shape, strict=True)
    )


def _same(told: str, got: Any, model: Any) -> None:
    np.testing.assert_array_equal(got, model, err_msg=told)
