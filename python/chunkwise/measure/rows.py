"""How are elements read for variants, and which chunk is damaged if that fails?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise.errors import ChunkwiseError, CorruptDataError
from chunkwise.files.objects import HDF5_ERRORS, hdf5_reason
from chunkwise.measure.target import Target


def read_rows(
    target: Target, dataset: h5py.Dataset, rows: list[int] | None, first: int, last: int
) -> npt.NDArray[Any]:
    """Read rows of the data, or of the sample of it."""
    wanted = np.arange(first, last) if rows is None else np.array(rows[first:last])
    slabs = np.split(wanted, np.flatnonzero(np.diff(wanted) != 1) + 1)
    spans = [(int(slab[0]), int(slab[-1]) + 1) for slab in slabs if len(slab)]
    try:
        read: list[npt.NDArray[Any]] = [dataset[begin:end] for begin, end in spans]
    except HDF5_ERRORS as error:
        if isinstance(error, ChunkwiseError):
            raise
        raise _damaged(target, dataset, spans, hdf5_reason(error)) from None
    if not read:
        read = [dataset[:0]]
    return read[0] if len(read) == 1 else np.concatenate(read)


def _damaged(
    target: Target, dataset: h5py.Dataset, spans: list[tuple[int, int]], reason: str
) -> CorruptDataError:
    """Name the first chunk of some rows that cannot be read: an element of each is tried."""
    remedy = "get the file again or restore it, or name another dataset"
    for origin in _origins(dataset, spans):
        try:
            dataset[origin]
        except HDF5_ERRORS as error:
            return CorruptDataError(
                f"{target.where}: the chunk at element {list(origin)} cannot be read: "
                f"{hdf5_reason(error)}; {remedy}"
            )
    return CorruptDataError(f"{target.where}: cannot be read: {reason}; {remedy}")


def _origins(dataset: h5py.Dataset, spans: list[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """Give the first element of each chunk that some rows touch; nothing without chunks."""
    if dataset.chunks is None:
        return
    length, *others = dataset.chunks
    _, *extents = dataset.shape
    across = [range(0, n, c) for n, c in zip(extents, others, strict=True)]
    for begin, end in spans:
        yield from product(range(begin // length * length, end, length), *across)
