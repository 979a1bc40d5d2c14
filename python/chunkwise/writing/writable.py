"""How does a program write data?  The writing half of `Dataset`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py

from chunkwise.files import unwritten
from chunkwise.files.opening_writable import is_read_only, read_only
from chunkwise.handles import pending
from chunkwise.handles.handle import label_of
from chunkwise.selection import Selection
from chunkwise.writing import direct
from chunkwise.writing.dataset_writing import WritePlan, Writing, writing_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from chunkwise.grammar import Effort

phil = h5py._objects.phil


class Writable:
    """Writes in parallel if possible; libhdf5 does the rest.

    A partly written chunk waits in memory, within a budget, until it is complete.  It is in
    the file after `flush`, after the file is closed or flushed, also by h5py, and
    before it is read here, under any name, link or virtual dataset.  Call `flush` before an
    h5py object that is not chunkwise's, or another process, reads or writes.
    """

    _writing: Writing | None = None
    # Whether its elements lie in other datasets; found out when it matters.
    _virtual: bool | None = None

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write as h5py does.

        Integers, forward slices, an Ellipsis, and one list or mask, with numbers that NumPy
        converts as libhdf5 does, are written in parallel; everything else through h5py.

        Parameters
        ----------
        index
            An index between the brackets, or a selection, such as `chunkwise.hyperslab`
            makes, which writes as in `write`.
        value : array_like
            Of the selection's shape, or broadcast to it.

        Raises
        ------
        chunkwise.errors.SelectionError
            For an index that does not fit the dataset (an IndexError, ValueError and TypeError).
        chunkwise.errors.CannotWriteError
            When a chunk cannot be put into the file: names it and says what is in the file (an
            OSError).
        chunkwise.errors.CorruptDataError
            When a chunk is written in part, and the rest of it cannot be read (an OSError).
        chunkwise.errors.UsageError
            When the file is closed.
        """
        if isinstance(index, Selection):
            self._written().write(index, value)
        elif self._writing is not None or not direct.put(self, index, value):
            self._written().put(index, value, self)

    def write(self, selection: Selection | None, value: npt.ArrayLike) -> None:
        """Write a hyperslab, a union of several, or points.

        Parameters
        ----------
        selection : Selection or None
            See `chunkwise.hyperslab`, `chunkwise.union` and `chunkwise.points`; None selects
            everything.
        value : array_like
            Of the selection's shape, as `read` gives it, or a scalar.  If a point is named
            several times, one of its values stays.

        Raises
        ------
        chunkwise.errors.SelectionError
            When the selection does not fit the dataset, or the array the selection.
        chunkwise.errors.CannotWriteError
            When a chunk cannot be put into the file.
        """
        self._written().write(selection, value)

    def append(self, value: npt.ArrayLike, axis: int = 0) -> None:
        """Grow by an array along an axis, and write it there.

        Chunks at the dataset's end wait until they are full, so that each is encoded once.

        Parameters
        ----------
        value : array_like
            Of the dataset's shape except along `axis`; without that axis it is one row.
        axis : int
            The dimension that grows.

        Raises
        ------
        chunkwise.errors.SelectionError
            When the array does not fit.
        chunkwise.errors.UsageError
            When the dataset cannot grow so far.
        chunkwise.errors.CannotWriteError
            When a chunk cannot be put into the file; the dataset has its new shape then.
        """
        self._written().append(value, axis)

    def write_direct(self, source: Any, source_sel: Any = None, dest_sel: Any = None) -> None:
        """Write from an array, as `h5py.Dataset.write_direct` does.

        libhdf5 does it, unless it may leave out filters of the dataset.

        Parameters
        ----------
        source : ndarray
            C-contiguous.
        source_sel, dest_sel : optional
            Indices such as ``numpy.s_[2:5]``, of `source` and of the dataset; None: everything.
        """
        as_put = direct.assigned(self, source, source_sel, dest_sel)
        if as_put is not None:
            self[as_put[0]] = as_put[1]
            return
        self._settle()
        unwritten.keep(self)
        try:
            h5py.Dataset.write_direct(self, source, source_sel, dest_sel)
        except OSError as error:
            if is_read_only(error):
                raise read_only(label_of(self)) from error
            raise

    def resize(self, size: Any, axis: int | None = None) -> None:
        """Change the shape, as ``h5py.Dataset.resize`` does.

        Parameters
        ----------
        size : tuple of int or int
            The new shape; with `axis`, of that dimension alone.
        axis : int, optional
            Which dimension.

        Raises
        ------
        chunkwise.errors.UsageError
            When the dataset is not chunked, or cannot have this shape.
        """
        if self._writing is not None or not direct.resize(self, size, axis):
            self._written().resize(size, axis)

    def flush(self) -> None:
        """Write everything to the file, and the file to storage (``fsync``).

        Raises
        ------
        chunkwise.errors.CannotWriteError
            When it cannot be written; chunks that are not in the file stay in memory.
        """
        self._written().flush()

    def _flush_outside(self, file: tuple[int, ...]) -> None:
        """Flush what this process has written, unless that is in `file`."""
        writing = self._writing
        if writing is not None and not writing.is_over and writing.key[:2] != file:
            writing.flush()

    def explain_write(self) -> WritePlan:
        """Say how the dataset is written, as data.

        Returns
        -------
        WritePlan
            ``path`` ("chunked" or "libhdf5") and ``reason`` (why libhdf5, or None);
            ``by_libhdf5``, the writes that libhdf5 does nevertheless, as fast (None: none);
            ``threads``; ``encoder``, the chosen one for deflate, and its size beside zlib's
            (None before the first chunk, or without a choice); ``held_nbytes`` and
            ``dirty_chunks`` that wait in memory; ``committed_chunks`` so far, and ``read_chunks``
            among them, whose stored bytes had to be read first.
        """
        return self._written().explain()

    @property
    def writer_reason(self) -> str | None:
        """Why libhdf5 writes the dataset; None if it is written in parallel."""
        return self.explain_write()["reason"]

    def _written(self) -> Writing:
        """The writer of the dataset, which all share who write to it."""
        if self._writing is None or (self._writing.is_over and self):
            self._writing = writing_of(self)
        return self._writing

    def _settle(self) -> None:
        """Give libhdf5 all pending data that a read may touch."""
        # Within h5py's own methods nobody is waited for: who writes may wait for its lock.
        blocking = not phil._is_owned()
        if self._virtual is None:
            self._virtual = getattr(self, "is_virtual", False)
        if self._virtual:
            pending.settle_all(blocking)
            return
        if self._writing is None or self._writing.is_over:
            self._writing = pending.known(self)
        if self._writing is not None:
            self._writing.settle(blocking)

    def _set_effort(self, effort: Effort) -> None:
        """Say how deflate's encoder is chosen, before anything is written."""
        self._written().effort = effort
        if effort != "as-stated":
            direct.encode_fast(self)
