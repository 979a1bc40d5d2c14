"""How often does a walk over an array touch each of its chunks?

In C order each dimension can be treated alone, so an array of any size costs a few sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

# A page of memory, as much as a small read asks for.
PIECE_NBYTES: Final = 4096


def line(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    """Return the block that reaches along one dimension, at one index of the others."""
    return tuple(n if i == axis else 1 for i, n in enumerate(shape))


def plane(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    """Return the block of one index of a dimension, and all of the others."""
    return tuple(1 if i == axis else n for i, n in enumerate(shape))


def piece(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the block of `PIECE_NBYTES` of a dataset whose elements lie along one dimension."""
    length = max(1, PIECE_NBYTES // itemsize)
    return tuple(min(n, length) for n in shape)


def canonical(shape: Sequence[int], itemsize: int) -> list[tuple[int, ...]]:
    """List the blocks that are read when nobody says what is read."""
    # A line along each dimension and a step; with one dimension, a piece of `PIECE_NBYTES`.
    axes = [axis for axis, extent in enumerate(shape) if extent > 1]
    if len(axes) < 2:
        return [piece(shape, itemsize)]
    blocks = [*(line(shape, axis) for axis in axes), plane(shape, axes[0])]
    return list(dict.fromkeys(blocks))


def line_axis(shape: Sequence[int], block: Sequence[int]) -> int:
    """Return the dimension along which a block reaches furthest through the array."""
    reach = [b / n if n > 1 else 0.0 for b, n in zip(block, shape, strict=True)]
    return reach.index(max(reach))


@lru_cache(maxsize=1 << 14)
def touched_along(extent: int, block: int, chunk: int) -> tuple[float, int]:
    """Return how many chunks a block touches along one dimension: on average, and at most."""
    axis = Axis(extent, block, chunk)
    return axis.touches / axis.positions, axis.widest


@dataclass(frozen=True)
class Axis:
    """One dimension: `extent` elements, walked in steps of `block`, stored by `chunk`."""

    extent: int
    block: int
    chunk: int

    @property
    def positions(self) -> int:
        """How many blocks the walk has along this dimension."""
        return -(-self.extent // self.block)

    @property
    def chunks(self) -> int:
        """How many chunks lie along this dimension."""
        return -(-self.extent // self.chunk)

    @property
    def touches(self) -> int:
        """Sum over the positions of the chunks that each one touches."""
        # One per position, and one more for each chunk boundary inside a block.
        shared = (self.extent - 1) // math.lcm(self.block, self.chunk)
        return self.positions + (self.chunks - 1) - shared

    @cached_property
    def repeats(self) -> int:
        """How many positions touch exactly the chunks that the one before touched."""
        # Only a block within a chunk, next to another one, does; it repeats every `period` chunks.
        if self.chunk <= self.block:
            return 0
        period = self.block // math.gcd(self.block, self.chunk)
        periods, rest = divmod(self.chunks - 1, period)
        total = sum(self._repeats_in(k) for k in range(rest)) + self._repeats_in(self.chunks - 1)
        if periods:
            total += periods * sum(self._repeats_in(k) for k in range(period))
        return total

    def _repeats_in(self, chunk_index: int) -> int:
        """Count the repeats inside one chunk: its whole blocks, but for the first."""
        first = chunk_index * self.chunk
        last = min(first + self.chunk, self.extent)
        end = self.positions if last == self.extent else last // self.block
        return max(0, end - -(-first // self.block) - 1)

    @property
    def distinct(self) -> int:
        """How many different sets of chunks the positions touch."""
        return self.positions - self.repeats

    @property
    def nested(self) -> bool:
        """Whether no block straddles a chunk boundary that its neighbour also meets."""
        return self.positions == 1 or self.block % self.chunk == 0 or self.chunk % self.block == 0

    @property
    def widest(self) -> int:
        """The most chunks that one position touches."""
        aligned = -(-self.block // self.chunk)
        if self.nested:
            return min(self.chunks, aligned)
        return min(self.chunks, -(-(self.block - 1) // self.chunk) + 1)

    def set_numbers(self, positions: int) -> npt.NDArray[np.int64]:
        """Number the chunk sets of the first `positions` positions: equal sets, equal numbers."""
        index = np.arange(positions, dtype=np.int64)
        low = index * self.block // self.chunk
        high = (np.minimum((index + 1) * self.block, self.extent) - 1) // self.chunk
        changed = np.zeros(positions, dtype=np.int64)
        changed[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        return np.cumsum(changed)


@dataclass(frozen=True)
class Census:
    """The walk's operations, sorted by what a cache could know about their chunks."""

    fresh: int  # Operations on a set of chunks that no earlier one touched
    back: int  # Operations on a set that an earlier one touched, but not the last one
    same: int  # Operations on the very set that the one before them touched


@dataclass(frozen=True)
class Walk:
    """A walk of `block` over `shape` in C order, stored in `chunks` (all in elements)."""

    shape: tuple[int, ...]
    block: tuple[int, ...]
    chunks: tuple[int, ...]

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The dimensions, each on its own."""
        triples = zip(self.shape, self.block, self.chunks, strict=True)
        return tuple(Axis(*triple) for triple in triples)

    @property
    def operations(self) -> int:
        """How many blocks the walk reads."""
        return math.prod(axis.positions for axis in self.axes)

    @property
    def chunk_count(self) -> int:
        """How many chunks the array's grid has."""
        return math.prod(axis.chunks for axis in self.axes)

    @property
    def chunks_per_operation(self) -> int:
        """The most chunks that one operation touches."""
        return math.prod(axis.widest for axis in self.axes)

    def census(self) -> Census:
        """Count the operations of the whole walk by kind."""
        fresh = math.prod(axis.distinct for axis in self.axes)
        same = 0
        for i, axis in enumerate(self.axes):
            # A step along this axis starts the faster ones anew: do those leave the set?
            if all(later.distinct == 1 for later in self.axes[i + 1 :]):
                same += math.prod(a.positions for a in self.axes[:i]) * axis.repeats
        return Census(fresh, self.operations - fresh - same, same)

    def kinds(self, operations: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return for each of the first operations whether it is fresh, and whether it is same."""
        grid = tuple(axis.positions for axis in self.axes)
        where = np.unravel_index(np.arange(operations, dtype=np.int64), grid)
        key: npt.NDArray[np.int64] = np.zeros(operations, dtype=np.int64)
        for axis, index in zip(self.axes, where, strict=True):
            numbers = axis.set_numbers(int(index.max()) + 1)
            key = key * axis.distinct + numbers[index]
        fresh = np.zeros(operations, dtype=np.bool_)
        fresh[np.unique(key, return_index=True)[1]] = True
        same = np.zeros(operations, dtype=np.bool_)
        same[1:] = key[1:] == key[:-1]
        return fresh, same

    def decodes_per_chunk(self, cached_chunks: int) -> float:
        """How often the walk decodes each chunk, with a cache of this many chunks."""
        # A dimension's repeated visits cost nothing if the cache holds all chunks that the walk
        # touches between two of them: those of a full sweep over the faster dimensions.  1.0 means
        # that no chunk is decoded twice.
        decodes = 1.0
        lost = False
        for axis, held in reversed([*zip(self.axes, self.footprints(), strict=True)]):
            # Neighbours share cached chunks, but not until a faster dimension's next visit.
            if axis.touches > axis.chunks and (lost or held > cached_chunks):
                decodes *= axis.touches / axis.chunks
                lost = True
        return decodes

    def footprints(self) -> tuple[int, ...]:
        """Chunks touched between two visits along each dimension."""
        held = []
        for i, axis in enumerate(self.axes):
            slower = math.prod(other.widest for other in self.axes[:i])
            faster = math.prod(other.chunks for other in self.axes[i + 1 :])
            if slower == faster == 1:
                # The chunk that neighbours share is the last of the one, the first of the other.
                held.append(1)
            elif faster == 1:
                held.append(slower * axis.widest)
            else:
                # Neighbours that straddle a boundary share one chunk and differ in the rest.
                held.append(slower * axis.widest * (1 if axis.nested else 2) * faster)
        return tuple(held)

    def chunks_to_cache(self) -> int:
        """The fewest chunks that a cache must hold so that none is decoded twice."""
        needed = [1]
        for axis, held in zip(self.axes, self.footprints(), strict=True):
            if axis.touches > axis.chunks:
                needed.append(held)
        return max(needed)
