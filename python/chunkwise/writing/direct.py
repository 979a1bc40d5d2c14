"""Which writes does libhdf5 do as fast as chunkwise could?

Unfiltered data, small datasets, and a single deflated chunk go to libhdf5 at once, unless it may
leave filters out: it loses chunks then.  Others go to `dataset_writing.py`.  It merges parts of
chunks, which libhdf5 would read and write again and again if its cache does not hold them.
"""

from __future__ import annotations

import math
import sys
import weakref
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z
from h5py._objects import phil

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import CorruptDataError
from chunkwise.files import unwritten
from chunkwise.handles import pending
from chunkwise.names import HDF5_ERRORS
from chunkwise.routing.conversions import identical
from chunkwise.routing.indexing import plain
from chunkwise.selecting import lowlevel
from chunkwise.writing.unfiltered_edges import may_leave_out

Shape = tuple[int, ...]

# libhdf5 does everything for datasets up to this size.
SMALL_NBYTES: Final = 64 << 10
# The same for datasets that are one chunk and cannot grow, if it is deflated as stated.
ONE_CHUNK_NBYTES: Final = 1 << 20
# chunkwise writes chunks up to this size faster, once there are this many bytes.
_TINY_CHUNK_NBYTES: Final = 16 << 10
_MANY_NBYTES: Final = 4 << 20
# What libhdf5 writes to a chunk that its cache does not hold goes to the file run by run.
_RUN_NBYTES: Final = 4 << 10
# What keeps the length of data, or adds to it behind what is deflated.
_LENGTHS_KNOWN: Final = {h5z.FILTER_SHUFFLE, h5z.FILTER_DEFLATE, h5z.FILTER_FLETCHER32}
_CHECKSUM_NBYTES: Final = 4
# Under this name a dataset remembers what is known of it.
_ATTRIBUTE: Final = "_chunkwise_stored"

# What is known of datasets that are open; HDF5's identifiers of one dataset are equal.
_known: weakref.WeakKeyDictionary[h5d.DatasetID, tuple[StoredDataset | None]] = (
    weakref.WeakKeyDictionary()
)

SMALL: Final = (
    f"the whole dataset, as long as it takes {SMALL_NBYTES >> 10} KiB at most, or is one chunk of "
    f"{ONE_CHUNK_NBYTES >> 20} MiB at most that is deflated as stated and cannot grow"
)
UNFILTERED: Final = (
    "what needs no conversion, but for parts of more chunks than its cache holds: there are no "
    "filters to be fast at"
)


