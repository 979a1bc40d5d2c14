"""Does an index of xarray's read the same by the engine as of the array in memory?"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
pytest.importorskip("xarray", reason="xarray is not installed")

import h5netcdf
import h5py
import xarray as xr

import chunkwise
from chunkwise.routing.reading import counts
from chunkwise.xarray import reading

SHAPE = (7, 9, 6, 11)
DIMS = "abcd"
VALUES = np.random.default_rng(3).integers(-(2**15), 2**15, SHAPE, dtype="i2")


# What a variable holds that was written in part: fill values behind that.
WRITTEN = (5, 9, 6, 8)
PADDED = np.full(SHAPE, -7, "i2")
PADDED[:5, :, :, :8] = VALUES[:5, :, :, :8]


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[xr.DataArray]:
    path = tmp_path_factory.mktemp("indexing") / "short.nc"
    sizes = dict(zip(DIMS, SHAPE, strict=True))
    with h5netcdf.File(path, "w") as f:
        f.dimensions = {dim: None if dim in "ad" else sizes[dim] for dim in DIMS}
        f.resize_dimension("a", sizes["a"])
        f.resize_dimension("d", sizes["d"])
        f.create_variable("v", tuple(DIMS), "i2", fillvalue=-7, chunks=(2, 4, 3, 5))
    with h5py.File(path, "r+") as f:
        f["v"].resize(WRITTEN)
        f["v"][...] = VALUES[:5, :, :, :8]
    with xr.open_dataset(path, engine="chunkwise", cache=False, mask_and_scale=False) as opened:
        assert opened["v"].shape == SHAPE
        yield opened["v"]


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


# Which xarray's own engines cannot read: nothing, backwards.
@example(first={}, second=slice(0, 0, -1), at_a_time=1)
@given(first=indexers(), second=_entry(3), at_a_time=st.sampled_from([1, 7, 1 << 20]))
def test_all_kinds_of_indices(
    lazy: xr.DataArray, first: dict[str, Any], second: Any, at_a_time: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_AT_A_TIME", at_a_time)
        compare(lazy, VALUES, first, second)


@example(first={"b": slice(0, 0, -1), "a": xr.DataArray([0, -1], dims="p")}, second=0)
@given(first=indexers(), second=_entry(3))
def test_a_variable_shorter_than_its_dimensions(
    short: xr.DataArray, first: dict[str, Any], second: Any
) -> None:
    compare(short, PADDED, first, second)


def compare(lazy: xr.DataArray, values: Any, first: dict[str, Any], second: Any) -> None:
    held = xr.DataArray(values, dims=tuple(DIMS))
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
