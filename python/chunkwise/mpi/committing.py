"""How does a rank commit its part of a dataset: as chunks that it encodes, or as runs of bytes?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any, Final, NamedTuple

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5t

from chunkwise import system
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.grammar import Effort, Shape
from chunkwise.grammar.boxes import Box, runs
from chunkwise.mpi.boxes import Owners, selection_of
from chunkwise.mpi.encoding import Likeness
from chunkwise.mpi.ranks import Comm, wait_all
from chunkwise.mpi.serving import Ask, Questions
from chunkwise.newfile.index import Table

Array = npt.NDArray[Any]
# Bytes of an array copied at a time, if memory does not hold it in the order of the file.
_COPIED_NBYTES: Final = 32 << 20
# Most bytes of a piece that is sent, unless it is part of a single chunk.
_PIECE_NBYTES: Final = 16 << 20
# MPI counts in 32 bits.
_MOST_NBYTES: Final = 1 << 30
_TAG: Final = 17


class Made(NamedTuple):
    """A new dataset, as rank 0 describes it."""

    number: int  # What ranks call it
    path: str  # Its name
    shape: Shape  # In elements
    maxshape: tuple[int | None, ...]
    effort: Effort
    image: bytes | None = None  # Of a chunked dataset: what makes a likeness
    # Of a contiguous one: its type, as libhdf5 encodes it; its offset in the file.
    encoded_type: bytes | None = None
    offset: int | None = None  # None if it has no elements
    reason: str | None = None  # Why ranks cannot write it
    rest: bool = False  # Whether data that it is made with is still to be written


class _Places(Questions):
    """The index of a dataset, which rank 0 keeps; as `_native` asks for it."""

    def __init__(self, ask: Ask, number: int) -> None:
        super().__init__(ask)
        self._number = number

    def allocate(self, chunks: Table) -> Any:
        return self._answer("allocate", self._number, chunks)

    def find(self, origins: Table) -> Any:
        return self._answer("find", self._number, origins)


class Chunked:
    """One rank's part of a chunked dataset."""

    def __init__(
        self, made: Made, label: str, comm: Comm, ask: Ask, descriptor: int, budget_nbytes: int
    ) -> None:
        assert made.image is not None
        self._comm, self._label = comm, label
        self._like = Likeness(made.image, label)
        self._places = _Places(ask, made.number)
        try:
            chunk_nbytes = math.prod(self._like.dataset.chunks) * self._like.dataset.dtype.itemsize
            self._writer = self._like.writer(
                (self._places, descriptor),
                effort=made.effort,
                # Or each part of a chunk would be encoded for itself.
                budget_nbytes=max(budget_nbytes, chunk_nbytes),
            )
        except BaseException:
            self._like.close()
            raise
        self.dtype: np.dtype[Any] = self._like.dataset.dtype
        self.shape = made.shape
        self._owners = Owners(self.shape, self._like.dataset.chunks)

    @property
    def held_nbytes(self) -> int:
        """Bytes of chunks that wait for what they lack."""
        return self._writer.held_nbytes

    def write(self, boxes: list[Box | None], part: Array | None) -> None:
        """Write this rank's box, and the others' parts of its chunks (collective)."""
        comm, owners = self._comm, self._owners
        owners.take(boxes)
        own = boxes[comm.rank]
        limit = max(1, _PIECE_NBYTES // max(1, self.dtype.itemsize))

        def give(piece: Box) -> Array:
            assert own is not None
            assert part is not None
            return np.ascontiguousarray(part[piece.within(own).slices])

        _swap(
            comm,
            lambda rank: owners.pieces(own, rank, limit),
            lambda rank: owners.pieces(boxes[rank], comm.rank, limit),
            give,
            self._put,
            self.dtype,
        )
        if own is None or part is None:
            return
        # Whole where it lies in memory as it is, so that all threads have enough to do.
        most = own.size if part.flags.c_contiguous else _COPIED_NBYTES // self.dtype.itemsize
        for piece in owners.pieces(own, comm.rank, max(1, most)):
            self._put(piece, give(piece))

    def _put(self, box: Box, elements: Array) -> None:
        with self._places.raising():
            self._writer.write(selection_of(self.shape, box, self._label), elements)

    def flush(self) -> None:
        """Write chunks that lack something, with what the file has in its place."""
        with self._places.raising():
            self._writer.flush()

    def flushed(self) -> None:
        """Note that all ranks have flushed."""
        self._owners.forget()

    def grow(self, shape: Shape) -> None:
        """Follow the dataset, which is larger now."""
        self.shape = shape
        self._writer.set_shape(shape)
        self._owners.grow(shape)

    def rows(self) -> int:
        """Give the length of chunks along the slowest dimension."""
        return int(self._like.dataset.chunks[0])

    def close(self) -> None:
        """Let it go, with all that waits."""
        self._writer.forget()
        self._like.close()


class Contiguous:
    """One rank's part of a contiguous dataset, whose bytes have their places already."""

    held_nbytes = 0

    def __init__(self, made: Made, label: str, rank: int, descriptor: int) -> None:
        assert made.encoded_type is not None
        stored = h5t.decode(made.encoded_type)
        self._label, self._rank = label, rank
        self._descriptor, self._offset = descriptor, made.offset
        self.shape = made.shape
        self.dtype: np.dtype[Any] = stored.dtype
        enum = h5py.check_enum_dtype(self.dtype) is not None
        if self.dtype.hasobject or not h5t.py_create(self.dtype, logical=enum).equal(stored):
            raise UsageError(
                f"{label}: cannot be written by several processes: its type is not stored as "
                "NumPy has it; give it as data, or write it with on_first"
            )

    def write(self, boxes: list[Box | None], part: Array | None) -> None:
        """Write the box of this rank."""
        box = boxes[self._rank]
        if box is None or part is None or self._offset is None:
            return
        strides = np.cumprod([1, *self.shape[:0:-1]])[::-1] * self.dtype.itemsize
        for run in runs(box, self.shape):
            raw = np.ascontiguousarray(part[run.within(box).slices]).reshape(-1).view(np.uint8)
            at = self._offset + sum(int(s) * a for s, a in zip(strides, run.start, strict=True))
            try:
                system.pwrite_all(self._descriptor, raw.data, at)
            except OSError as wrong:
                raise CannotWriteError(
                    f"{self._label}: cannot be written: {wrong.strerror or wrong}"
                ) from wrong

    def flush(self) -> None:
        """There is no pending data."""

    def flushed(self) -> None:
        """There is no pending data."""

    def grow(self, _: Shape) -> None:
        """Raise UsageError: it has no chunks."""
        raise UsageError(f"{self._label}: contiguous data cannot grow; give it chunks")

    def rows(self) -> int:
        """Give the rows that should stay with one rank: any."""
        return 1

    def close(self) -> None:
        """Have nothing to drop."""


# --- pieces of boxes on the way to the ranks that encode them ------------------------


def _swap(
    comm: Comm,
    outgoing: Callable[[int], Iterator[Box]],
    incoming: Callable[[int], Iterator[Box]],
    give: Callable[[Box], Array],
    take: Callable[[Box, Array], None],
    dtype: np.dtype[Any],
) -> None:
    """Send pieces to their owners, and receive those of others (collective)."""
    # In turn k, each rank sends to the k-th after it, and receives from the k-th before it.  Both
    # know all pieces in their order, so that nothing but elements is sent, and one piece each way
    # is in memory.  A rank whose `take` fails receives what is left all the same, as others wait
    # for it to be received.
    failure: BaseException | None = None
    for turn in range(1, comm.size):
        to, by = (comm.rank + turn) % comm.size, (comm.rank - turn) % comm.size
        for sent, received in zip_longest(outgoing(to), incoming(by)):
            requests = [] if sent is None else _messages(comm, give(sent), to, sends=True)
            if received is not None:
                elements = np.empty(received.shape, dtype)
                wait_all(_messages(comm, elements, by, sends=False))
                if failure is None:
                    try:
                        take(received, elements)
                    except Exception as wrong:
                        failure = wrong
            wait_all(requests)
    if failure is not None:
        raise failure


def _messages(comm: Any, elements: Array, other: int, *, sends: bool) -> list[Any]:
    from mpi4py import MPI

    raw = elements.reshape(-1).view(np.uint8)
    begin = comm.Isend if sends else comm.Irecv
    parts = (raw[at : at + _MOST_NBYTES] for at in range(0, raw.size, _MOST_NBYTES))
    return [begin([part, MPI.BYTE], other, _TAG) for part in parts]
