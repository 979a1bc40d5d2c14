"""Do two datasets hold the same values?

The engine reads both in boxes, or compares stored bytes where chunks were copied as they are.
libhdf5 reads small datasets and samples of others: what an error in the engine hides, it shows.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from operator import mul
from typing import Any, Final, TypeAlias

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5d, h5t

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.dataset import Dataset
from chunkwise.errors import ChunkwiseError, UsageError, reason_of
from chunkwise.file import wrap
from chunkwise.files.opening import is_plain
from chunkwise.files.stored import read_box, written_boxes
from chunkwise.grammar import Shape
from chunkwise.grammar.boxes import Box, boxes, chunk_at, chunk_counts
from chunkwise.names import HDF5_ERRORS, hdf5_reason
from chunkwise.proof.records import Bound

Array: TypeAlias = npt.NDArray[Any]

# libhdf5 reads datasets up to this size: for them, it is as fast as the engine.
_SMALL_NBYTES: Final = 64 << 10
# A box is no larger than needed to decode each chunk once, and at least this large if it can be.
_BOX_NBYTES: Final = 64 << 20
# Of the larger ones, libhdf5 reads samples: this much, and this part of all values.
_SAMPLED_NBYTES: Final = 8 << 20
_SAMPLED_PART: Final = 0.03
# The result is read in parts of about this size, whole chunks each; of less memory, in this part.
_PART_NBYTES: Final = 32 << 20
_PART_OF_MEMORY: Final = 8
# With more boxes than this, those without any chunk are left out.
_MANY_BOXES: Final = 1024
# What one thread compares at a time.
_BLOCK_NBYTES: Final = 1 << 20


class ValuesDifferError(Exception):
    """Values from this element on are not those of the source, or cannot be read."""

    def __init__(self, start: Shape, how: str) -> None:
        super().__init__(start, how)
        self.start, self.how = start, how


class SourceUnreadableError(Exception):
    """The source's values cannot be read; `__cause__` says why."""


@dataclass
class Reading:
    """What was read so far, of values that were found equal."""

    nbytes: int = 0
    stored_nbytes: int = 0
    by_libhdf5_nbytes: int = 0

    def may_sample(self, nbytes: int) -> bool:
        """Whether libhdf5 may read this much more."""
        most = _SAMPLED_NBYTES + _SAMPLED_PART * (self.nbytes + self.stored_nbytes)
        return self.by_libhdf5_nbytes + nbytes <= most


def numpy_type(datatype: Any) -> np.dtype[Any] | None:
    """Return NumPy's type if reading elements as that type changes none of their bytes."""
    if not is_plain(datatype):
        return None
    try:
        dtype: np.dtype[Any] = datatype.dtype
        same = h5t.py_create(dtype).equal(datatype)
    except (TypeError, ValueError):
        return None
    return dtype if same and dtype.subdtype is None else None


@dataclass(frozen=True)
class Pair:
    """Two datasets of the same shape and type."""

    mine: h5d.DatasetID  # Of the source
    theirs: h5d.DatasetID
    bound: Bound | None = None  # How far values may differ; None for not at all

    @cached_property
    def datatype(self) -> Any:
        """Their type in the file."""
        return h5t.TypeID.copy(self.mine.get_type())


