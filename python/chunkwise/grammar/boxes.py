"""How is an array cut into boxes, and these into whole chunks?  Arithmetic alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from operator import add, sub
from typing import NamedTuple

from chunkwise.grammar.sizes import Shape


class Box(NamedTuple):
    """A block of neighbouring elements."""

    start: Shape  # Its first element
    shape: Shape  # Its lengths

    @classmethod
    def between(cls, start: Shape, end: Shape) -> Box:
        """Return the box from one element to another, which is not in it."""
        return cls(start, tuple(map(sub, end, start)))

    @property
    def end(self) -> Shape:
        """Where it ends in each dimension."""
        return tuple(map(add, self.start, self.shape))

    @property
    def size(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def slices(self) -> tuple[slice, ...]:
        """The index of an array that takes it."""
        return tuple(map(slice, self.start, self.end))

    def within(self, outer: Box) -> Box:
        """Return it in the coordinates of a box around it."""
        return Box(tuple(map(sub, self.start, outer.start)), self.shape)

    def moved(self, by: Shape) -> Box:
        """Return a box of the same shape that begins further on."""
        return Box(tuple(map(add, self.start, by)), self.shape)

    def common(self, other: Box) -> Box:
        """Return the overlap of two boxes, if there is one."""
        start = tuple(map(max, self.start, other.start))
        return Box.between(start, tuple(map(min, self.end, other.end)))

    def __str__(self) -> str:
        return "[" + ", ".join(f"{a}:{b}" for a, b in zip(self.start, self.end, strict=True)) + "]"


def chunk_counts(shape: Sequence[int], chunk: Sequence[int]) -> Shape:
    """Count the chunks along each dimension."""
    return tuple(-(-n // c) for n, c in zip(shape, chunk, strict=True))


def chunk_at(shape: Sequence[int], chunk: Sequence[int], start: Shape) -> Box:
    """Return the chunk that begins at an element, as far as it lies in the array."""
    return Box(start, tuple(min(c, n - a) for c, n, a in zip(chunk, shape, start, strict=True)))


def bounded(shape: Shape, most: int) -> Shape:
    """Cut the slowest dimensions of a box until it has at most this many elements, or one."""
    sides = list(shape)
    for axis in range(len(sides)):
        sides[axis] = max(1, min(sides[axis], most // max(1, math.prod(sides[axis + 1 :]))))
        if math.prod(sides) <= most:
            break
    return tuple(sides)


def runs(box: Box, shape: Shape) -> Iterator[Box]:
    """Cut a box into parts whose elements follow each other in an array of this shape."""
    axis = len(shape)
    # Trailing dimensions that are covered whole lie together.
    while axis > 0 and box.shape[axis - 1] == shape[axis - 1]:
        axis -= 1
    # The one before, too.
    outer = max(0, axis - 1)
    for place in product(*map(range, box.shape[:outer])):
        start = tuple(map(add, box.start, place))
        yield Box((*start, *box.start[outer:]), (*(1,) * outer, *box.shape[outer:]))


def boxes(shape: Shape, chunk: Shape, most: int) -> Iterator[Box]:
    """Cut an array into boxes of whole chunks, of at most this many elements, in C order."""
    if 0 in shape:
        return
    lengths = list(map(min, chunk, shape))
    for axis in reversed(range(len(shape))):
        steps = max(1, most // math.prod(lengths))
        # As many boxes as that takes, but of about one size.
        chunks = -(-shape[axis] // lengths[axis])
        steps = -(-chunks // -(-chunks // steps))
        lengths[axis] = min(shape[axis], lengths[axis] * steps)
    for start in product(*(range(0, n, step) for n, step in zip(shape, lengths, strict=True))):
        yield chunk_at(shape, lengths, start)
