"""How does a sample of any size get into a file?  Slab by slab, each of whole chunks, in order."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import prod
from operator import add
from pathlib import Path
from typing import TypeVar

import h5py
import numpy as np

from chunkwise import _native
from chunkwise.errors import CannotWriteError, ChunkwiseError, UsageError
from chunkwise.grammar import Pipeline, Shape, ShapeWord, format_shape
from chunkwise.model.chunk_shape import default_chunk
from chunkwise.names import system_reason
from chunkwise.newfile.claim import claimed
from chunkwise.newfile.publish import publish
from chunkwise.newfile.target import NewFile
from chunkwise.trials.environment import usable_cpus
from chunkwise.words import counted
from chunkwise_lab.sample.datasets import find
from chunkwise_lab.sample.spec import Region, Sample, Values

_SLAB_ELEMENTS = 2**19  # of 8 bytes while they are made, and a few arrays of them a thread

Box = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Layout:
    """What the user wants, made definite."""

    shape: tuple[int, ...]  # In elements
    chunk: tuple[int, ...] | None  # In elements; None for contiguous storage
    pipeline: Pipeline  # The filters

    def slabs(self) -> Iterator[Box]:
        """Give the boxes, (start, count), in which the array is written, in C order."""
        block = list(self.chunk or (1,) * len(self.shape))
        for axis in reversed(range(len(block))):
            needed = -(-self.shape[axis] // block[axis])
            times = max(1, min(needed, _SLAB_ELEMENTS // prod(block)))
            block[axis] *= times
            if times < needed:
                break
        return _boxes(self.shape, block)


def _boxes(shape: Sequence[int], block: Sequence[int]) -> Iterator[Box]:
    """Divide an array into blocks, in C order, the last ones clipped."""
    walk = _native.Walk(shape, block)
    for number in range(walk.operations):
        start, _, _, count = walk[number]
        yield tuple(start), tuple(count)


def make_layout(
    sample: Sample,
    shape: Shape | None,
    chunk: Shape | ShapeWord | None,
    pipeline: Pipeline | None,
    resolution: str | None,
) -> Layout:
    """Combine a sample's defaults with what the user chose (None: nothing)."""
    if resolution is not None:
        if resolution not in sample.resolutions:
            known = f"has {', '.join(sample.resolutions)}" if sample.resolutions else "has none"
            raise UsageError(f"resolution {resolution!r}: {sample.name} {known}")
        if shape is not None:
            raise UsageError("give a shape or a resolution, not both")
        shape = sample.resolutions[resolution]
    shape = sample.shape if shape is None else shape
    if len(shape) != len(sample.shape) and not (sample.any_rank and shape):
        raise UsageError(
            f"shape {format_shape(shape)}: {sample.name} has "
            f"{counted(len(sample.shape), 'dimension')}, "
            f"as in {format_shape(sample.shape)}"
        )
    if prod(shape) >= 2**63:
        raise UsageError(f"shape {format_shape(shape)} is larger than a file can hold")
    stored = _make_chunk(sample, shape, chunk)
    if stored is None:
        if pipeline is not None and pipeline.filters:
            raise UsageError(f"filters {pipeline} need chunks, and contiguous data has none")
        return Layout(shape, None, Pipeline())
    if pipeline is None:
        pipeline = Pipeline.parse(sample.filters)
    _check_scaleoffset(sample, pipeline)
    return Layout(shape, stored, pipeline)


def _check_scaleoffset(sample: Sample, pipeline: Pipeline) -> None:
    """Refuse a scale type of the wrong kind: libhdf5 would leave all chunks as they are."""
    fitting = "ds" if np.dtype(sample.dtype).kind == "f" else "in"
    for one in pipeline.filters:
        if one.name == "scaleoffset" and one.options[0] != fitting:
            raise UsageError(
                f"filter {one} does not work on {sample.dtype}: write scaleoffset:{fitting}:..."
            )


def _make_chunk(
    sample: Sample, shape: Shape, chunk: Shape | ShapeWord | None
) -> tuple[int, ...] | None:
    """The chunk's shape, or None for contiguous storage."""
    if chunk == "contiguous":
        return None
    same_rank = len(shape) == len(sample.shape)
    if chunk == "auto" or (chunk in (None, "stored") and not same_rank):
        return default_chunk(shape, np.dtype(sample.dtype).itemsize)
    if chunk is None or chunk == "stored":
        return tuple(min(pair) for pair in zip(sample.chunk, shape, strict=True))
    assert not isinstance(chunk, str)
    if len(chunk) != len(shape):
        raise UsageError(
            f"chunk {format_shape(chunk)} and shape {format_shape(shape)} differ in dimensions"
        )
    if not sample.unlimited and any(c > s for c, s in zip(chunk, shape, strict=True)):
        raise UsageError(
            f"chunk {format_shape(chunk)} is larger than the shape {format_shape(shape)}"
        )
    return chunk


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str], *, overwrite: bool) -> Iterator[h5py.File]:
    """Make an HDF5 file that appears at `path` when the block ends without error."""
    try:
        place = NewFile.at(path, overwrite=overwrite, remedy="--force, or force=True,")
        with claimed(place, resume=False) as claim:
            os.close(claim.make_partial())
            # No chunk cache: a chunk that cannot be written fails at once, not at closing.
            file = h5py.File(claim.partial, "w", rdcc_nbytes=0)
            try:
                yield file
            except BaseException:
                # Closing fails on a full disk, too: the first error counts.
                with contextlib.suppress(OSError, RuntimeError):
                    file.close()
                raise
            try:
                file.close()
            except RuntimeError as wrong:
                raise OSError(str(wrong)) from wrong
            publish(claim)
    except OSError as wrong:
        if isinstance(wrong, ChunkwiseError):
            raise
        raise CannotWriteError(
            f"{os.fspath(path)}: cannot be written: {system_reason(wrong) or wrong}"
        ) from wrong


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
    # The sample's own (None, ``stored``), ``auto`` (about 1 MiB), or ``contiguous``.
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
    """Write all elements of one dataset of a sample to a plain file, in C order."""
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
        for first, size in _boxes(count, layout.chunk):
            inside = tuple(slice(at, at + n) for at, n in zip(first, size, strict=True))
            whole = _pad(values[inside], layout.chunk, dataset.fillvalue)
            corner = tuple(map(add, start, first))
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
            # Byte 0 of all elements, then byte 1: whole elements, unless deflate was before.
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
