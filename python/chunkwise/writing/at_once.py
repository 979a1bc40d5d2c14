"""Which chunks of an assignment to h5py's own datasets are encoded here, and which by h5py?

Chunks that one assignment covers completely are encoded on all threads and put into the file
before it returns; h5py writes everything else.  Nothing waits.  For steps see `steps`.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import h5py
import numpy as np
from h5py import h5d, h5z
from h5py._objects import phil

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError
from chunkwise.files.objects import Address, address_of
from chunkwise.handles import pending
from chunkwise.handles.handle import label_of
from chunkwise.names import HDF5_ERRORS
from chunkwise.routing import bindings, eligibility
from chunkwise.routing.conversions import identical, memory_type
from chunkwise.routing.indexing import plain
from chunkwise.routing.reading import Counts
from chunkwise.writing import steps
from chunkwise.writing.steps import Box, Steps
from chunkwise.writing.values import PART_NBYTES, as_stored

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
# Writes ``dataset[index] = value`` through libhdf5.
Write = Callable[[h5py.Dataset, Any, Any], None]

# What libhdf5 encodes in the time that it takes to look what a write covers, and to begin.
SMALLEST_NBYTES = 128 << 10
# With fast filters, several chunks are needed: one alone is no faster than by libhdf5.
SMALLEST_FAST_NBYTES = 1 << 20
_FAST: Final = frozenset(
    {h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32, h5z.FILTER_NBIT, h5z.FILTER_LZF}
    | {32001, 32004, 32008, 32026}  # Blosc, LZ4, bitshuffle, Blosc2
)
# HDF5's file drivers with which it is tested.
_DRIVERS: Final = ("sec2", "core")
# Under this name a dataset of h5py's remembers what is known of it.
_ATTRIBUTE: Final = "_chunkwise_at_once"
# The chosen encoders of this many datasets are kept while nobody holds the h5py objects.
_MOST_KEPT: Final = 256
# In libhdf5's cache there are no more writes than this, of the smallest that come here.
_MOST_RECENT: Final = 128

_UNFILTERED: Final = "it has no filters, or no chunks"
_OTHER: Final = "an index, a value or a conversion that libhdf5 alone handles"
_IN_PART: Final = "no chunk is whole yet"
_TOO_LARGE: Final = (
    "no chunk is written whole, and libhdf5's chunk cache is too small to gather steps "
    "(give rdcc_nbytes, or use chunkwise.open)"
)
_AGAIN: Final = "it was written before, and may be in libhdf5's cache"
_SMALL: Final = f"fewer than {SMALLEST_NBYTES >> 10} KiB are written"
_FAST_ENOUGH: Final = "libhdf5 encodes so little as fast"

_NUMBERS: Final = (np.ndarray, np.generic, int, float, complex)

counts = Counts()


@dataclass(eq=False)
class WriteTarget:
    """A dataset, as it can be written here; or the reason why it cannot."""

    native: _native.WholeChunks | None
    why: str
    dtype: np.dtype[Any]
    chunk: tuple[int, ...] = ()
    is_fast: bool = False  # To encode, by libhdf5 as well
    # What libhdf5's cache of its chunks holds.
    cache_nbytes: int = 0
    # Where the last writes that fit into that cache began.
    recent: OrderedDict[Box, None] = field(default_factory=OrderedDict)
    steps: Steps = field(default_factory=Steps)

    def is_one(self, part: Box) -> bool:
        """Whether a part is a single chunk."""
        return all(end - begin <= n for (begin, end), n in zip(part, self.chunk, strict=True))

    def is_rewrite(self, part: Box) -> bool:
        """Whether the same part was written a short while ago."""
        # libhdf5 encodes a chunk when it leaves its cache, however often it was written.
        known = part in self.recent
        self.recent[part] = None
        self.recent.move_to_end(part)
        if len(self.recent) > _MOST_RECENT:
            self.recent.popitem(last=False)
        return known


_NO_FILTERS: Final = WriteTarget(None, _UNFILTERED, np.dtype("V1"))

# What was learnt of datasets, for speed alone: addresses may be reused.
_learnt: OrderedDict[Address, _native.WholeChunks] = OrderedDict()


def put(dataset: h5py.Dataset, index: Any, value: Any, write: Write) -> bool:
    """Write ``dataset[index] = value``, if that is worth anything."""
    pending.settle_for_h5py(dataset)
    # Most writes are small, or to datasets that h5py writes: they pay for no more than this.
    target: WriteTarget | None = dataset.__dict__.get(_ATTRIBUTE)
    why: str | None
    if target is not None and target.native is None:
        why = target.why
    elif isinstance(value, np.ndarray) and 0 < value.nbytes < SMALLEST_NBYTES and value.ndim:
        why = _SMALL
    else:
        why = _why_not(dataset, index, value, write)
    if why is None:
        counts.engine += 1
        return True
    counts.h5py[why] += 1
    return False


def _why_not(dataset: h5py.Dataset, index: Any, value: Any, write: Write) -> str | None:
    """Write, or give the reason why h5py has to."""
    if not bindings.active():
        return eligibility.UNPATCHED
    if isinstance(value, np.ndarray) and value.ndim:
        if not plain(index):
            return _OTHER
    # Asking how much a number fills may cost more than writing it, unless that is everything.
    elif not (_is_everything(index) and isinstance(value, _NUMBERS)):
        return _OTHER
    try:
        with phil:
            return _write(dataset, index, value, write)
    except (ChunkwiseError, MemoryError, OverflowError, TypeError, ValueError, *HDF5_ERRORS):
        # h5py does it all again, and says what there is to say.
        return _OTHER


def _is_everything(index: Any) -> bool:
    if type(index) is slice:
        return index.start is None and index.stop is None and index.step is None
    return index is Ellipsis or (type(index) is tuple and not index)


def _write(dataset: h5py.Dataset, index: Any, value: Any, write: Write) -> str | None:
    if not dataset.id.valid:
        return eligibility.CLOSED
    target: WriteTarget | None = dataset.__dict__.get(_ATTRIBUTE)
    if target is None and not dataset._dcpl.get_nfilters():
        dataset.__dict__[_ATTRIBUTE] = _NO_FILTERS
        return _UNFILTERED
    shape = dataset.shape
    selection = _native.select_index(shape, index, "")
    parts = None if selection is None else selection.hyperslab
    if selection is None or parts is None or any(count > 1 for count in parts[2]):
        return _OTHER
    wanted = tuple(selection.shape)
    nbytes = math.prod(wanted) * dataset.dtype.itemsize
    if nbytes < SMALLEST_NBYTES:
        return _SMALL
    if target is None:
        target = dataset.__dict__[_ATTRIBUTE] = _target_of(dataset)
    native = target.native
    if native is None:
        return target.why
    if not isinstance(value, np.ndarray):
        value = np.asarray(value, dtype=target.dtype)
    if value.shape not in ((), wanted):
        return _OTHER
    # Less may stay in libhdf5's cache until the dataset has grown, or is written again.
    growing = nbytes > target.cache_nbytes
    begin, _, _, lengths = parts
    box = tuple((first, first + length) for first, length in zip(begin, lengths, strict=True))
    found = native.part(dataset.id.id, selection, growing)
    if found is None:
        return _write_step(dataset, target, box, lambda: write(dataset, index, value))
    if isinstance(found, str):
        return found
    part = tuple(found)
    if target.is_fast and (nbytes < SMALLEST_FAST_NBYTES or target.is_one(part)):
        return _FAST_ENOUGH
    if not growing and target.is_rewrite(part):
        return _AGAIN
    whole = np.asarray(value)
    if whole.shape:
        whole = whole[tuple(None if gone else slice(None) for gone in selection.dropped)]
    whole = np.broadcast_to(whole, lengths)
    if identical(whole.dtype, target.dtype) and whole.flags.c_contiguous:
        native.write(dataset.id.id, selection, growing, whole)
    elif not _write_in_pieces(dataset, target, box, part[0], whole, growing):
        return _OTHER
    for slab in _around(box, part):
        # Each chunk that is covered in part lies in one of them.
        there = tuple(slice(first, last) for first, last in slab)
        here = zip(slab, box, strict=True)
        write(dataset, there, whole[tuple(slice(a - at, b - at) for (a, b), (at, _) in here)])
    return None


def _write_step(
    dataset: h5py.Dataset, target: WriteTarget, step: Box, write: Callable[[], None]
) -> str | None:
    """Have libhdf5 write a part of chunks, and encode those that it makes whole."""
    native = target.native
    assert native is not None, "the caller has checked it"
    itemsize = target.dtype.itemsize
    if steps.touched_nbytes(step, target.chunk, itemsize) > target.cache_nbytes:
        return _TOO_LARGE
    box = target.steps.with_next(step)
    found = native.part(dataset.id.id, steps.selected(dataset.shape, box), False)
    if found is None or isinstance(found, str):
        return found or _IN_PART
    part = tuple(found)
    target.steps.begin_at(part[0][1])
    nbytes = math.prod(end - begin for begin, end in part) * itemsize
    if target.is_fast and (nbytes < SMALLEST_FAST_NBYTES or target.is_one(part)):
        return _FAST_ENOUGH
    write()
    steps.encode(dataset, native, target.dtype, target.chunk, part)
    return None


def _write_in_pieces(
    dataset: h5py.Dataset,
    target: WriteTarget,
    box: Box,
    rows: tuple[int, int],
    whole: Array,
    growing: bool,
) -> bool:
    """Write what first has to be converted, or put in order; False if libhdf5 has to."""
    assert target.native is not None, "the caller has checked it"
    nbytes = math.prod(whole.shape[1:]) * max(whole.itemsize, target.dtype.itemsize)
    chunks = max(PART_NBYTES // (nbytes * target.chunk[0]), 1)
    begin, end = rows
    while begin < end:
        last = min(begin + chunks * target.chunk[0], end)
        piece = np.ascontiguousarray(whole[begin - box[0][0] : last - box[0][0]])
        elements = as_stored(piece, target.dtype)
        if elements is None:
            return False
        selection = steps.selected(dataset.shape, ((begin, last), *box[1:]))
        target.native.write(dataset.id.id, selection, growing, elements)
        begin = last
    return True


def _around(box: Box, part: Box) -> Iterator[Box]:
    """Return the boxes around a part of a box: at most two a dimension."""
    rest = list(box)
    for axis, ((begin, end), (first, last)) in enumerate(zip(box, part, strict=True)):
        for bounds in ((begin, first), (last, end)):
            if bounds[0] < bounds[1]:
                yield (*rest[:axis], bounds, *rest[axis + 1 :])
        rest[axis] = (first, last)


def _target_of(dataset: h5py.Dataset) -> WriteTarget:
    """Ask libhdf5 for all that has to be known, under h5py's lock."""
    dtype = dataset.dtype
    plist = dataset._dcpl
    if plist.get_layout() != h5d.CHUNKED:
        return _NO_FILTERS
    why = eligibility.why_not_of_type(dtype)
    if why is None and dtype.subdtype is not None:
        why = "its elements are arrays"
    driver = dataset.file.driver
    if why is None and driver not in _DRIVERS:
        why = f"the file is open with the driver {driver}"
    if why is not None:
        return WriteTarget(None, why, dtype)
    in_memory = memory_type(dtype)
    address = address_of(dataset.id)
    native = _native.WholeChunks(
        library(),
        dataset.id.id,
        in_memory.id,
        dtype,
        label_of(dataset),
        _learnt.get(address),
    )
    if native.reason is not None:
        return WriteTarget(None, native.reason, dtype)
    _learnt[address] = native
    _learnt.move_to_end(address)
    if len(_learnt) > _MOST_KEPT:
        _learnt.popitem(last=False)
    _, cache_nbytes, _ = dataset.id.get_access_plist().get_chunk_cache()
    numbers = {plist.get_filter(place)[0] for place in range(plist.get_nfilters())}
    return WriteTarget(native, "", dtype, plist.get_chunk(), numbers <= _FAST, cache_nbytes)
