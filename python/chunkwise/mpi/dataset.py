"""How do ranks write their parts of a dataset?"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise.errors import SelectionError, UsageError
from chunkwise.grammar import Shape
from chunkwise.grammar.boxes import Box
from chunkwise.mpi.boxes import Chosen, chosen, overlapping
from chunkwise.mpi.committing import Chunked, Contiguous, Made
from chunkwise.mpi.home import Home, ParallelAttributes
from chunkwise.mpi.session import described
from chunkwise.selection import Selection
from chunkwise.writing.values import appended, as_stored, axis_of, converted, resized

Array = npt.NDArray[Any]


class ParallelDataset:
    """A dataset that ranks write together; made by `ParallelGroup.create_dataset`.

    All methods are collective: all ranks call them, in the same order.

    Attributes
    ----------
    name : str
        Its path in the file.
    attrs : ParallelAttributes
        Its attributes, which rank 0 writes.
    """

    def __init__(self, home: Home, made: Made) -> None:
        self._home, self._made = home, made
        self._shape = made.shape
        self.name = made.path
        self.attrs = ParallelAttributes(home, made.path)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its present shape."""
        return self._shape

    @property
    def maxshape(self) -> tuple[int | None, ...]:
        """The most that it may grow to; None for no limit."""
        return self._made.maxshape

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self._shape)

    @property
    def dims(self) -> tuple[Axis, ...]:
        """Its dimensions: their labels and scales."""
        return tuple(Axis(self._home, self.name, axis) for axis in range(self.ndim))

    def __getitem__(self, index: Any) -> NoReturn:
        """Refuse to read: chunks are on several ranks until the file is closed.

        Raises
        ------
        chunkwise.errors.UsageError
            Always.
        """
        raise UsageError(
            f"{self._where}: is not read while ranks write it; close the file, and open it with "
            "chunkwise.open"
        )

    def __setitem__(self, index: Any, part: npt.ArrayLike | None) -> None:
        """Write this rank's part (collective).

        Boxes of ranks must not overlap within a call; a later call may write the
        same elements again.

        Parameters
        ----------
        index
            Integers, slices of step 1 and an Ellipsis, or a selection that is one block of
            neighbouring elements, such as `chunkwise.hyperslab` makes.
        part : array_like or None
            Of the selection's shape, or broadcast to it; None if this rank has nothing
            to write, with any index.

        Raises
        ------
        chunkwise.errors.SelectionError
            For an index that does not fit the dataset, or is no such block (an IndexError,
            ValueError and TypeError).
        chunkwise.errors.UsageError
            When parts overlap, or the dataset is one that ranks cannot write.
        chunkwise.errors.CannotWriteError
            When a chunk cannot be put into the file; the file is given up (an OSError).
        chunkwise.mpi.ranks.OtherRankFailedError
            When another rank failed, at this call or before.
        """
        elements: Array | None = None
        box: Box | None = None
        error: Exception | None = None
        try:
            stored = self._stored()
            found = None if part is None else chosen(self._shape, index, self._where)
            if found is not None:
                box, elements = found.box, self._elements(part, found, stored)
        except Exception as wrong:
            error = wrong
        boxes = self._home.session.meet(f"writing to {self.name}", box, error=error)
        both = overlapping(boxes)
        if both is not None:
            one, other = (boxes[rank] for rank in both)
            assert one is not None
            assert other is not None
            raise UsageError(
                f"{self._where}: ranks {both[0]} and {both[1]} both write {one.common(other)}: "
                "within a call, each element is written by one rank; nothing was written"
            )
        self._put(boxes, elements)

    def write(self, selection: Selection | None, part: npt.ArrayLike | None = None) -> None:
        """Write this rank's part, given by a selection (collective).

        Parameters
        ----------
        selection : Selection or None
            One block, such as `chunkwise.hyperslab` makes; None if this rank has nothing to write.
        part : array_like, optional
            Of the selection's shape, or broadcast to it.

        Raises
        ------
        chunkwise.errors.ChunkwiseError
            As ``d[...] = part``.
        """
        self[selection if selection is not None else ...] = None if selection is None else part

    def append(self, part: npt.ArrayLike | None, axis: int = 0) -> None:
        """Grow by the parts of all ranks along an axis, in the order of the ranks (collective).

        Parameters
        ----------
        part : array_like or None
            Of the dataset's shape except along `axis`; without that axis it is one row.  None
            adds nothing.
        axis : int
            The dimension that grows; equal on all ranks.

        Raises
        ------
        chunkwise.errors.SelectionError
            When an array does not fit.
        chunkwise.errors.UsageError
            When the dataset cannot grow so far.
        chunkwise.errors.CannotWriteError
            When a chunk cannot be put into the file; the file is given up.
        """
        elements: Array | None = None
        rows = 0
        error: Exception | None = None
        try:
            stored = self._stored()
            axis = axis_of(axis, self._shape, self._where)
            if part is not None:
                given = _array(part, stored.dtype, self._where)
                given = appended(given, self._shape, axis, self._where)
                elements = _as_stored(given, stored.dtype, self._where)
                rows = elements.shape[axis]
        except Exception as wrong:
            error = wrong
        what = f"appending to {self.name}"
        every = self._home.session.meet(what, rows, same=f"axis {axis}", error=error)
        length = self._shape[axis]
        begin = length + sum(every[: self._home.session.comm.rank])
        self._grow((*self._shape[:axis], length + sum(every), *self._shape[axis + 1 :]))
        self[(*(slice(None),) * axis, slice(begin, begin + rows))] = elements

    def resize(self, size: Any, axis: int | None = None) -> None:
        """Make it larger (collective).

        Parameters
        ----------
        size : tuple of int or int
            The new shape; with `axis`, the new length of that dimension alone.  Equal on all
            ranks.
        axis : int, optional
            Which dimension.

        Raises
        ------
        chunkwise.errors.UsageError
            When the dataset has no chunks, cannot have this shape, or would become smaller.
        """
        error: Exception | None = None
        new = self._shape
        try:
            self._stored()
            new = self._resized(size, axis)
        except Exception as wrong:
            error = wrong
        what = f"resizing {self.name}"
        self._home.session.meet(what, None, same=f"to {described(new)}", error=error)
        self._grow(new)

    def _resized(self, size: Any, axis: int | None) -> Shape:
        shape, new = self._shape, resized(self._shape, size, axis)
        if new is None:
            raise UsageError(f"{self._where}: cannot be resized from {shape} to {described(size)}")
        if any(a < b for a, b in zip(new, shape, strict=True)):
            raise UsageError(
                f"{self._where}: cannot become smaller while ranks write it ({shape} to {new}); "
                "close the file, and resize it with chunkwise.open(path, 'r+')"
            )
        limits = zip(new, self.maxshape, strict=True)
        if any(most is not None and n > most for n, most in limits):
            raise UsageError(
                f"{self._where}: cannot be resized from {shape} to {new}; its largest shape is "
                f"{self.maxshape}"
            )
        return new

    def _grow(self, shape: Shape) -> None:
        if shape == self._shape:
            return
        home = self._home
        stored = home.stored(self._made)
        self._resized(shape, None)

        def work() -> None:
            home.resize(self._made, shape)

        home.session.on_first(work)
        stored.grow(shape)
        self._shape = shape

    def make_scale(self, name: str = "") -> None:
        """Make it a dimension scale, as ``h5py.Dataset.make_scale`` does (collective)."""
        what, home, path = f"make_scale of {self.name}", self._home, self.name
        home.changed(what, described(name), lambda: home.h5[path].make_scale(name))

    # Underneath ------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        return self._home.where("dataset", self.name)

    def _stored(self) -> Chunked | Contiguous:
        return self._home.stored(self._made)

    def _elements(self, part: Any, found: Chosen, stored: Chunked | Contiguous) -> Array:
        """Give a part as it is stored, in the shape of its box."""
        given = _as_stored(_array(part, stored.dtype, self._where), stored.dtype, self._where)
        try:
            spread = np.broadcast_to(given, found.given)
        except ValueError:
            raise SelectionError(
                f"{self._where}: an array of shape {given.shape} cannot be written to a selection "
                f"of shape {found.given}"
            ) from None
        return spread[tuple(None if gone else slice(None) for gone in found.dropped)]

    def _put(self, boxes: list[Box | None], elements: Array | None) -> None:
        try:
            self._stored().write(boxes, elements)
            self._home.balance()
        except BaseException as wrong:
            # Others learn it at the next call.
            self._home.session.lose(wrong)
            raise

    def _write_shared(self, data: Any) -> None:
        """Write data that all ranks have, each a part of it: rows of whole chunks."""
        comm, rows = self._home.session.comm, self._stored().rows()
        share = math.ceil(math.ceil(self._shape[0] / rows) / comm.size) * rows
        begin, end = (min(self._shape[0], share * n) for n in (comm.rank, comm.rank + 1))
        mine = slice(begin, end)
        self[mine] = np.asarray(data).reshape(self._shape)[mine]

    def __repr__(self) -> str:
        return f"<ParallelDataset {self.name!r}: shape {self._shape}>"


