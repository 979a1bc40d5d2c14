"""How does a sample of any size get into a file?

Slab by slab, each of whole chunks: threads generate and, where the filters are
shuffle and deflate alone, encode them; one thread writes, in order, so that the
file does not depend on the number of threads.  Other filters are libhdf5's.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TypeVar

import h5py
import numpy as np

from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline, Shape, ShapeWord, format_shape
from chunkwise.trials.environment import usable_cpus
from chunkwise_lab.sample.layout import Box, Layout, boxes, make_layout
from chunkwise_lab.sample.registry import find
from chunkwise_lab.sample.spec import Region, Sample, Values
from chunkwise_lab.sample.target import new_file

Progress = Callable[[int, int], None]
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Written:
    """What a call of `write` made."""

    sample: Sample
    layout: Layout
    nbytes: int  # Of all datasets as arrays, and as stored
    stored_nbytes: int

    @property
    def ratio(self) -> float:
        """Raw divided by stored bytes."""
        return self.nbytes / self.stored_nbytes


def write(
    name: str,  # One of `SAMPLES`
    path: str | os.PathLike[str],  # The file; it appears when it is complete, or not at all
    *,
    shape: Shape | None = None,  # Of each dataset, of the sample's rank; None for its own
    # None or ``"stored"`` for the sample's own (clipped to `shape`), ``"auto"`` for about 1 MiB,
    # ``"contiguous"`` for no chunks, and so no filters and no unlimited dimensions.
    chunk: Shape | ShapeWord | None = None,
    filters: Pipeline | str | None = None,  # None for the sample's own
    seed: int = 0,  # Chooses another dataset of the same kind, from 0 to 2**64 - 1
    resolution: str | None = None,  # Of `occam`, instead of `shape`: "1", "1/4" or "1/12"
    dtype: str | None = None,  # As NumPy writes it, such as ``>i4``; None for the sample's own
    force: bool = False,  # Whether a file that exists is replaced
    # Called with the bytes done and all bytes, after each slab.
    progress: Progress | None = None,
) -> Written:
    """Write a sample to a new HDF5 file."""
    sample = find(name)
    sample = replace(sample, dtype=dtype or sample.dtype)
    pipeline = Pipeline.parse(filters) if isinstance(filters, str) else filters
    layout = make_layout(sample, shape, chunk, pipeline, resolution)
    if not 0 <= seed < 2**64:
        raise UsageError(f"seed {seed}: must be from 0 to 2**64 - 1")
    nbytes = prod(layout.shape) * np.dtype(sample.dtype).itemsize * len(sample.datasets)
    done = stored = 0
    with new_file(path, overwrite=force) as file:
        file.attrs["sample"], file.attrs["seed"] = sample.name, np.uint64(seed)
        datasets = [_create(file, dataset, sample, layout) for dataset in sample.datasets]
        for variable, dataset in enumerate(datasets):
            with contextlib.closing(_fill(dataset, sample, layout, seed, variable)) as slabs:
                for slab_nbytes in slabs:
                    done += slab_nbytes
                    if progress is not None:
                        progress(done, nbytes)
            stored += dataset.id.get_storage_size()
    return Written(sample, layout, nbytes, stored)


def write_elements(
    name: str,
    path: str | os.PathLike[str],
    *,
    dataset: str | None = None,  # One of the sample's; None for the first
    shape: Shape | None = None,
    seed: int = 0,
    resolution: str | None = None,
) -> None:
    """Write all elements of one dataset of a sample to a plain file, in C order.

    They follow from each element's place alone: what a dataset holds is known without reading it.
    """
    sample = find(name)
    layout = make_layout(sample, shape, "contiguous", None, resolution)
    variable = 0 if dataset is None else sample.datasets.index(dataset)
    with Path(path).open("wb") as stream:
        for start, count in layout.slabs():
            values = sample.values(Region(start, count, layout.shape, seed, variable))
            stream.write(np.broadcast_to(values, count).astype(sample.dtype, order="C").data)


def _create(file: h5py.File, name: str, sample: Sample, layout: Layout) -> h5py.Dataset:
    """Make an empty dataset, with the groups that lead to it."""
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_obj_track_times(False)  # the same sample is the same file, whenever made
    dtype = np.dtype(sample.dtype)
    if layout.chunk is not None:
        dcpl.set_chunk(layout.chunk)
        layout.pipeline.apply(dcpl)
    if sample.fill is not None:
        dcpl.set_fill_value(np.array(sample.fill, dtype))
    unlimited = sample.unlimited and layout.chunk is not None
    largest = (h5py.h5s.UNLIMITED,) * len(layout.shape) if unlimited else layout.shape
    space = h5py.h5s.create_simple(layout.shape, largest)
    lcpl = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    lcpl.set_create_intermediate_group(True)
    try:
        made = h5py.h5d.create(
            file.id, name.encode(), h5py.h5t.py_create(dtype), space, dcpl, lcpl
        )
    except (ValueError, RuntimeError) as wrong:
        stored = "contiguous" if layout.chunk is None else f"chunk {format_shape(layout.chunk)}"
        raise UsageError(
            f"HDF5 cannot store {sample.dtype} with {stored}, filters {layout.pipeline}: {wrong}"
        ) from wrong
    dataset = h5py.Dataset(made)
    dataset.attrs.update(sample.attributes)
    return dataset


def _fill(
    dataset: h5py.Dataset, sample: Sample, layout: Layout, seed: int, variable: int
) -> Generator[int]:
    """Generate and write a dataset; after each slab give its number of raw bytes."""

    def generate(box: Box) -> tuple[Box, Values]:
        start, count = box
        values = sample.values(Region(start, count, layout.shape, seed, variable))
        return box, np.broadcast_to(values, count).astype(sample.dtype, order="C")

    def encode(box: Box) -> tuple[int, list[tuple[tuple[int, ...], bytes]]]:
        (start, count), values = generate(box)
        assert layout.chunk is not None
        encoded = []
        for corner, size in boxes(start, count, layout.chunk):
            inside = tuple(
                slice(at - first, at - first + length)
                for at, first, length in zip(corner, start, size, strict=True)
            )
            whole = _pad(values[inside], layout.chunk, dataset.fillvalue)
            encoded.append((corner, _encode(whole, layout.pipeline)))
        return values.nbytes, encoded

    if _encodable(layout):
        for nbytes, chunks in _in_order(encode, layout.slabs()):
            for corner, stored in chunks:
                # Some versions of h5py take no lock for it, and the threads use h5py, too.
                with h5py._objects.phil:
                    dataset.id.write_direct_chunk(corner, stored)
            yield nbytes
    else:
        for (start, count), values in _in_order(generate, layout.slabs()):
            file_space = h5py.h5s.create_simple(layout.shape)
            file_space.select_hyperslab(start, count)
            memory_space = h5py.h5s.create_simple(count)
            dataset.id.write(memory_space, file_space, values)
            yield values.nbytes


def _encodable(layout: Layout) -> bool:
    """Whether chunks can be encoded here: with at most one shuffle and one deflate."""
    names = [one.name for one in layout.pipeline.filters]
    return (
        layout.chunk is not None
        and set(names) <= {"shuffle", "deflate"}
        and len(names) == len(set(names))
    )


def _pad(values: Values, chunk: tuple[int, ...], fill: object) -> Values:
    """Complete a chunk that reaches over the array's edge with the fill value, as libhdf5 does."""
    if values.shape == chunk:
        return np.ascontiguousarray(values)
    whole = np.full(chunk, fill, dtype=values.dtype)
    whole[tuple(slice(length) for length in values.shape)] = values
    return whole


def _encode(values: Values, pipeline: Pipeline) -> bytes:
    """Apply shuffle and deflate as libhdf5 does (H5Zshuffle.c, H5Zdeflate.c)."""
    encoded = values.tobytes()
    for one in pipeline.filters:
        if one.name == "shuffle":
            columns = np.frombuffer(encoded, np.uint8)
            # Byte 0 of all elements, then byte 1 of all: only whole elements come this
            # way, unless deflate was before, whose rest stays where it is.
            size = values.dtype.itemsize
            whole = columns.size // size * size
            encoded = columns[:whole].reshape(-1, size).T.tobytes() + encoded[whole:]
        else:
            encoded = zlib.compress(encoded, int(one.options[0]))
    return encoded


def _in_order(work: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
    """Do the work on threads, give the results in order, and run only a little ahead."""
    threads = _thread_count()
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[_Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _thread_count() -> int:
    """CPUs that this process may use, at most 8."""
    return min(8, usable_cpus())
