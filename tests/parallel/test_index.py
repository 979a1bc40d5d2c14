"""Is a file whose chunks are written beside libhdf5 the file that libhdf5 would have written?"""

import os
import subprocess
from pathlib import Path
from typing import Any

import h5py
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import chunkwise
from chunkwise import _native
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.grammar import Pipeline
from chunkwise.mpi.encoding import Likeness, image_of
from chunkwise.newfile.index import FileIndex
from tests.support.tools import require_tool

FILTERS = ["none", "deflate:1", "shuffle+deflate:1", "lzf", "szip:nn:8", "deflate:1+fletcher32"]


class _Open:
    """A file that is written in two steps."""

    def __init__(self, path: Path, libver: str = "earliest") -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        newest = h5py.h5f.LIBVER_LATEST
        fapl.set_libver_bounds(newest if libver == "latest" else h5py.h5f.LIBVER_EARLIEST, newest)
        self.index = FileIndex(self.descriptor, str(path), fapl=fapl)

    def make(self, name: str, shape: Any, dtype: Any, filters: str, **more: Any) -> Any:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk(more["chunks"])
        Pipeline.parse(filters).apply(dcpl)
        return self.index.file.create_dataset(name, shape, dtype, dcpl=dcpl, **more)

    def writer(self, made: h5py.Dataset) -> tuple[Likeness, _native.Writer]:
        like = Likeness(image_of(made.id), str(self.path))
        return like, like.writer((self.index.places(made.id), self.descriptor))

    def close(self) -> None:
        self.index.close()
        os.close(self.descriptor)


def _select(shape: tuple[int, ...], *box: slice) -> _native.Selection:
    return chunkwise.hyperslab(
        [one.start for one in box], [one.stop - one.start for one in box]
    ).resolve(shape, "d")


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_is_written_in_two_steps_is_what_libhdf5_reads(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("two") / "a.h5"
    shape = tuple(data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3)))
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    filters = data.draw(st.sampled_from(FILTERS))
    if filters.startswith("szip") and np.prod(chunks) < 32:
        filters = "none"
    opened = _Open(path, data.draw(st.sampled_from(["earliest", "latest"])))
    maxshape = tuple(data.draw(st.sampled_from([None, n])) for n in shape)
    made = opened.make("d", shape, "<i4", filters, chunks=chunks, maxshape=maxshape)
    opened.index.file.attrs["title"] = "beside"
    like, writer = opened.writer(made)
    expected = np.zeros(shape, "<i4")
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    for _ in range(data.draw(st.integers(1, 6))):
        begin = [data.draw(st.integers(0, n - 1)) for n in shape]
        box = tuple(
            slice(b, data.draw(st.integers(b + 1, n))) for b, n in zip(begin, shape, strict=True)
        )
        values = rng.integers(0, data.draw(st.sampled_from([2, 2**31])), expected[box].shape)
        expected[box] = values
        writer.write(_select(shape, *box), expected[box].copy())
        if data.draw(st.booleans()):
            writer.flush()
    writer.flush()
    like.close()
    opened.close()
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["d"][...], expected)
        assert file.attrs["title"] == "beside"
    with chunkwise.open(path) as file:
        np.testing.assert_array_equal(file["d"][...], expected)


def test_other_tools_see_no_difference(tmp_path: Path) -> None:
    values = np.arange(60_000, dtype=">f8").reshape(60, 1000)
    plain, beside = tmp_path / "plain.h5", tmp_path / "beside.h5"
    with chunkwise.open(plain, "w") as file:
        file.create_dataset("g/d", data=values, chunks=(7, 90), filters="shuffle+deflate:1")
    opened = _Open(beside)
    made = opened.make("g/d", values.shape, values.dtype, "shuffle+deflate:1", chunks=(7, 90))
    like, writer = opened.writer(made)
    writer.write(_select(values.shape, slice(0, 60), slice(0, 1000)), values)
    writer.flush()
    like.close()
    opened.close()
    subprocess.run([require_tool("h5diff"), plain, beside], check=True, timeout=60)
    with h5py.File(plain) as one, h5py.File(beside) as other:
        stored = [f["g/d"].id.get_storage_size() for f in (one, other)]
        assert stored[0] == stored[1]
    assert abs(plain.stat().st_size - beside.stat().st_size) < 4096


