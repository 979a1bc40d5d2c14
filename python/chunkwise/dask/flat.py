"""How do workers write a dataset without chunks?

Its elements lie in the file one after another from one address on, so the beginning of each part
gives its place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5s, h5t

from chunkwise.errors import UsageError
from chunkwise.files import unwritten
from chunkwise.grammar.boxes import Box, runs
from chunkwise.newfile.index import Table


@dataclass(frozen=True)
class Flat:
    """What workers need of such a dataset: its shape, and the type of its elements."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class FlatPlaces:
    """Where its parts lie; `base` is the address of the first element."""

    form: Flat
    base: int

    def allocate(self, runs: Table) -> Table:
        """Give runs their places; see `chunkwise.newfile.index.Places.allocate`."""
        steps = [math.prod(self.form.shape[axis + 1 :]) for axis in range(len(self.form.shape))]
        elements = runs[:, : len(steps)] @ np.asarray(steps, np.uint64)
        return np.uint64(self.base) + elements * np.uint64(self.form.dtype.itemsize)


def flat_places(dataset: h5py.Dataset) -> FlatPlaces:
    """Make room for a dataset in its file."""
    dcpl = dataset.id.get_create_plist()
    if dcpl.get_layout() != h5d.CONTIGUOUS or dcpl.get_external_count() or not dataset.ndim:
        raise UsageError("it has no chunks")
    dtype, stored = dataset.dtype, dataset.id.get_type()
    # Characters have the same bytes, however they end.
    if dtype.kind != "S" and h5t.py_create(dtype, logical=True) != stored:
        raise UsageError("it has no chunks, and its elements are converted")
    if dtype.itemsize != stored.get_size() or dtype.subdtype is not None:
        raise UsageError("it has no chunks, and its elements are converted")
    if dataset.id.get_offset() is None:
        # The first element that is written makes room for all.
        one = (1,) * dataset.ndim
        space = dataset.id.get_space()
        space.select_hyperslab((0,) * dataset.ndim, one)
        unwritten.keep(dataset)
        dataset.id.write(h5s.create_simple(one), space, np.zeros(one, dtype), stored)
    base = dataset.id.get_offset()
    if base is None:
        raise UsageError("it has no chunks, and libhdf5 does not tell where it lies")
    return FlatPlaces(Flat(dataset.shape, dtype), base)


def runs_of(block: Any, form: Flat, start: tuple[int, ...]) -> tuple[Table, tuple[bytes, ...]]:
    """Give the runs of elements of a block: where each begins, its bytes, and 0; and the bytes."""
    values = np.ascontiguousarray(block, form.dtype)
    box = Box(start, values.shape)
    parts = list(runs(box, form.shape))
    table = [(*part.start, part.size * values.itemsize, 0) for part in parts]
    content = tuple(values[part.within(box).slices].tobytes() for part in parts)
    return np.asarray(table, np.uint64), content
