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
    # Boxes that lie apart along one dimension are looked at apart, group by group: those of a grid
    # of ranks are soon alone.  Of a group that no dimension divides, each is compared with each.
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
