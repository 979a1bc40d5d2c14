"""Which box of a dataset does each rank write, and do boxes overlap?

Arithmetic alone: no files, no ranks that wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
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
# All pairs of up to this many boxes are compared at once.
_FEW: Final = 16
# This many pairs are compared at a time.
_PAIRS: Final = 1 << 18


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
    if not _any_meet(begin, end):
        return None
    # Find out which ones only now: this compares each with all others.
    for one in range(len(there) - 1):
        rest = slice(one + 1, None)
        meets = ((begin[rest] < end[one]) & (begin[one] < end[rest])).all(axis=1)
        if meets.any():
            other = one + 1 + int(meets.argmax())
            return there[one][0], there[other][0]
    return None


def _any_meet(begin: _Corners, end: _Corners) -> bool:
    """Return whether any two boxes have elements in common."""
    # Boxes that lie apart along one dimension are looked at apart, group by group: those of a grid
    # of ranks are soon alone.  Of a group that no dimension divides, the pairs are compared that
    # meet along the dimension in which the fewest do.
    groups = [np.arange(len(begin))]
    while groups:
        group = groups.pop()
        if len(group) < 2:
            continue
        if begin.shape[1] == 0:
            return True
        if len(group) <= _FEW:
            a, b = begin[group], end[group]
            meets = ((a[:, None] < b[None]) & (a[None] < b[:, None])).all(axis=2)
            if np.triu(meets, 1).any():
                return True
            continue
        for axis in range(begin.shape[1]):
            ordered = group[np.argsort(begin[group, axis], kind="stable")]
            reached = np.maximum.accumulate(end[ordered, axis])
            cuts = np.flatnonzero(begin[ordered[1:], axis] >= reached[:-1]) + 1
            if len(cuts):
                groups += np.split(ordered, cuts)
                break
        else:
            if _pairs_meet(begin[group], end[group]):
                return True
    return False


def _pairs_meet(begin: _Corners, end: _Corners) -> bool:
    """Return whether two boxes have elements in common, by those that meet along a dimension."""
    fewest: tuple[int, npt.NDArray[np.intp], npt.NDArray[np.intp]] | None = None
    for axis in range(begin.shape[1]):
        ordered = np.argsort(begin[:, axis], kind="stable")
        # For each box, the later boxes in this order that begin before it ends.
        last = np.searchsorted(begin[ordered, axis], end[ordered, axis])
        counts = last - np.arange(1, len(ordered) + 1)
        if fewest is None or int(counts.sum()) < fewest[0]:
            fewest = int(counts.sum()), ordered, counts
    assert fewest is not None
    _, ordered, counts = fewest
    begin, end = begin[ordered], end[ordered]
    sums = np.cumsum(counts)
    at = 0
    while at < len(counts):
        # As many boxes as have this many pairs, or one.
        done = int(sums[at - 1]) if at else 0
        until = max(at + 1, int(np.searchsorted(sums, done + _PAIRS, "right")))
        some = counts[at:until]
        one = np.repeat(np.arange(at, until), some)
        first = np.repeat(np.cumsum(some) - some, some)
        other = one + 1 + np.arange(len(one)) - first
        if ((begin[other] < end[one]) & (begin[one] < end[other])).all(axis=1).any():
            return True
        at = until
    return False


def in_chunks(box: Box, chunk: Shape) -> Box:
    """Give the chunks that a box touches, counted along each dimension."""
    begin = tuple(a // n for a, n in zip(box.start, chunk, strict=True))
    return Box.between(begin, chunk_counts(box.end, chunk))


def in_elements(chunks: Box, chunk: Shape) -> Box:
    """Give the elements of a block of whole chunks."""
    return Box(tuple(map(mul, chunks.start, chunk)), tuple(map(mul, chunks.shape, chunk)))


def covered(box: Box, chunk: Shape) -> npt.NDArray[np.int64]:
    """Count the elements of a box in each chunk that it touches."""
    counts: npt.NDArray[np.int64] = np.ones((), np.int64)
    for a, b, n in zip(box.start, box.end, chunk, strict=True):
        edges = np.arange(a // n, -(-b // n) + 1, dtype=np.int64) * n
        along = np.minimum(edges[1:], b) - np.maximum(edges[:-1], a)
        counts = np.multiply.outer(counts, along)
    return counts
