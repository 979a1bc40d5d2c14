"""Does an index of xarray's read the same by the engine as of the array in memory?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
pytest.importorskip("xarray", reason="xarray is not installed")

import xarray as xr

import chunkwise
from chunkwise.routing.reading import counts
from chunkwise.xarray import reading

SHAPE = (7, 9, 6, 11)
DIMS = "abcd"
VALUES = np.random.default_rng(3).integers(-(2**15), 2**15, SHAPE, dtype="i2")


@pytest.fixture(scope="module")
def lazy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[xr.DataArray]:
    path = tmp_path_factory.mktemp("indexing") / "values.nc"
    held = xr.Dataset({"v": (tuple(DIMS), VALUES)})
    encoding = {"v": {"zlib": True, "chunksizes": (2, 4, 3, 5)}}
    held.to_netcdf(path, engine="h5netcdf", encoding=encoding)
    # Without a cache of xarray's, each index is read.
    with xr.open_dataset(path, engine="chunkwise", cache=False) as opened:
        yield opened["v"]


def _places(size: int, least: int = 0) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(-size, size - 1), min_size=least, max_size=8)


def _entry(size: int) -> st.SearchStrategy[Any]:
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = st.none() | st.integers(-4, 4).filter(bool)
    return (
        st.integers(-size, size - 1)
        | st.builds(slice, bound, bound, step)
        | _places(size).map(lambda found: np.array(found, "i8"))
    )


@st.composite
def indexers(draw: st.DrawFn) -> dict[str, Any]:
    """Some dimensions each with each, others pair by pair along one or two new ones."""
    entries: dict[str, Any] = {}
    dims = draw(st.lists(st.sampled_from(DIMS), unique=True))
    paired = draw(st.lists(st.sampled_from(DIMS), unique=True, max_size=4))
    shape = draw(st.tuples(st.integers(0, 4)) | st.tuples(st.integers(1, 3), st.integers(1, 3)))
    for dim in dims:
        entries[dim] = draw(_entry(SHAPE[DIMS.index(dim)]))
    for dim in paired:
        size = SHAPE[DIMS.index(dim)]
        count = int(np.prod(shape))
        found = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
        names = ("p", "q")[: len(shape)]
        entries[dim] = xr.DataArray(np.array(found, "i8").reshape(shape), dims=names)
    return entries


@given(first=indexers(), second=_entry(3), at_a_time=st.sampled_from([1, 7, 1 << 20]))
def test_all_kinds_of_indices(
    lazy: xr.DataArray, first: dict[str, Any], second: Any, at_a_time: int
) -> None:
    held = xr.DataArray(VALUES, dims=tuple(DIMS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_AT_A_TIME", at_a_time)
        expected, found = held.isel(first), lazy.isel(first)
        np.testing.assert_array_equal(found.values, expected.values, strict=True)
        assert found.dims == expected.dims
        # An index of an index, of which nothing was read yet.
        if expected.ndim and expected.shape[0] >= 3:
            again = {expected.dims[0]: second}
            expected, found = expected.isel(again), lazy.isel(first).isel(again)
            np.testing.assert_array_equal(found.values, expected.values, strict=True)


def test_points_decode_their_own_chunks_only(lazy: xr.DataArray) -> None:
    # Far apart in two dimensions: the product of both would touch four times as many chunks.
    points = {"a": [0, 6], "d": [0, 10]}
    along = {dim: xr.DataArray(found, dims="p") for dim, found in points.items()}
    chunkwise.cache_clear()
    before, reads = chunkwise.cache_stats()["decoded"], counts.engine
    found = lazy.isel(along)
    assert found.shape == (2, 9, 6)
    np.testing.assert_array_equal(found.values, VALUES[points["a"], :, :, points["d"]])
    # Three by two chunks along the dimensions between, for each of two points.
    assert chunkwise.cache_stats()["decoded"] - before == 12
    assert counts.engine - reads == 1


def test_lists_are_one_read(lazy: xr.DataArray) -> None:
    before = counts.engine
    found = lazy.isel(a=[5, 0, 0], c=[2, 1], d=slice(None, None, -3)).values
    np.testing.assert_array_equal(found, VALUES[[5, 0, 0]][:, :, [2, 1], ::-3])
    assert counts.engine - before == 1


def test_a_variable_shorter_than_its_dimension(tmp_path: Path) -> None:
    import h5netcdf

    path = tmp_path / "short.nc"
    with h5netcdf.File(path, "w") as f:
        f.dimensions["t"] = None
        f.resize_dimension("t", 5)
        f.create_variable("long", ("t",), "i4", chunks=(2,))[...] = np.arange(5)
        f.create_variable("short", ("t",), "i4", fillvalue=-7, chunks=(2,))
    import h5py

    with h5py.File(path, "r+") as f:
        f["short"].resize((3,))
        f["short"][...] = 1
    with xr.open_dataset(path, engine="chunkwise", mask_and_scale=False) as opened:
        assert opened["short"].values.tolist() == [1, 1, 1, -7, -7]
        assert opened["short"].isel(t=[0, 4]).values.tolist() == [1, -7]
        assert opened["long"].values.tolist() == [0, 1, 2, 3, 4]