def test_chunks_that_are_kept_are_written_later(tmp_path: Path) -> None:
    path = tmp_path / "kept.h5"
    values = np.arange(1000, dtype="i2").reshape(10, 100)
    opened = _Open(path)
    made = opened.make("d", values.shape, values.dtype, "deflate:1", chunks=(4, 30))
    like = Likeness(image_of(made.id), "kept")
    kept = _native.KeptChunks()
    writer = like.writer(kept)
    writer.write(_select(values.shape, slice(0, 10), slice(0, 100)), values)
    writer.flush()
    like.close()
    table, chunks = kept.take()
    assert table.shape == (12, 4)
    assert list(table[:, 2]) == [len(one) for one in chunks]
    assert kept.take()[0].shape[0] == 0
    places = opened.index.places(made.id)
    assert not places.find(table[:, :2]).any()
    for chunk, address in zip(chunks, places.allocate(table), strict=True):
        os.pwrite(opened.descriptor, chunk, int(address))
    assert (places.find(table[:, :2])[:, 1] == table[:, 2]).all()
    opened.close()
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["d"][...], values)


def test_a_chunk_of_equal_size_and_another_mask_takes_the_mask(tmp_path: Path) -> None:
    path = tmp_path / "mask.h5"
    opened = _Open(path)
    made = opened.make("d", (4, 8), "u1", "shuffle+deflate:1", chunks=(4, 8))
    places = opened.index.places(made.id)
    for mask in (0, 2, 3):
        (address,) = places.allocate(np.array([[0, 0, 32, mask]], np.uint64))
        os.pwrite(opened.descriptor, bytes(range(32)), int(address))
        assert places.find(np.array([[0, 0]], np.uint64))[0, 2] == mask
    opened.close()
    with h5py.File(path) as file:
        assert file["d"].id.get_chunk_info(0).filter_mask == 3
        assert bytes(file["d"][...].ravel()) == bytes(range(32))


def test_what_cannot_be_placed_is_said(tmp_path: Path) -> None:
    opened = _Open(tmp_path / "a.h5")
    made = opened.make("d", (4,), "u1", "none", chunks=(2,))
    places = opened.index.places(made.id)
    with pytest.raises(CannotWriteError, match=r"'/d'.*element \[6\]"):
        places.allocate(np.array([[6, 2, 0]], np.uint64))
    flat = opened.index.file.create_dataset("flat", data=[1, 2])
    with pytest.raises(UsageError, match="has no chunks"):
        opened.index.places(flat.id)
    full = opened.index.file.create_dataset("full", data=[1, 2], chunks=(1,))
    with pytest.raises(UsageError, match="has chunks already"):
        opened.index.places(full.id)
    opened.close()


@pytest.mark.parametrize(
    "filters", ["lz4", "bitshuffle", "blosc:zstd:5", "zstd:3", "nbit", "scaleoffset:in:0"]
)
def test_a_likeness_has_the_very_filters(tmp_path: Path, filters: str) -> None:
    pytest.importorskip("hdf5plugin")
    opened = _Open(tmp_path / "a.h5")
    made = opened.make("d", (40, 50), "i4", filters, chunks=(20, 25), maxshape=(None, 50))
    made.attrs["many"] = np.arange(100)
    like = Likeness(image_of(made.id), "d")
    mine, theirs = (one.id.get_create_plist() for one in (like.dataset, made))
    stored = [[p.get_filter(i) for i in range(p.get_nfilters())] for p in (mine, theirs)]
    assert stored[0] == stored[1]
    assert (like.dataset.shape, like.dataset.maxshape) == (made.shape, made.maxshape)
    assert not list(like.dataset.attrs)
    like.close()
    opened.close()
