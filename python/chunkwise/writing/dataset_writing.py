"""How is a dataset written: in chunks that are encoded here, or through h5py?

One `Writing` belongs to a dataset of an open file, for all its users, with its pending data.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product, repeat
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, cast

import h5py
import numpy as np

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import (
    CannotWriteError,
    ChunkwiseError,
    CorruptDataError,
    SelectionError,
    UsageError,
    like,
)
from chunkwise.files import unwritten
from chunkwise.files.objects import address_of
from chunkwise.files.opening_writable import is_read_only, read_only
from chunkwise.handles import pending
from chunkwise.handles.handle import label_of
from chunkwise.names import hdf5_reason
from chunkwise.routing.conversions import memory_type
from chunkwise.selecting import lowlevel
from chunkwise.selecting.indexing import without_names
from chunkwise.selection import Selection
from chunkwise.writing import direct, unfiltered_edges
from chunkwise.writing.values import (
    Assignment,
    appended,
    as_stored,
    assignment,
    axis_of,
    converted,
    parts_of,
    resized,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from chunkwise.grammar import Effort

Array: TypeAlias = "npt.NDArray[Any]"
Shape = tuple[int, ...]

phil = h5py._objects.phil


class WritePlan(TypedDict):
    """How a dataset is written; see `Dataset.explain_write`."""

    path: str
    reason: str | None
    by_libhdf5: str | None
    threads: int
    encoder: str | None
    held_nbytes: int
    dirty_chunks: int
    committed_chunks: int
    read_chunks: int


def writing_of(dataset: h5py.Dataset) -> Writing:
    """Whatever is being written to a dataset; the same object for each who asks."""
    with phil:
        if not dataset:
            raise UsageError("the dataset's file is closed")
        known: Writing | None = pending.known(dataset)
        if known is None or known.is_over:
            known = pending.register(dataset, Writing(h5py.Dataset(dataset.id)))
        return cast("Writing", known)


class Writing:
    """What is being written to one dataset; made by `writing_of`."""

    # Any number of threads may write; they take turns.

    def __init__(self, dataset: h5py.Dataset) -> None:
        self._h5 = dataset
        self.label = label_of(dataset)
        # Distinguishes the writers of this dataset from those of others.
        self.key = address_of(dataset.id)
        # Device and inode of its file; none where it is only in memory.
        self.inode: tuple[int, ...] = ()
        with contextlib.suppress(OSError):
            status = os.stat(dataset.file.filename)  # noqa: PTH116 (a str, of any bytes)
            self.inode = (status.st_dev, status.st_ino)
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._native: _native.Writer | None = None
        # Whether what a former one held may not be in the file yet.
        self._follows = True
        # The shape for which that was made.
        self._described: Shape | None = None
        self._left: pending.PendingWork | None = None
        # Whether there may be dirty chunks.
        self._dirty = False
        # Whether chunks at the edge are stored without filters, once it is known.
        self._unfiltered_edges: bool | None = None
        # Whether libhdf5 leaves filters out for some chunks, once it is known.
        self._leaves_out: bool | None = None
        # Axes along whose edge no chunk is stored short any more.
        self._whole_axes: set[int] = set()
        # How deflate's encoder is chosen, with the next writer.
        self.effort: Effort = "as-stated"

    # What is requested --------------------------------------------------------------

    def put(self, index: Any, value: Any, dataset: h5py.Dataset | None = None) -> None:
        """Write what ``dataset[index] = value`` means to h5py."""
        if hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
            # Another dataset, maybe, whose turn is not to be waited for within this one's.
            value = np.asarray(value, self._converts_to(index))
        h5 = self._h5 if dataset is None else dataset
        with self._turn():
            if not self._dirty and h5 and direct.put(h5, index, value, alone=True):
                return
            native = self._writer()
            if native.reason is None and (self._dirty or not direct.is_held(h5)):
                understood = assignment(self._h5, index, value, self.label)
                if understood is not None:
                    self._write(native, understood)
                    return
            self._settle_reached()
            if isinstance(value, np.ndarray):
                value = self._fitting(value)
            self._through_h5py(lambda: h5py.Dataset.__setitem__(h5, index, value))

    def write(self, selection: Selection | None, value: Any) -> None:
        """Write a selection; see `Dataset.write`."""
        with self._turn():
            native = self._writer()
            if selection is None:
                self.put(..., value)
                return
            if not self._h5.shape or not isinstance(selection, Selection):
                raise SelectionError(
                    f"{self.label}: write() takes chunkwise.hyperslab, chunkwise.union or "
                    f"chunkwise.points, not {type(selection).__name__}; d[...] takes an index"
                )
            resolved = selection.resolve(self._h5.shape, self.label)
            array = self._array(value)
            want = selection.shape + lowlevel.element_of(self._h5.dtype)[1]
            if array.shape not in ((), want):
                raise SelectionError(
                    f"{self.label}: the selection has the shape {want}, the array {array.shape}"
                )
            if 0 in want:
                return
            encoded = native.reason is None and (self._dirty or not direct.is_held(self._h5))
            elements = as_stored(array, self._h5.dtype) if encoded else None
            if elements is not None:
                self._write(native, Assignment(resolved, elements))
                return
            self._settle_reached()
            whole = np.ascontiguousarray(np.broadcast_to(self._fitting(array), want))
            self._through_h5py(lambda: lowlevel.write(self._h5, resolved, whole))

    def append(self, value: Any, axis: int = 0) -> None:
        """Grow by an array along an axis; see `Dataset.append`."""
        with self._turn():
            shape = self._h5.shape
            inner = lowlevel.element_of(self._h5.dtype)[1]
            axis = axis_of(axis, shape, self.label)
            array = appended(self._array(value), shape, axis, self.label, inner)
            begin = shape[axis]
            end = begin + array.shape[axis]
            self.resize((*shape[:axis], end, *shape[axis + 1 :]))
            if 0 not in array.shape[: len(shape)]:
                self.put((slice(None),) * axis + (slice(begin, end),), array)

    def resize(self, size: Any, axis: int | None = None) -> None:
        """Change the shape as ``h5py.Dataset.resize`` does."""
        with self._turn():
            native = self._writer()
            old = self._h5.shape
            new = resized(old, size, axis)
            if native.reason is None and new is not None and direct.has_short_edge(self._h5):
                self._complete_edges(native, new)
            grows = new is not None and all(b >= a for a, b in zip(old, new, strict=True))
            # libhdf5 must get what it would cut off or store in another way.
            if self._dirty and (not grows or self._has_unfiltered_edges()):
                self.settle()
            try:
                self._set_extent(new, size, axis)
            except (TypeError, ValueError, RuntimeError, OSError, OverflowError) as error:
                if is_read_only(error):
                    raise read_only(self.label) from error
                raise like(UsageError, error)(
                    f"{self.label}: it cannot be resized from {old}: {hdf5_reason(error)}; its "
                    f"largest shape is {self._h5.maxshape}"
                ) from error

    def flush(self) -> None:
        """Write everything to the file, and the file to storage."""
        with self._turn():
            self._flush()

    def _flush(self) -> None:
        self.settle()
        if not self._h5:
            raise UsageError("the dataset's file is closed")
        file = self._h5.file
        try:
            # Others who write, and flush, may be waiting for this one.
            with pending.without_waiting():
                file.flush()
            sync(file)
        except (OSError, RuntimeError) as error:
            raise CannotWriteError(
                f"{self.label}: the written data cannot be flushed: {error}; it may not be "
                "in the file"
            ) from error

    def settle(self, blocking: bool = True) -> None:
        """Commit all dirty chunks, so that libhdf5 reads what was written."""
        if self._dirty:
            self._check_process()
            if not self.finish(blocking):
                raise pending.busy(self.label, "read it without that lock, outside of a visit")

    def finish(self, blocking: bool = True) -> bool:
        """Commit all dirty chunks, those of writes that have begun included."""
        if os.getpid() != self._process:
            return True
        if not self._lock.acquire(blocking):
            return False
        try:
            native = self._native
            if native is not None and self._dirty:
                self._check_open()
                self._follow(native)
                native.flush()
                self._dirty = False
            return True
        finally:
            self._lock.release()

    @property
    def is_open(self) -> bool:
        """Whether the `h5py.File` that it writes through is open."""
        # h5py sets the identifier to 0 when it closes a file; looking at it takes no lock.
        return bool(self._h5.id.id)

    @property
    def is_over(self) -> bool:
        """Whether that file is closed, with nothing left to write."""
        return not self.is_open and not self._dirty

    def explain(self) -> WritePlan:
        """How the dataset is written."""
        with self._turn():
            native = self._writer()
            encoded = native.reason is None
            committed, read = native.stats if encoded else (0, 0)
            return {
                "path": "chunked" if encoded else "libhdf5",
                "reason": native.reason,
                "by_libhdf5": direct.by_libhdf5(self._h5) if encoded else None,
                "threads": _native.thread_count() if encoded else 1,
                "encoder": native.tuning if encoded else None,
                "held_nbytes": native.held_nbytes if encoded else 0,
                "dirty_chunks": native.dirty_chunks if encoded else 0,
                "committed_chunks": committed,
                "read_chunks": read,
            }

    @property
    def held_nbytes(self) -> int:
        """Bytes of dirty chunks."""
        return self._native.held_nbytes if self._dirty and self._native is not None else 0

    # Underneath ---------------------------------------------------------------------

    def _settle_reached(self) -> None:
        """Commit what waits and libhdf5 is about to write over: of a virtual dataset, anywhere."""
        self.settle()
        # Nobody waits for this turn: a virtual dataset has no dirty chunks.
        pending.settle_reached(self._h5)

    def _fitting(self, array: Array) -> Array:
        """The values as libhdf5 takes them: into a virtual dataset it writes them unconverted."""
        return converted(array, self._h5.dtype) if self._h5.is_virtual else array

    def _converts_to(self, index: Any) -> np.dtype[Any] | None:
        """Into which dtype NumPy makes what is no array one, as h5py has it; None: as it is."""
        _, names = without_names(index)
        dtype: np.dtype[Any] | None = self._h5.dtype if self._h5 else None
        if names and dtype is not None:
            # Of several, and of no field, h5py says what is wrong.
            fields = dtype.fields
            known = len(names) == 1 and fields is not None and names[0] in fields
            dtype = fields[names[0]][0] if known and fields is not None else None
        if dtype is None or dtype.base.kind == "O":
            return None
        return dtype.base

    def _turn(self) -> contextlib.AbstractContextManager[Any]:
        """Within it no other thread writes."""
        self._check_process()
        if self._follows:
            pending.settle_left(self.key, self.label)
            self._follows = False
        return self._turn_at_once() if phil._is_owned() else self._lock

    @contextlib.contextmanager
    def _turn_at_once(self) -> Iterator[None]:
        # Who holds h5py's lock, as `visititems` does, is waited for by those who write.
        if not self._lock.acquire(blocking=False):
            raise pending.busy(self.label, "write without it, not within a visit")
        try:
            yield
        finally:
            self._lock.release()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise UsageError(
                f"{self.label}: it was opened by the process that this one was forked from: "
                "write in the parent, or open the file here"
            )

    def _check_open(self) -> None:
        if not self._h5:
            if self._dirty and self._native is not None:
                chunks = self._native.dirty_chunks
                self._native.forget()
                self._dirty = False
                raise CannotWriteError(pending.lost(self.label, chunks))
            raise UsageError("the dataset's file is closed")

    def _writer(self) -> _native.Writer:
        """The engine's part, which knows the dataset's present shape."""
        self._check_open()
        pending.refuse_late(self.key[:2], self.label)
        native, shape = self._native, self._h5.shape
        if not self._dirty and self._is_only_chunk(shape):
            # How libhdf5 has stored it by now, maybe without a filter, decides who writes it next.
            native = None
        if native is not None and shape == self._described:
            return native
        if native is not None and native.reason is None:
            smaller = self._follow(native)
            if not smaller:
                self._described = shape
                return native
            # The reasons against encoding here may have become true.
            self.settle()
        with phil:
            h5, dtype = self._h5, self._h5.dtype
            in_memory = memory_type(dtype)
            native = _native.Writer(
                library(), h5.id.id, in_memory.id, dtype, self.label, effort=self.effort
            )
        if self._left is not None:
            self._left.drop()
            self._left = None
        if native.reason is None:
            self._left = pending.PendingWork(self, native, self._h5)
        self._native, self._described = native, shape
        return native

    def _is_only_chunk(self, shape: Shape) -> bool:
        """Whether there is one chunk, for which libhdf5 may leave filters out."""
        chunks = self._h5.chunks
        if not chunks or any(n > length for n, length in zip(shape, chunks, strict=True)):
            return False
        if self._leaves_out is None:
            self._leaves_out = unfiltered_edges.may_leave_out(self._h5)
        return self._leaves_out

    def _follow(self, native: _native.Writer) -> bool:
        """Take over the dataset's shape after any change; return whether it became smaller."""
        shape, former = self._h5.shape, native.shape
        native.set_shape(shape)
        return any(new < old for new, old in zip(shape, former, strict=True))

    def _complete_edges(self, native: _native.Writer, new: Shape) -> None:
        """Write chunks again that may lack what lies beyond the dataset, where that changes."""
        # Once for each axis: what is written afterwards is whole.
        h5 = self._h5
        axes = {axis for axis, n in enumerate(h5.shape) if n != new[axis]} - self._whole_axes
        if not axes:
            return
        try:
            origins: Iterable[Sequence[int]] = library().written_origins(h5.id.id, sys.maxsize)
        except CorruptDataError:
            # Of a file in memory libhdf5 may list chunks under wrong coordinates: take all.
            origins = product(*map(range, repeat(0), h5.shape, h5.chunks))
        short = []
        for origin in origins:
            ends = [at + n for at, n in zip(origin, h5.chunks, strict=True)]
            changes = any(
                origin[axis] < min(h5.shape[axis], new[axis]) < ends[axis] for axis in axes
            )
            if changes and direct.may_be_short(h5, origin):
                short.append(tuple(map(slice, origin, map(min, ends, h5.shape))))
        self._whole_axes |= axes
        if not short:
            return
        # The values are read by libhdf5, which must have those that wait.
        self.settle()
        for box in short:
            understood = assignment(h5, box, h5[box], self.label)
            assert understood is not None, "a box of a dataset's own values"
            self._write(native, understood)
        # What a reader of the file finds now is what was there, until it is flushed.
        self._flush()

    def _set_extent(self, new: Shape | None, size: Any, axis: int | None) -> None:
        """Let libhdf5 resize it; with unfiltered chunks at the edge it needs help."""
        h5 = self._h5
        if new is None or not self._has_unfiltered_edges():
            h5.resize(size, axis)
            return
        unfiltered_edges.make_index(h5)
        longer = unfiltered_edges.lengthen(h5, new)
        try:
            h5.resize(size, axis)
        except BaseException:
            unfiltered_edges.shorten(h5, longer)
            raise
        # How libhdf5 has stored an only chunk now decides who writes it next.
        self._native = None

    def _has_unfiltered_edges(self) -> bool:
        """Whether a chunk at the edge is stored in another way once it is none any more."""
        if self._unfiltered_edges is None:
            with phil:
                self._unfiltered_edges = library().unfiltered_partial_chunks(self._h5.id.id)
        return self._unfiltered_edges

    def _array(self, value: Any) -> Array:
        dtype = None if isinstance(value, np.ndarray) else lowlevel.element_of(self._h5.dtype)[0]
        return np.asarray(value, dtype=dtype)

    def _write(self, native: _native.Writer, assigned: Assignment) -> None:
        """Write elements that need no conversion, and may have to be broadcast."""
        self._dirty = True
        parts = parts_of(assigned.selection, assigned.elements, self._h5, self.label)
        for part, some in parts:
            native.write(part, some, assigned.members)
        pending.balance(self)

    def _through_h5py(self, write: Callable[[], Any]) -> None:
        """Write; what libhdf5 cannot is said by name."""
        unwritten.keep(self._h5)
        try:
            write()
        except OSError as error:
            if is_read_only(error):
                raise read_only(self.label) from error
            raise like(CannotWriteError, error)(
                f"{self.label}: libhdf5 cannot write it: {error}; a part of it may be written"
            ) from error
        except (IndexError, TypeError, ValueError) as error:
            if isinstance(error, ChunkwiseError | UnicodeError):
                raise
            raise SelectionError(f"{self.label}: {hdf5_reason(error)}") from error


def sync(file: h5py.File) -> None:
    """Sync a flushed file to storage, if it is a plain local one."""
    if file.driver == "sec2":
        os.fsync(cast("int", file.id.get_vfd_handle()))