class Values:
    """Compares values of plain bytes; `report` gets the bytes of each part that was equal."""

    def __init__(
        self,
        memory_nbytes: int,
        report: Callable[[int], None] = lambda _: None,
        *,
        salvaged: bool = False,
    ) -> None:
        self.read = Reading()
        # The dataset of the source in messages of the engine.
        self.label = ""
        self._part_nbytes = min(_PART_NBYTES, memory_nbytes // _PART_OF_MEMORY)
        self._box_nbytes = max(1, memory_nbytes - 2 * self._part_nbytes)
        self._report = report
        self._salvaged = salvaged
        self._random = random.Random()
        # The two datasets as the engine reads them: where their data lie is found once.
        self._bound: list[Dataset | None] = [None, None]
        # For a box of the source, and for a part of it in both files.
        self._memory = [np.empty(0, np.uint8) for _ in range(3)]

    def compare(self, pair: Pair) -> None:
        """Compare two datasets of the same shape and type."""
        if self.is_stored_alike(pair) and self.same_stored(pair):
            return
        for box in self.boxes(pair):
            self.compare_box(pair, box)

    # --- stored as they are -------------------------------------------------------

    @staticmethod
    def is_stored_alike(pair: Pair) -> bool:
        """Whether equal stored chunks mean equal values: the same chunk shape and filters."""
        first, second = _form(pair.mine), _form(pair.theirs)
        return first is not None and first == second

    def same_stored(self, pair: Pair, part: tuple[int, int] = (0, 1)) -> bool:
        """Whether the chunks are stored alike, or a part of them; if not, values may be equal."""
        seen = 0

        def report(done: int, *_: int) -> None:
            nonlocal seen
            self._report(done - seen)
            seen = done

        try:
            ids = pair.mine.id, pair.theirs.id
            found = _native.same_chunks(library(), *ids, part, label=self.label, progress=report)
        except ChunkwiseError:
            # Reading the values says what is wrong, and where.
            return False
        if found is not None:
            return False
        self.read.stored_nbytes += seen
        self._sample_stored(pair)
        return True

    def _sample_stored(self, pair: Pair) -> None:
        """Let libhdf5 read one chunk from any place of both."""
        mine = pair.mine
        if 0 in mine.shape:
            return
        box = self._any_chunk(mine.shape, _chunk(mine) or mine.shape)
        if not self.read.may_sample(box.size * pair.datatype.get_size()) or _may_burst(mine):
            return
        # What is damaged in the source is kept as it is, byte for byte.
        with contextlib.suppress(SourceUnreadableError):
            self._by_libhdf5(replace(pair, bound=None), box)

    def _any_chunk(self, shape: Shape, chunk: Shape) -> Box:
        """Choose one of the chunks of an array."""
        places = map(self._random.randrange, chunk_counts(shape, chunk))
        return chunk_at(shape, chunk, tuple(map(mul, places, chunk)))

    # --- boxes --------------------------------------------------------------------

    def boxes(self, pair: Pair) -> Iterator[Box]:
        """Cut the datasets into boxes in which each chunk is decoded once, if memory allows it."""
        # What was never written in either is left out: its fill value was compared.
        mine, theirs = pair.mine, pair.theirs
        if mine.shape is None or 0 in mine.shape:
            return
        if _is_unwritten(mine) and _is_unwritten(theirs):
            return
        shape, itemsize = tuple(mine.shape), pair.datatype.get_size()
        block = self._block(shape, _chunk(mine), _chunk(theirs), itemsize)
        touched = None
        if math.prod(chunk_counts(shape, block)) > _MANY_BOXES:
            touched = _touched((mine, theirs), block)
        if touched is None:
            yield from boxes(shape, block, math.prod(block))
            return
        for place in touched.tolist():
            yield chunk_at(shape, block, tuple(map(mul, place, block)))

    def _block(
        self, shape: Shape, source: Shape | None, target: Shape | None, itemsize: int
    ) -> Shape:
        """Return the shape of a box."""
        if not shape:
            return ()
        most = self._box_nbytes
        nbytes = min(_BOX_NBYTES, most)
        found: Shape | None = None
        while found is None or nbytes <= most:
            try:
                plan = _native.RechunkPlan(
                    list(shape),
                    None if source is None else list(source),
                    None if target is None else list(target),
                    itemsize,
                    nbytes,
                )
            except UsageError:
                if nbytes >= most:
                    break
            else:
                found = tuple(plan.super_block)
                if plan.decodes <= plan.source_chunks:
                    break
            nbytes *= 2
        chunk = target or source or (1,) * len(shape)
        block = list(map(min, found or chunk, shape))
        # Small boxes become rows of them.
        most = max(1, nbytes // itemsize)
        for axis in reversed(range(len(block))):
            steps = max(1, most // max(1, math.prod(block)))
            block[axis] = min(shape[axis], block[axis] * steps)
        return tuple(block)

    def compare_box(self, pair: Pair, box: Box) -> None:
        """Compare one box of two datasets; raises as `compare`."""
        nbytes = box.size * pair.datatype.get_size()
        dtype = numpy_type(pair.datatype)
        is_small = _nbytes(pair.mine) <= _SMALL_NBYTES and not _may_burst(pair.mine)
        if dtype is None or not box.shape or (is_small and pair.bound is None):
            self._by_libhdf5(pair, box)
        else:
            self._by_engine(pair, dtype, box)
            self.read.nbytes += nbytes
        self._report(nbytes)

    def _by_engine(self, pair: Pair, dtype: np.dtype[Any], box: Box) -> None:
        """Read a box of the source, then the result in parts of whole chunks; compare each."""
        mine, theirs, bound = pair.mine, pair.theirs, pair.bound
        first = self._room(0, dtype, box.shape)
        if not _is_filled(mine):
            first.view(np.uint8)[...] = 0
        try:
            self._engine(0, mine).read_direct(first, box.slices)
        except (*HDF5_ERRORS, ChunkwiseError) as error:
            self._in_parts(pair, box, error)
            return
        result = self._engine(1, theirs)
        least = _chunk(theirs) or (1,) * len(box.shape)
        for part in boxes(box.shape, least, max(1, self._part_nbytes // dtype.itemsize)):
            there = part.moved(box.start)
            expected, found = (self._room(number, dtype, part.shape) for number in (1, 2))
            # As bytes: NumPy leaves out what lies between the fields of a record.
            np.copyto(_raw(expected), _raw(first)[part.slices])
            if not _is_filled(theirs):
                found.view(np.uint8)[...] = 0
            try:
                result.read_direct(found, there.slices)
            except (*HDF5_ERRORS, ChunkwiseError) as error:
                said = f"cannot be read ({reason_of(error)})"
                raise ValuesDifferError(there.start, said) from None
            differs = first_difference if bound is None else bound.violations
            place = differs(expected, found)
            if place is not None:
                self._raise(there, place, bound)
            self._sample(theirs, pair.datatype, there, found)
        self._sample(mine, pair.datatype, box, first)

    def _engine(self, side: int, dataset: h5d.DatasetID) -> Dataset:
        """Return a dataset as the engine reads it; the source is side 0."""
        bound = self._bound[side]
        if bound is None or bound.id is not dataset:
            bound = self._bound[side] = wrap(h5py.Dataset(dataset))
        return bound

    def _sample(self, dataset: h5d.DatasetID, datatype: Any, box: Box, read: Array) -> None:
        """Let libhdf5 read a chunk of what the engine has read, and compare."""
        part = self._any_chunk(box.shape, _chunk(dataset) or box.shape)
        there = part.moved(box.start)
        nbytes = part.size * datatype.get_size()
        if not self.read.may_sample(nbytes) or _may_burst(dataset):
            return
        try:
            found = read_box(dataset, datatype, there)
        except HDF5_ERRORS as error:
            reason = f"cannot be read by libhdf5 ({hdf5_reason(error)})"
            raise ValuesDifferError(there.start, reason) from None
        self.read.by_libhdf5_nbytes += nbytes
        if found.tobytes() != _raw(read)[part.slices].tobytes():
            raise ValuesDifferError(there.start, "is read otherwise by libhdf5 than by chunkwise")

    def _by_libhdf5(self, pair: Pair, box: Box) -> None:
        """Compare a box as libhdf5 reads it."""
        datatype, bound = pair.datatype, pair.bound
        try:
            first = read_box(pair.mine, datatype, box)
        except HDF5_ERRORS as error:
            self._in_parts(pair, box, error)
            return
        try:
            second = read_box(pair.theirs, datatype, box)
        except HDF5_ERRORS as error:
            reason = f"cannot be read by libhdf5 ({hdf5_reason(error)})"
            raise ValuesDifferError(box.start, reason) from None
        self.read.by_libhdf5_nbytes += first.nbytes
        dtype = numpy_type(datatype)
        if bound is not None and dtype is not None:
            both = (one.view(dtype).reshape(box.shape) for one in (first, second))
            at = bound.violations(*both)
        else:
            at = first_difference(first, second)
            at = None if at is None else at // datatype.get_size()
        if at is not None:
            self._raise(box, at, bound)

    def _in_parts(self, pair: Pair, box: Box, error: BaseException) -> None:
        """Compare chunk after chunk if the source is damaged and that is expected."""
        chunk = _chunk(pair.mine)
        if not self._salvaged:
            raise SourceUnreadableError from error
        parts = [] if chunk is None else list(boxes(box.shape, chunk, 1))
        if len(parts) < 2:
            return
        for part in parts:
            self.compare_box(pair, part.moved(box.start))

    @staticmethod
    def _raise(box: Box, at: int, bound: Bound | None) -> None:
        place = np.unravel_index(at, box.shape) if box.shape else ()
        where = tuple(int(s + o) for s, o in zip(box.start, place, strict=True))
        how = "differs from the source"
        if bound is not None:
            how += " by more than its filter may change it"
        raise ValuesDifferError(where, how)

    def _room(self, number: int, dtype: np.dtype[Any], count: Shape) -> Array:
        """Return an array in the memory of that number, which is used again."""
        nbytes = math.prod(count) * dtype.itemsize
        if self._memory[number].nbytes < nbytes:
            self._memory[number] = np.empty(nbytes, np.uint8)
        return self._memory[number][:nbytes].view(dtype).reshape(count)


def first_difference(first: Array, second: Array) -> int | None:
    """Return the flat index of the first element whose bytes differ; None if none does."""
    size = first.dtype.itemsize
    a, b = (one.reshape(-1).view(np.uint8) for one in (first, second))
    words = a.nbytes // 8 * 8
    longs = a[:words].view(np.uint64), b[:words].view(np.uint64)
    step = _BLOCK_NBYTES // 8

    def differs(at: int) -> bool:
        return not np.array_equal(longs[0][at : at + step], longs[1][at : at + step])

    starts = range(0, len(longs[0]), step)
    if len(starts) < 4:
        found = next((at for at in starts if differs(at)), None)
    else:
        # Not a pool that is kept: a process that is forked has none of its threads.
        with ThreadPoolExecutor(_native.thread_count()) as pool:
            answers = list(pool.map(differs, starts))
        found = next((at for at, odd in zip(starts, answers, strict=True) if odd), None)
    if found is not None:
        block = slice(found * 8, found * 8 + _BLOCK_NBYTES)
        return int(block.start + np.flatnonzero(a[block] != b[block])[0]) // size
    rest = np.flatnonzero(a[words:] != b[words:])
    return int(words + rest[0]) // size if rest.size else None


def _raw(values: Array) -> Array:
    """View elements as their bytes."""
    return values.view(np.dtype((np.void, values.dtype.itemsize)))


def _chunk(dataset: h5d.DatasetID) -> Shape | None:
    dcpl = dataset.get_create_plist()
    return tuple(dcpl.get_chunk()) if dcpl.get_layout() == h5d.CHUNKED else None


def _form(dataset: h5d.DatasetID) -> object:
    """Return the chunk shape and the filters; None if there are no chunks."""
    dcpl = dataset.get_create_plist()
    if dcpl.get_layout() != h5d.CHUNKED:
        return None
    filters = [dcpl.get_filter(number)[:3] for number in range(dcpl.get_nfilters())]
    return tuple(dcpl.get_chunk()), filters, library().unfiltered_partial_chunks(dataset.id)


def _is_filled(dataset: h5d.DatasetID) -> bool:
    """Whether unwritten elements have a value."""
    dcpl = dataset.get_create_plist()
    undefined = dcpl.fill_value_defined() == h5d.FILL_VALUE_UNDEFINED
    return not undefined and dcpl.get_fill_time() != h5d.FILL_TIME_NEVER


def _is_unwritten(dataset: h5d.DatasetID) -> bool:
    """Whether nothing is stored; never of data that lie in other files."""
    dcpl = dataset.get_create_plist()
    if dcpl.get_layout() == h5d.VIRTUAL or dcpl.get_external_count():
        return False
    return bool(dcpl.get_layout() != h5d.COMPACT and dataset.get_storage_size() == 0)


def _nbytes(dataset: h5d.DatasetID) -> int:
    elements: int = dataset.get_space().get_simple_extent_npoints()
    return elements * int(dataset.get_type().get_size())


def _may_burst(dataset: h5d.DatasetID) -> bool:
    """Whether chunks may decode to far more than a chunk, which libhdf5 would keep."""
    grid = zip(dataset.shape, _chunk(dataset) or dataset.shape, strict=True)
    whole = math.prod(-(-n // c) * c for n, c in grid if c) * dataset.get_type().get_size()
    return bool(dataset.get_storage_size() > 2 * whole + _SMALL_NBYTES)


def _touched(datasets: tuple[h5d.DatasetID, ...], block: Shape) -> npt.NDArray[np.int64] | None:
    """Return the places of the boxes that hold a written chunk; None for all."""
    places: list[npt.NDArray[np.int64]] = []
    for dataset in datasets:
        chunk = _chunk(dataset)
        if chunk is None and _is_unwritten(dataset):
            continue
        try:
            found = None if chunk is None else written_boxes(dataset, chunk, block)
        except ChunkwiseError:
            return None
        if found is None:
            return None
        places.append(found)
    return np.unique(np.concatenate(places), axis=0)
