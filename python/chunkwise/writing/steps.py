"""Which chunks have several assignments made whole, one step after another, and who encodes them?

libhdf5 gathers steps in its chunk cache.  The step that completes chunks has them read from there,
encoded on all threads and put into the file, before libhdf5 encodes them.  Nothing waits here.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, TypeAlias

import h5py
import numpy as np
from h5py import h5s

from chunkwise import _native
from chunkwise.routing.conversions import memory_type

Box: TypeAlias = tuple[tuple[int, int], ...]  # From where to where, a dimension each


class Steps:
    """The steps of a dataset since the last whole chunk, where each followed the one before."""

    def __init__(self) -> None:
        self._box: Box | None = None

    def with_next(self, box: Box) -> Box:
        """Give the box that a step makes up with those before it."""
        before = self._box
        if before is not None and before[1:] == box[1:] and before[0][1] == box[0][0]:
            box = ((before[0][0], box[0][1]), *box[1:])
        self._box = box
        return box

    def begin_at(self, row: int) -> None:
        """Leave out the steps before a row: their chunks are in the file."""
        assert self._box is not None, "there was a step"
        self._box = ((row, self._box[0][1]), *self._box[1:])


def touched_nbytes(box: Box, chunk: tuple[int, ...], itemsize: int) -> int:
    """Bytes of the chunks that a box touches, which a cache has to hold."""
    counts = (
        -(-end // side) - begin // side for (begin, end), side in zip(box, chunk, strict=True)
    )
    return math.prod(counts) * math.prod(chunk) * itemsize


def selected(shape: tuple[int, ...], box: Box) -> _native.Selection:
    """Select a box of elements."""
    ones = [1] * len(box)
    slab = [begin for begin, _ in box], ones, ones, [end - begin for begin, end in box]
    return _native.select_hyperslabs(shape, slab, "")


def encode(
    dataset: h5py.Dataset,
    native: _native.WholeChunks,
    dtype: np.dtype[Any],
    chunk: tuple[int, ...],
    part: Box,
) -> None:
    """Encode whole chunks as libhdf5 has them, and put them into the file; under h5py's lock."""
    counts = tuple(end - begin for begin, end in part)
    space = dataset.id.get_space()
    space.select_hyperslab(tuple(begin for begin, _ in part), counts)
    here = h5s.create_simple(counts)
    elements, in_memory = np.empty(counts, dtype), memory_type(dtype)
    dataset.id.read(here, space, elements, in_memory)
    try:
        _drop(dataset, chunk, part)
        native.write(dataset.id.id, selected(dataset.shape, part), False, elements)
    except BaseException:
        # The steps before this one are written, whatever becomes of it.
        dataset.id.write(here, space, elements, in_memory)
        raise


def _drop(dataset: h5py.Dataset, chunk: tuple[int, ...], part: Box) -> None:
    """Let libhdf5's cache forget chunks that it would encode to give their size."""
    # It drops what is replaced in the file.  A whole chunk may take that place later.
    origins = itertools.product(
        *(range(*ends, side) for ends, side in zip(part, chunk, strict=True))
    )
    for origin in origins:
        ends = (at + side for at, side in zip(origin, chunk, strict=True))
        if all(end <= length for end, length in zip(ends, dataset.shape, strict=True)):
            dataset.id.write_direct_chunk(origin, b"\0")
