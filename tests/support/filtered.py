"""Datasets behind any filters, for tests that compare with libhdf5's filters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import hdf5plugin
import numpy as np
from h5py import h5d, h5p, h5s, h5t

import chunkwise
from tests.support.native import leave_partial_chunks_unfiltered, undefine_fill
from tests.support.reading import assert_reads_like_h5py, same

# Filters that add to their options what they find out about the dataset.
OWN_OPTIONS = {2, 4, 5, 6, 32000, 32001, 32008, 32026}
DTYPES = ["i1", "<u2", ">i4", "<u8", "<f4", ">f8", "<c16", "S3", "V5", "?"]
SHAPES = [((37,), (10,)), ((13, 22), (5, 7)), ((5, 9, 11), (2, 9, 4)), ((3000,), (1100,))]


@dataclass(frozen=True)
class Case:
    """A filter with options: HDF5's number, and cd_values as for ``H5Pset_filter``."""

    number: int
    cd_values: tuple[int, ...] = ()


# HDF5's own.
PLAIN: dict[str, Case] = {
    "deflate": Case(h5py.h5z.FILTER_DEFLATE, (1,)),
    "shuffle": Case(h5py.h5z.FILTER_SHUFFLE),
    "fletcher32": Case(h5py.h5z.FILTER_FLETCHER32),
    "lzf": Case(h5py.h5z.FILTER_LZF),
}


def with_plain_edges(
    file: h5py.File,
    shape: tuple[int, ...],
    maxshape: tuple[int | None, ...],
    chunk: tuple[int, ...],
    dtype: Any,
    filters: Sequence[str],
) -> h5py.Dataset:
    """A dataset ``x`` whose partial chunks are stored without filters."""
    cases = [PLAIN[name] for name in filters]
    return create(file, "x", dtype, shape, chunk, cases, maxshape, unfiltered_edges=True)


def of_plugin(options: Any) -> Case:
    found = dict(options)
    return Case(found["compression"], tuple(found["compression_opts"]))


def bloscs() -> Iterator[tuple[str, Case]]:
    for codec in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for shuffle in (0, 1, 2):
            level = 1 + 4 * shuffle
            options = hdf5plugin.Blosc(cname=codec, clevel=level, shuffle=shuffle)
            yield f"blosc {codec} {shuffle}", of_plugin(options)
    yield "blosc stored", of_plugin(hdf5plugin.Blosc(clevel=0))


def bitshuffles() -> Iterator[tuple[str, Case]]:
    for codec in ("none", "lz4", "zstd"):
        for block in (0, 16, 1024):
            options = hdf5plugin.Bitshuffle(nelems=block, cname=codec)
            yield f"bitshuffle {codec} {block}", of_plugin(options)


def blosc2s() -> Iterator[tuple[str, Case]]:
    for codec in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for filters in (0, 1, 2, 3):
            options = hdf5plugin.Blosc2(cname=codec, clevel=1 + 2 * filters, filters=filters)
            yield f"blosc2 {codec} {filters}", of_plugin(options)
    yield "blosc2 stored", of_plugin(hdf5plugin.Blosc2(clevel=0))


# Over any bytes, and so in any place of a pipeline.
CASES: dict[str, Case] = {
    **{f"zstd {level}": of_plugin(hdf5plugin.Zstd(level)) for level in (-5, 1, 3, 19)},
    "lz4": of_plugin(hdf5plugin.LZ4()),
    "lz4 in blocks": of_plugin(hdf5plugin.LZ4(nbytes=1000)),
    "lzf": Case(h5py.h5z.FILTER_LZF),
    "bzip2 1": of_plugin(hdf5plugin.BZip2(1)),
    "bzip2 9": of_plugin(hdf5plugin.BZip2(9)),
    **dict(bitshuffles()),
    **dict(bloscs()),
}
# Over elements, and so first in a pipeline.
SZIPS = {
    f"szip {name} {pixels}": Case(h5py.h5z.FILTER_SZIP, (mask, pixels))
    for name, mask in (("ec", 4), ("nn", 32))
    for pixels in (4, 8, 10, 32)
}
# Over a chunk's bytes, no more and no fewer: boxes of an array.
BLOSC2S = dict(blosc2s())
INTEGERS = ["i1", "u1", "<i2", ">i2", "<u2", ">u4", "<i4", ">i8", "<u8", "<i8"]
FLOATS = ["<f4", ">f4", "<f8", ">f8"]
KINDS = ["constant", "few", "smooth", "random"]


def values(dtype: Any, shape: tuple[int, ...], kind: str, seed: int = 0) -> Any:
    """Elements that compress well, or not at all: then chunks get longer."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    if dtype.kind == "b":
        return rng.integers(0, 1 if kind == "constant" else 2, shape).astype(dtype)
    if kind == "smooth" and dtype.kind in "iuf":
        return (np.cumsum(rng.integers(0, 3, count)) % 120).astype(dtype).reshape(shape)
    low, high = {"constant": (7, 8), "few": (1, 4), "smooth": (1, 4), "random": (1, 256)}[kind]
    raw = rng.integers(low, high, count * dtype.itemsize, dtype="u1")
    return np.frombuffer(raw.tobytes(), dtype.base).reshape(shape + dtype.shape)


def create(
    file: h5py.File,
    name: str,
    dtype: Any,
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    filters: Sequence[Case],
    maxshape: tuple[int | None, ...] | None = None,
    unfiltered_edges: bool = False,
    **more: Any,
) -> h5py.Dataset:
    """A dataset with any filters in any order, which `create_dataset` does not allow."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(chunk)
    if unfiltered_edges:
        leave_partial_chunks_unfiltered(dcpl)
    if more.get("fill") == "undefined":
        undefine_fill(dcpl, h5t.NATIVE_INT32)
    elif "fill" in more:
        dcpl.set_fill_value(np.array(more["fill"], dtype))
    for case in filters:
        dcpl.set_filter(case.number, h5py.h5z.FLAG_OPTIONAL, case.cd_values)
    space = h5s.create_simple(
        shape, maxshape and tuple(h5s.UNLIMITED if n is None else n for n in maxshape)
    )
    kind = h5t.py_create(np.dtype(dtype), logical=True)
    return h5py.Dataset(h5d.create(file.id, name.encode(), kind, space, dcpl))


def assert_native(theirs: h5py.Dataset, times: int = 4) -> None:
    """The engine reads it, whole and in parts, as h5py does."""
    ours = chunkwise.wrap(theirs)
    plan = ours.explain()
    assert plan["path"] == "chunked", plan["reason"]
    assert same(ours[...], theirs[...]), theirs.name
    assert_reads_like_h5py(theirs, times)
