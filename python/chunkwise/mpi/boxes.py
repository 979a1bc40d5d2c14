"""Which box of a dataset does each rank write, do boxes overlap, and who encodes a chunk?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import add, mul
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from chunkwise import _native
from chunkwise.errors import SelectionError
from chunkwise.grammar import Shape
from chunkwise.grammar.boxes import Box, chunk_counts
from chunkwise.selecting import indexing

# A row for each box, a column for each dimension.
_Corners = npt.NDArray[np.int64]
# So few boxes are compared at once.
_FEW: Final = 16


class Chosen(NamedTuple):
    """What a rank writes."""

    box: Box  # The elements
    given: Shape  # The shape in which they are given, without dimensions of a single integer
    dropped: tuple[bool, ...]  # Which dimensions those are


def chosen(shape: Shape, index: Any, label: str) -> Chosen | None:
    """Understand what stands between the brackets."""
    selection = indexing.resolve(shape, index, label)
    if selection is not None and 0 in selection.shape:
        return None
    slab = None if selection is None else selection.hyperslab
    if selection is None or slab is None:
        raise _no_block(label)
    begin, end = [], []
    for start, stride, count, block in zip(*slab, strict=True):
        if count > 1 and stride != block:
            raise _no_block(label)
        begin.append(start)
        end.append(start + count * block)
    box = Box.between(tuple(begin), tuple(end))
    return Chosen(box, tuple(selection.shape), tuple(selection.dropped))


def _no_block(label: str) -> SelectionError:
    return SelectionError(
        f"{label}: each rank writes one block of neighbouring elements, by integers, slices of "
        "step 1 and an Ellipsis; write several blocks one after the other"
    )


def selection_of(shape: Shape, box: Box, label: str) -> _native.Selection:
    """Give a box as the engine takes it."""
    ones = [1] * len(shape)
    lengths = list(box.shape)
    slab = (list(box.start), [max(1, n) for n in lengths], ones, lengths)
    return _native.select_hyperslabs(shape, slab, label)


def overlapping(boxes: Sequence[Box | None]) -> tuple[int, int] | None:
    """Find two ranks whose boxes have elements in common."""
    there = [(rank, box) for rank, box in enumerate(boxes) if box is not None]
    if len(there) < 2:
        return None
    begin = np.array([box.start for _, box in there], np.int64)
    end = np.array([box.end for _, box in there], np.int64)
    # Boxes that lie apart along a dimension are separated; what is left is compared pairwise.
    groups = [np.arange(len(there))]
    while groups:
        group = groups.pop()
        for axis in range(begin.shape[1]) if len(group) > _FEW else ():
            ordered = group[np.argsort(begin[group, axis], kind="stable")]
            reached = np.maximum.accumulate(end[ordered, axis])
            cuts = np.flatnonzero(begin[ordered[1:], axis] >= reached[:-1]) + 1
            if len(cuts):
                groups += np.split(ordered, cuts)
                break
        else:
            if _first_two(begin[group], end[group]) is not None:
                # Which ranks come first, of all.
                one, other = _first_two(begin, end) or (0, 0)
                return there[one][0], there[other][0]
    return None


def _first_two(begin: _Corners, end: _Corners) -> tuple[int, int] | None:
    """Compare each box with those after it."""
    for one in range(len(begin) - 1):
        rest = slice(one + 1, None)
        meets = ((begin[rest] < end[one]) & (begin[one] < end[rest])).all(axis=1)
        if meets.any():
            return one, one + 1 + int(meets.argmax())
    return None


def in_chunks(box: Box, chunk: Shape) -> Box:
    """Give the chunks that a box touches, counted along each dimension."""
    begin = tuple(a // n for a, n in zip(box.start, chunk, strict=True))
    return Box.between(begin, chunk_counts(box.end, chunk))


def covered(box: Box, chunk: Shape) -> npt.NDArray[np.int64]:
    """Count the elements of a box in each chunk that it touches."""
    counts: npt.NDArray[np.int64] = np.ones((), np.int64)
    for a, b, n in zip(box.start, box.end, chunk, strict=True):
        edges = np.arange(a // n, -(-b // n) + 1, dtype=np.int64) * n
        along = np.minimum(edges[1:], b) - np.maximum(edges[:-1], a)
        counts = np.multiply.outer(counts, along)
    return counts


Numbers = npt.NDArray[np.int32]


class Owners:
    """The rank that each chunk belongs to, since it was written to for the first time."""

    # A chunk goes to the rank that covers most of it, and stays there until `forget`.

    def __init__(self, shape: Shape, chunk: Shape) -> None:
        self.shape, self.chunk = shape, chunk
        # One more than the rank, 0 for nobody; its pages take memory when they are written to.
        self._ranks: Numbers = np.zeros(chunk_counts(shape, chunk), np.int32)
        self._known = False

    def take(self, boxes: Sequence[Box | None]) -> None:
        """Give the chunks that boxes touch to ranks, as far as they have none."""
        self._known = True
        flat, most, ranks = [], [], []
        for rank, box in enumerate(boxes):
            if box is None:
                continue
            touched = in_chunks(box, self.chunk)
            held = self._ranks[touched.slices]
            free = held == 0
            if not free.any():
                continue
            inner = self._whole(box)
            if inner is not None:
                within = inner.within(touched).slices
                # Nobody else has a part of these.
                held[within][free[within]] = rank + 1
                free[within] = False
                if not free.any():
                    continue
            at = free.nonzero()
            counts = covered(box, self.chunk)
            places = tuple(map(add, at, touched.start))
            flat.append(np.ravel_multi_index(places, self._ranks.shape))
            most.append(counts[at])
            ranks.append(np.full(len(at[0]), rank + 1, np.int32))
        if flat:
            chunks, counts = np.concatenate(flat), np.concatenate(most)
            numbers = np.concatenate(ranks)
            # The last that is written stays: of most elements, and of the lowest rank.
            order = np.lexsort((-numbers, counts))
            self._ranks.reshape(-1)[chunks[order]] = numbers[order]

    def _whole(self, box: Box) -> Box | None:
        """Give the chunks that lie in a box with all their elements."""
        begin = chunk_counts(box.start, self.chunk)
        # At the dataset's end a chunk is whole without what lies beyond.
        end = tuple(
            -(-b // n) if b == most else b // n
            for b, n, most in zip(box.end, self.chunk, self.shape, strict=True)
        )
        whole = Box.between(begin, end)
        return whole if min(whole.shape, default=1) > 0 else None

    def pieces(self, box: Box | None, rank: int, limit: int) -> Iterator[Box]:
        """Cut what of a box belongs to a rank into boxes."""
        if box is None:
            return
        touched = in_chunks(box, self.chunk)
        yield from self._cut(self._ranks[touched.slices] == rank + 1, touched, box, limit)

    def _cut(
        self, wanted: npt.NDArray[np.bool_], chunks: Box, box: Box, limit: int
    ) -> Iterator[Box]:
        if not wanted.any():
            return
        start, shape = (tuple(map(mul, one, self.chunk)) for one in chunks)
        piece = Box(start, shape).common(box)
        lengths = wanted.shape
        if wanted.size == 1 or (piece.size <= limit and wanted.all()):
            yield piece
            return
        # Along the slowest dimension first: such parts lie together in memory.
        axis = next(at for at, n in enumerate(lengths) if n > 1)
        before, middle = (slice(None),) * axis, lengths[axis] // 2
        first = Box(chunks.start, (*lengths[:axis], middle, *lengths[axis + 1 :]))
        rest = first.moved(tuple(middle * (at == axis) for at in range(len(lengths)))).start
        yield from self._cut(wanted[(*before, slice(None, middle))], first, box, limit)
        second = Box.between(rest, chunks.end)
        yield from self._cut(wanted[(*before, slice(middle, None))], second, box, limit)

    def forget(self) -> None:
        """Let chunks go to other ranks: nobody holds anything of them any more."""
        if self._known:
            self._ranks = np.zeros(chunk_counts(self.shape, self.chunk), np.int32)
            self._known = False

    def grow(self, shape: Shape) -> None:
        """Follow the dataset, which is larger now."""
        self.shape, former = shape, self._ranks
        self._ranks = np.zeros(chunk_counts(self.shape, self.chunk), np.int32)
        if self._known:
            self._ranks[tuple(slice(n) for n in former.shape)] = former
