"""How does libhdf5 resize a dataset whose chunks at the edge are stored without filters?

`H5Dset_extent` then filters chunks that leave the edge.  It fails if no chunk was ever written,
and loses chunks whose filter is left out.  This module prevents both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import h5py
from h5py import h5z

Shape = tuple[int, ...]

# These take any bytes, so that libhdf5 leaves them out of no chunk.
NEVER_LEFT_OUT = (h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32)


def may_leave_out(dataset: h5py.Dataset) -> bool:
    """Whether libhdf5 leaves filters of a chunked dataset out where they shrink nothing."""
    plist = dataset.id.get_create_plist()
    filters = (plist.get_filter(i)[0] for i in range(plist.get_nfilters()))
    return any(number not in NEVER_LEFT_OUT for number in filters)


def make_index(dataset: h5py.Dataset) -> None:
    """See that there is a chunk, and so an index of chunks."""
    # libhdf5 looks up the chunks that will be none at the edge any more.  Without an index, 1.10
    # crashes, and later ones leave a dataset that corrupts the heap when it is read (see
    # `tests/upstream/grow_unwritten.c`).
    if 0 not in dataset.shape and not dataset.id.get_storage_size():
        first = (0,) * len(dataset.shape)
        dataset[first] = dataset[first]


def lengthen(dataset: h5py.Dataset, new: Shape) -> list[Shape]:
    """Store chunks that a resize will filter one byte longer than they are."""
    # libhdf5 does not store that a filter was left out when a chunk keeps its length, and such a
    # chunk has the length of its elements before and after (see
    # `tests/upstream/edge_mask_lost.c`).  libhdf5 reads no byte beyond the elements.
    if not may_leave_out(dataset):
        return []
    dataset.id.flush()
    done = []
    for origin in _whole_after(dataset.shape, new, dataset.chunks):
        stored = _stored(dataset, origin)
        if stored is not None:
            dataset.id.write_direct_chunk(origin, stored[1] + b"\0", stored[0])
            done.append(origin)
    return done


def shorten(dataset: h5py.Dataset, origins: list[Shape]) -> None:
    """Undo `lengthen`, where the dataset was not resized."""
    for origin in origins:
        stored = _stored(dataset, origin)
        if stored is not None:
            dataset.id.write_direct_chunk(origin, stored[1][:-1], stored[0])


def _stored(dataset: h5py.Dataset, origin: Shape) -> tuple[int, bytes] | None:
    """Filter mask and stored bytes of a chunk; None for one that was never written."""
    try:
        mask, stored = dataset.id.read_direct_chunk(origin)
    except (OSError, RuntimeError, ValueError):
        return None
    return int(mask), bytes(stored)


def _whole_after(old: Shape, new: Shape, chunk: Shape) -> Iterator[Shape]:
    """Where chunks begin that reach beyond the old shape, and not beyond the new one."""
    counts = [-(-size // length) for size, length in zip(old, chunk, strict=True)]
    # Those that the new shape has whole.
    both = [min(n, size // length) for n, size, length in zip(counts, new, chunk, strict=True)]
    for axis, (size, length) in enumerate(zip(old, chunk, strict=True)):
        if size % length == 0 or both[axis] < counts[axis]:
            continue
        # The edge along this axis, without chunks at the edge along one before it.
        ranges = [range(n) for n in both]
        ranges[axis] = range(counts[axis] - 1, counts[axis])
        for before in range(axis):
            if old[before] % chunk[before]:
                ranges[before] = range(min(both[before], counts[before] - 1))
        for index in itertools.product(*ranges):
            yield tuple(i * n for i, n in zip(index, chunk, strict=True))
