"""Partial chunks that are stored without filters: we do not provoke what libhdf5 gets wrong."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import UsageError
from tests.support.filtered import with_plain_edges


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("append", [True, False])
def test_what_was_never_written_grows(tmp_path: Path, libver: str, append: bool) -> None:
    path = tmp_path / "x.h5"
    model = np.zeros((7, 11), "i4")
    with h5py.File(path, "w", libver=libver) as file:
        with_plain_edges(file, (7, 5), (None, None), (4, 4), model.dtype, ("shuffle", "deflate"))
        d = chunkwise.wrap(file["x"])
        if append:
            d.append(np.ones((7, 6), "i4"), axis=1)
            model[:, 5:] = 1
        else:
            d.resize((7, 11))
        d[2:6] = 3
        model[2:6] = 3
        np.testing.assert_array_equal(d[...], model)
    with h5py.File(path, "r+") as file:
        np.testing.assert_array_equal(file["x"][...], model)
        file["x"][...] = model + 1
        np.testing.assert_array_equal(chunkwise.wrap(file["x"])[...], model + 1)


@pytest.mark.parametrize("filters", [("lzf",), ("shuffle", "lzf"), ("lzf", "fletcher32")])
@pytest.mark.parametrize("shape", [(10, 7), (3, 2)])
def test_what_is_whole_after_a_resize_is_not_lost(
    tmp_path: Path, filters: tuple[str, ...], shape: tuple[int, int]
) -> None:
    """LZF makes noise no smaller: libhdf5 leaves it out, and keeps the length."""
    path = tmp_path / "x.h5"
    rng = np.random.default_rng(1)
    model = rng.integers(0, 256, shape, "u1")
    with h5py.File(path, "w", libver="latest") as file:
        with_plain_edges(file, shape, (None, None), (4, 4), model.dtype, filters)
        d = chunkwise.wrap(file["x"])
        d[...] = model
        d.resize((12, 8))
        model = np.pad(model, [(0, 12 - shape[0]), (0, 8 - shape[1])])
        np.testing.assert_array_equal(d[...], model)
        d[::2, 1:7] = 9
        model[::2, 1:7] = 9
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["x"][...], model)
        np.testing.assert_array_equal(chunkwise.wrap(file["x"])[...], model)


def test_a_resize_that_is_refused_leaves_chunks_as_they_are(tmp_path: Path) -> None:
    values = np.random.default_rng(2).integers(0, 256, 10, "u1")
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as file:
        with_plain_edges(file, (10,), (14,), (8,), values.dtype, ("lzf",))
        d = chunkwise.wrap(file["x"])
        d[...] = values
        with pytest.raises(UsageError, match="cannot be resized"):
            d.resize((20,))
        assert len(file["x"].id.read_direct_chunk((8,))[1]) == 8
        np.testing.assert_array_equal(d[...], values)