@dataclass(frozen=True)
class StoredDataset:
    """How a dataset is stored, as far as it does not change."""

    dtype: np.dtype[Any]
    kind: h5t.TypeID  # The same in memory
    chunk: Shape | None
    is_filtered: bool
    cache_nbytes: int  # Which libhdf5 has for its chunks
    has_unfiltered_edges: bool
    # Whether the last chunk is short: libhdf5 writes beyond it (`tests/upstream/short_chunk.c`).
    has_short_edge: bool = False
    # Whether libhdf5 leaves out filters, with an old mask (`tests/upstream/filter_mask_kept.c`).
    leaves_out: bool = False
    # Whether it is one chunk that libhdf5 deflates as fast, and that its cache holds.
    is_one_chunk: bool = False
    # Whether deflate is to be as libhdf5 would do it, or to be faster.
    as_stated: bool = True

    def is_small(self, shape: Shape) -> bool:
        """Whether libhdf5 writes all of it."""
        if self.leaves_out:
            return False
        return self.nbytes(shape) <= SMALL_NBYTES or (self.is_one_chunk and self.as_stated)

    def nbytes(self, shape: Shape) -> int:
        """Bytes of all elements."""
        return math.prod(shape) * self.dtype.itemsize

    def holds(self, shape: Shape) -> bool:
        """Whether libhdf5's cache keeps all of it, encoded when it is flushed."""
        held = self.is_filtered and not self.leaves_out
        return held and 2 * self.nbytes(shape) <= self.cache_nbytes

    def suits(self, shape: Shape, parts: _native.Hyperslab) -> bool:
        """Whether libhdf5 writes this part, without filters, as fast as it is written here."""
        if self.is_small(shape) or self.chunk is None:
            return True
        starts, strides, counts, blocks = parts
        nbytes = chunk_nbytes = run_nbytes = self.dtype.itemsize
        touched, whole, in_one_run = 1, True, True
        for axis in reversed(range(len(shape))):
            start, step, count, block = (one[axis] for one in (starts, strides, counts, blocks))
            chunk = self.chunk[axis]
            end = start + (count - 1) * step + block
            dense = count == 1 or step == block
            nbytes *= count * block
            chunk_nbytes *= chunk
            touched *= -(-end // chunk) - start // chunk
            whole = (
                whole and dense and not start % chunk and (not end % chunk or end == shape[axis])
            )
            if in_one_run:
                run_nbytes *= min(end - start, chunk) if dense else block
            in_one_run = in_one_run and dense and not start % chunk and end - start >= chunk
        if whole:
            return chunk_nbytes > _TINY_CHUNK_NBYTES or nbytes < _MANY_NBYTES
        if chunk_nbytes > self.cache_nbytes:
            return run_nbytes >= _RUN_NBYTES
        return touched * chunk_nbytes <= self.cache_nbytes


def put(dataset: h5py.Dataset, index: Any, value: Any, *, alone: bool = False) -> bool:
    """Let libhdf5 write ``dataset[index] = value``, if it is as fast."""
    if type(value) is not np.ndarray or not value.ndim or not plain(index):
        return False
    try:
        # Who begins to write here holds this lock.
        with phil:
            if not alone and not pending.is_free(dataset):
                return False
            stored = stored_of(dataset)
            if stored is None or stored.has_short_edge:
                return False
            return _write(dataset, stored, index, value)
    except HDF5_ERRORS:
        # Errors of ours are among them; who writes it in another way says what is wrong.
        return False


def assigned(
    dataset: h5py.Dataset, source: Any, source_sel: Any, dest_sel: Any
) -> tuple[Any, np.ndarray[Any, Any]] | None:
    """Return a ``write_direct`` as index and values, where libhdf5 might lose chunks by it."""
    # None where it may write, and where the call is no such assignment.
    with phil:
        stored = stored_of(dataset)
    if stored is None or not stored.leaves_out or type(source) is not np.ndarray:
        return None
    if not source.flags.c_contiguous or not identical(source.dtype, stored.dtype):
        return None
    index = ... if dest_sel is None else dest_sel
    try:
        values = source if source_sel is None else source[source_sel]
        selection = _native.select_index(dataset.shape, index, "") if plain(index) else None
    except (*HDF5_ERRORS, IndexError):
        return None
    if selection is None or tuple(selection.shape) != np.shape(values):
        return None
    return index, np.asarray(values)


def is_held(dataset: h5py.Dataset) -> bool:
    """Whether libhdf5 is to write a dataset until the next flush, however it has grown."""
    # Its cached chunks would have to be in the file before another writes (`docs/writing.md`).
    with phil:
        stored = stored_of(dataset)
        return stored is not None and _held(dataset, stored, dataset.shape)


def has_short_edge(dataset: h5py.Dataset) -> bool:
    """Whether libhdf5 would write beyond its buffer for the last chunk."""
    with phil:
        stored = stored_of(dataset)
        return stored is not None and stored.has_short_edge


def _held(dataset: h5py.Dataset, stored: StoredDataset, shape: Shape) -> bool:
    return stored.holds(shape) and unwritten.replaces(dataset)


def resize(dataset: h5py.Dataset, size: Any, axis: int | None) -> bool:
    """Let libhdf5 resize a dataset; False if that needs more work, or libhdf5 refuses."""
    try:
        with phil:
            if not pending.is_free(dataset):
                return False
            stored = stored_of(dataset)
            if stored is None or stored.chunk is None or stored.has_unfiltered_edges:
                return False
            if stored.has_short_edge:
                return False
            unwritten.keep(dataset)
            h5py.Dataset.resize(dataset, size, axis)
            return True
    except HDF5_ERRORS:
        return False


def by_libhdf5(dataset: h5py.Dataset) -> str | None:
    """Say what of a dataset that is written in parallel libhdf5 writes; None for nothing."""
    stored = stored_of(dataset)
    if stored is None or stored.has_short_edge:
        return None
    if stored.is_small(dataset.shape):
        return SMALL
    return None if stored.is_filtered else UNFILTERED


def stored_of(dataset: h5py.Dataset) -> StoredDataset | None:
    """Return how a dataset is stored; None if that is not for here.  Under h5py's lock."""
    known = dataset.__dict__.get(_ATTRIBUTE, False)
    if known is False:
        # Once for all objects of a dataset: looking at a chunk writes it, if libhdf5 holds it.
        found = _known.get(dataset.id)
        if found is None:
            found = _known[dataset.id] = (_ask(dataset),)
        known = dataset.__dict__[_ATTRIBUTE] = found[0]
    return known  # type: ignore[no-any-return]


def _ask(dataset: h5py.Dataset) -> StoredDataset | None:
    plist, dtype = dataset._dcpl, dataset.dtype
    layout = plist.get_layout()
    if layout == h5d.VIRTUAL or not dataset.shape or dtype.hasobject or dtype.subdtype is not None:
        return None
    kind = h5t.py_create(dtype, logical=True)
    chunk, filters, cache_nbytes, edges = None, 0, 0, False
    if layout == h5d.CHUNKED:
        chunk, filters = plist.get_chunk(), plist.get_nfilters()
        _, cache_nbytes, _ = dataset.id.get_access_plist().get_chunk_cache()
        edges = filters > 0 and library().unfiltered_partial_chunks(dataset.id.id)
    short = chunk is not None and filters > 0 and _has_short_edge(dataset, chunk, plist)
    leaves_out = filters > 0 and may_leave_out(dataset)
    codes = {plist.get_filter(number)[0] for number in range(filters)}
    # One that grows may become too large for the cache after libhdf5 has replaced its chunk there.
    one = chunk == dataset.shape == dataset.maxshape and (
        h5z.FILTER_DEFLATE in codes
        and codes <= _LENGTHS_KNOWN
        and dataset.nbytes <= min(ONE_CHUNK_NBYTES, cache_nbytes)
    )
    return StoredDataset(
        dtype, kind, chunk, filters > 0, cache_nbytes, edges, short, leaves_out, one
    )


def encode_fast(dataset: h5py.Dataset) -> None:
    """Leave to libhdf5 only what it encodes as fast, however large it becomes."""
    with phil:
        stored = stored_of(dataset)
        if stored is not None:
            changed = replace(stored, as_stated=False)
            _known[dataset.id] = (changed,)
            dataset.__dict__[_ATTRIBUTE] = changed


def _has_short_edge(dataset: h5py.Dataset, chunk: Shape, plist: h5p.PropDCID) -> bool:
    """Whether a chunk may be stored without what lies beyond the dataset."""
    # Programs other than libhdf5 write such chunks.  Where filters show it, all chunks of a small
    # dataset are looked at, and the last one of a large one.  Where they do not, it is supposed of
    # each small dataset, which costs little.
    shape = dataset.shape
    if 0 in shape or not any(n % c for n, c in zip(shape, chunk, strict=True)):
        return False
    if not dataset.id.get_storage_size():
        return False
    codes = {plist.get_filter(number)[0] for number in range(plist.get_nfilters())}
    is_small = bool(math.prod(shape) * dataset.dtype.itemsize <= SMALL_NBYTES)
    if not codes <= _LENGTHS_KNOWN:
        return is_small
    origins: Iterable[Sequence[int]] = [
        tuple((n - 1) // c * c for n, c in zip(shape, chunk, strict=True))
    ]
    if is_small:
        try:
            origins = library().written_origins(dataset.id.id, sys.maxsize)
        except CorruptDataError:
            return True
    return any(may_be_short(dataset, origin) for origin in origins)


def may_be_short(dataset: h5py.Dataset, origin: Sequence[int]) -> bool:
    """Whether a chunk may be stored without some of its end: False of one never written."""
    plist = dataset._dcpl
    nbytes = math.prod(plist.get_chunk()) * dataset.dtype.itemsize
    try:
        # Not by where it lies: libhdf5 may list chunks under wrong coordinates.
        mask, stored = dataset.id.read_direct_chunk(tuple(origin))
    except HDF5_ERRORS:
        return False
    for number in reversed(range(plist.get_nfilters())):
        code = plist.get_filter(number)[0]
        if mask >> number & 1:
            continue
        if code == h5z.FILTER_FLETCHER32:
            stored = stored[:-_CHECKSUM_NBYTES]
        elif code == h5z.FILTER_DEFLATE:
            try:
                # No more than it may be, with checksums.
                most = nbytes + _CHECKSUM_NBYTES * plist.get_nfilters()
                stored = zlib.decompressobj().decompress(stored, most)
            except zlib.error:
                return True
        elif code not in _LENGTHS_KNOWN:
            return True
    return bool(len(stored) < nbytes)


def _write(
    dataset: h5py.Dataset, stored: StoredDataset, index: Any, value: np.ndarray[Any, Any]
) -> bool:
    if not identical(value.dtype, stored.dtype):
        return False
    shape = dataset.shape
    if stored.is_filtered and not stored.is_small(shape) and not _held(dataset, stored, shape):
        return False
    selection = _native.select_index(shape, index, "")
    parts = None if selection is None else selection.hyperslab
    if selection is None or parts is None or tuple(selection.shape) != value.shape:
        return False
    if not value.size or not (stored.is_filtered or stored.suits(shape, parts)):
        return False
    space = h5s.ALL
    if value.shape != shape:
        space = dataset.id.get_space()
        lowlevel.select(space, [parts])
    within = h5s.ALL if space is h5s.ALL else h5s.create_simple(value.shape)
    # Under MPI the list says whether all ranks write together.
    value = np.ascontiguousarray(value)
    unwritten.keep(dataset)
    dataset.id.write(within, space, value, stored.kind, dxpl=dataset._dxpl)
    return True
