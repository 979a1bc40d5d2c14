"""Which chunk cache lets a reader decode each chunk once, and is there one?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from chunkwise.model import worth
from chunkwise.model.chunk_cache import hash_slots, prime_from, slots
from chunkwise.model.cost import Stored
from chunkwise.model.readers import LIBHDF5_2, Reader
from chunkwise.model.traffic import Pattern, traffic

# A cache is given in whole MiB, as people write it.
MIB: Final = 1 << 20
_PLACES: Final = 3
_TRIED: Final = 200


@dataclass(frozen=True, slots=True)
class Cache:
    """A chunk cache to open a dataset with."""

    nbytes: int
    nslots: int


def holding(
    chunks: int,
    chunk_nbytes: int,
    *,
    least_nbytes: int = 0,  # What the library gives by itself, which no line may take away
    unit: int = MIB,  # What its bytes are a multiple of
) -> Cache:
    """Choose the chunk cache that holds this many chunks: for every reader and writer."""
    nbytes = -(-chunks * chunk_nbytes // unit) * unit
    return Cache(max(nbytes, least_nbytes), hash_slots(chunks))


def suited(stored: Stored, patterns: Sequence[Pattern], readers: Sequence[Reader]) -> Cache | None:
    """Choose the chunk cache for programs that read a dataset so; None if none helps."""
    # The smallest cache that decodes about as few chunks as any that a dataset may be given.
    found = []
    for cache in _caches(stored, patterns):
        library = replace(LIBHDF5_2, cache_nbytes=cache.nbytes, nslots=cache.nslots)
        found.append((_fetches(stored, patterns, library), cache))
    fewest = min((number for number, _ in found), default=math.inf)
    if all(_fetches(stored, patterns, one) < worth.PROGRAM * fewest for one in readers):
        return None
    cache = next(cache for number, cache in found if number <= worth.AS_GOOD * fewest)
    nbytes = max(cache.nbytes, *(one.cache_nbytes for one in readers))
    nslots = max(cache.nslots, *(one.nslots or 0 for one in readers))
    return Cache(nbytes, _free_slots(stored, patterns, nslots))


def _fetches(stored: Stored, patterns: Sequence[Pattern], reader: Reader) -> float:
    """Count the chunks, and the pieces of chunks that are not cached, which patterns fetch."""
    found = ((one.weight, traffic(stored, one, reader)) for one in patterns)
    return sum(weight * (one.loads + one.pieces) for weight, one in found)


def _caches(stored: Stored, patterns: Sequence[Pattern]) -> list[Cache]:
    """List the caches that one dataset may be given and let some pattern find its chunks again."""
    held: set[int] = set()
    for pattern in patterns:
        walk = stored.walk(pattern.block, pattern.order)
        held |= {*walk.footprints(), walk.chunks_to_cache(), walk.chunks_per_operation}
        if pattern.scattered or pattern.selections is not None:
            held.add(math.prod(stored.grid))
    found = (holding(number, stored.chunk_nbytes) for number in sorted(held))
    return [cache for cache in found if cache.nbytes <= worth.LARGEST_CACHE_NBYTES]


def _free_slots(stored: Stored, patterns: Sequence[Pattern], number: int) -> int:
    """Return so many slots or a few more: a prime with which no two chunks of a read share one."""
    reads = [read for pattern in patterns for read in _reads(stored, pattern)]
    best, fewest = number, math.inf
    for _ in range(_TRIED):
        collisions = sum(_collisions(stored, *read, number) for read in reads)
        if collisions < fewest:
            best, fewest = number, collisions
        if not fewest:
            break
        number = prime_from(number + 1)
    return best


def _reads(stored: Stored, pattern: Pattern) -> list[tuple[list[int], list[int]]]:
    """Give the first chunk, and chunks along each dimension, of a few reads of a pattern."""
    found = []
    for i in range(_PLACES):
        first, extent = [], []
        for n, block, side in zip(stored.shape, pattern.block, stored.chunks, strict=True):
            positions = -(-n // block)
            start = (positions - 1) * i // (_PLACES - 1) * block
            last = min(n, start + block) - 1
            first.append(start // side)
            extent.append(last // side - start // side + 1)
        if math.prod(extent) <= 100_000:
            found.append((first, extent))
    return found


def _collisions(stored: Stored, first: list[int], extent: list[int], nslots: int) -> int:
    taken = slots(stored.grid, first, extent, nslots)
    return len(taken) - len(set(taken.tolist()))
