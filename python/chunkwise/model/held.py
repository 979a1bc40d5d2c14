"""Which chunk cache lets a reader decode each chunk once, and is there one?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chunkwise.model import worth
from chunkwise.model.chunk_cache import hash_slots, prime_from, slots
from chunkwise.model.cost import Stored
from chunkwise.model.traffic import Pattern

# A cache is given in whole MiB, as people write it.
MIB: Final = 1 << 20
_PLACES: Final = 3
_TRIED: Final = 200


@dataclass(frozen=True, slots=True)
class Cache:
    """A chunk cache to open a dataset with."""

    nbytes: int
    nslots: int

    @property
    def is_moderate(self) -> bool:
        """Whether it is no larger than what one dataset should be given."""
        return self.nbytes <= worth.LARGEST_CACHE_NBYTES


def holding(
    chunks: int,
    chunk_nbytes: int,
    *,
    least_nbytes: int = 0,  # What the library gives by itself, which no line may take away
    least_nslots: int = 0,
    unit: int = MIB,  # What its bytes are a multiple of
) -> Cache:
    """Choose the chunk cache that holds this many chunks: for every reader and writer."""
    nbytes = -(-chunks * chunk_nbytes // unit) * unit
    return Cache(max(nbytes, least_nbytes), max(hash_slots(chunks), least_nslots))


def caches(stored: Stored, patterns: Sequence[Pattern]) -> list[int]:
    """List sizes of a chunk cache, in bytes, with which some pattern finds its chunks again."""
    # Ascending, each at most `worth.LARGEST_CACHE_NBYTES`.
    found = set()
    for pattern in patterns:
        if pattern.writes:
            continue
        walk = stored.walk(pattern.block, pattern.order)
        held = {*walk.footprints(), walk.chunks_to_cache(), walk.chunks_per_operation}
        if pattern.scattered or pattern.selections is not None:
            held.add(math.prod(stored.grid))
        found |= {holding(number, stored.chunk_nbytes).nbytes for number in held}
    return sorted(nbytes for nbytes in found if nbytes <= worth.LARGEST_CACHE_NBYTES)


def free_slots(stored: Stored, patterns: Sequence[Pattern], nbytes: int) -> int:
    """Return slots for a cache: a prime, with which no two chunks of a read share one."""
    number = hash_slots(max(1, nbytes // max(1, stored.chunk_nbytes)))
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
