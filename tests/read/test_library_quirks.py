"""Where libhdf5 misreports where data lies, do we still read what h5py reads?"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.reading import assert_reads_like_h5py, same


# An extensible array indexes chunks along the one unlimited dimension.  Where that is not
# the first one, H5Dchunk_iter, H5Dget_chunk_info and H5Dget_chunk_info_by_coord of
# HDF5 2.0 name other coordinates than the ones under which H5Dread finds the chunks.
@pytest.mark.parametrize("filters", [{}, {"compression": 1}], ids=["none", "deflate"])
@pytest.mark.parametrize(
    ("shape", "chunks", "maxshape"),
    [
        ((1, 2), (1, 1), (4, None)),
        ((3, 6), (1, 2), (3, None)),
        ((6, 3), (1, 2), (6, None)),
        ((3, 4, 2), (1, 1, 1), (3, None, 2)),
        ((3, 4, 7), (2, 3, 2), (5, 8, None)),
        ((30, 4), (4, 4), (None, 4)),
    ],
)
def test_extensible_array_along_any_dimension(
    tmp_path: Path,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    maxshape: tuple[int | None, ...],
    filters: dict[str, int],
) -> None:
    path = tmp_path / "extensible.h5"
    data = np.arange(1, 1 + np.prod(shape), dtype="i4").reshape(shape)
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("full", data=data, chunks=chunks, maxshape=maxshape, **filters)
        corner = f.create_dataset("corner", shape, "i4", chunks=chunks, maxshape=maxshape)
        last = tuple(size - 1 for size in shape)
        corner[last] = 5
    with h5py.File(path) as f:
        assert np.array_equal(chunkwise.wrap(f["full"])[...], data)
        assert_reads_like_h5py(f["full"], 20)
        assert_reads_like_h5py(f["corner"], 20)


# H5Dget_offset adds the user block to the address that means "nowhere", which then
# looks like one just below the user block's end.
@pytest.mark.parametrize("user_block", [0, 512, 4096])
def test_never_written_behind_a_user_block(tmp_path: Path, user_block: int) -> None:
    path = tmp_path / "never.h5"
    with h5py.File(path, "w", userblock_size=user_block) as f:
        f.create_dataset("contiguous", (5, 4), "i2", fillvalue=7)
        f.create_dataset("chunked", (5, 4), "i2", fillvalue=7, chunks=(2, 2))
        f.create_dataset("empty", (5, 0), "i2", fillvalue=7)
    with path.open("r+b") as stream:
        stream.write(b"U" * user_block)
    with h5py.File(path) as f:
        for name in f:
            assert same(chunkwise.wrap(f[name])[...], f[name][...]), name