class Axis:
    """A dimension of a dataset: its label and its scales, which rank 0 writes."""

    def __init__(self, home: Home, path: str, axis: int) -> None:
        self._home, self._path, self._axis = home, path, axis

    def _set_label(self, text: str) -> None:
        def work() -> None:
            self._home.h5[self._path].dims[self._axis].label = text

        self._home.changed(f"labelling {self._path}", f"{self._axis}, {described(text)}", work)

    label = property(None, _set_label, doc="Its label, to be set (collective).")

    def attach_scale(self, scale: ParallelDataset) -> None:
        """Give it a dimension scale, as ``h5py`` does (collective)."""

        def work() -> None:
            self._home.h5[self._path].dims[self._axis].attach_scale(self._home.h5[scale.name])

        what = f"attaching a scale to {self._path}"
        self._home.changed(what, f"{self._axis}, {scale.name}", work)


def _array(value: Any, dtype: np.dtype[Any], where: str) -> Array:
    """Make an array of the given values."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, h5py.Dataset):
        return np.asarray(value)
    try:
        return np.asarray(value, dtype=None if hasattr(value, "__array__") else dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{where}: the values are no array of {dtype}: {error}") from None


def _as_stored(given: Array, dtype: np.dtype[Any], where: str) -> Array:
    """Give the same values as the dataset stores them."""
    stored = as_stored(given, dtype)
    if stored is None:
        stored = converted(given, dtype)
    if stored.dtype != dtype:
        raise UsageError(f"{where}: values of {given.dtype} cannot be stored as {dtype}")
    return stored
