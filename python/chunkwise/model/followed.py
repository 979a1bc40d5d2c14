"""How many chunks does a walk load, followed chunk by chunk through libhdf5's cache?

libhdf5's cache keeps one chunk a slot, drops fully read chunks first, and blocks may share chunks:
shapes alone do not give the number.  The beginning of a long walk stands for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from chunkwise.model.chunk_cache import ChunkCache, Read, slots
from chunkwise.model.cost import Shape, Stored, decodes_by_size, walk_cost
from chunkwise.model.readers import Reader

# A second or two.
MOST_STEPS: Final = 200_000
# This many times as many chunks as a cache holds are followed, or none.
_FILLS: Final = 4
# The reads that fill the cache at the beginning say nothing about the rest.
_SHARE: Final = 0.5


# Files have many datasets of one shape.
@lru_cache(maxsize=1024)
def loads_of_walk(
    stored: Stored,
    block: Shape,
    reader: Reader,
    *,
    order: Shape | None = None,
    most_steps: int = MOST_STEPS,  # Chunks that are followed at most, about
) -> float:
    """Return how many chunks a walk over the whole dataset loads."""
    # As `chunkwise.model.cost.walk_cost`; exact for libhdf5 where the walk is short.
    walk = stored.walk(block, order)
    touches = math.prod(axis.touches for axis in walk.axes)
    if touches == walk.chunk_count:
        # Each is read once: no cache matters.
        return float(touches)
    if stored.chunk_nbytes > reader.cache_nbytes or reader.nslots == 0:
        return float(touches)
    if reader.nslots is None or reader.w0 is None:
        decodes = decodes_by_size(stored, block, reader, order=order)
        return min(float(touches), decodes * walk.chunk_count)
    held = min(reader.nslots, reader.cache_nbytes // stored.chunk_nbytes)
    if walk.chunk_count <= held:
        everything = slots(stored.grid, (0,) * len(stored.grid), stored.grid, reader.nslots)
        if len(set(everything.ravel().tolist())) == walk.chunk_count:
            # None is ever dropped.
            return float(walk.chunk_count)
    if most_steps < min(touches, _FILLS * held):
        # The beginning would not say what happens when the cache is full.
        decodes = walk_cost(stored, block, reader, order=order).decodes
        return min(float(touches), decodes * walk.chunk_count)
    cache = ChunkCache(held, reader.w0, stored.chunk_nbytes)
    axes = range(len(stored.shape)) if order is None else order
    starts = [range(0, stored.shape[axis], block[axis]) for axis in axes]
    grid = stored.grid
    loads = accesses = later_loads = later_accesses = 0
    for place in _places(starts):
        start = [0] * len(grid)
        for axis, first in zip(axes, place, strict=True):
            start[axis] = first
        sides = tuple(min(b, n - s) for b, n, s in zip(block, stored.shape, start, strict=True))
        read = Read(stored.shape, stored.chunks, stored.itemsize, tuple(start), sides)
        found = slots(read.grid, read.first, read.extent, reader.nslots).tolist()
        numbers = numbers_of(grid, read.first, read.extent)
        wanted = read.wanted_nbytes()
        for chunk, slot, nbytes in zip(numbers, found, wanted, strict=True):
            load = cache.access(chunk, slot, nbytes)
            loads += load
            accesses += 1
            if cache.steps > _SHARE * most_steps:
                later_loads += load
                later_accesses += 1
        if cache.steps > most_steps:
            rest = touches - accesses
            more = rest * later_loads / max(1, later_accesses)
            return min(float(touches), max(loads + more, float(loads)))
    return float(loads)


def _places(starts: Sequence[range]) -> Iterator[tuple[int, ...]]:
    """Combine the starts of all axes, the last one fastest; ranges may be longer than memory."""
    if not starts:
        yield ()
        return
    for first in starts[0]:
        for rest in _places(starts[1:]):
            yield first, *rest


def numbers_of(grid: Shape, first: Sequence[int], extent: Sequence[int]) -> list[int]:
    """Number the chunks of a box in the grid, in C order."""
    numbers = [0]
    for length, start, count in zip(grid, first, extent, strict=True):
        numbers = [n * length + i for n in numbers for i in range(start, start + count)]
    return numbers
