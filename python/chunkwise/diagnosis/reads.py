"""Why do reads load the chunks of a dataset again and again, and what helps without a copy?

`inspect`, `bench`, `advise` and `run` ask here, each for its own patterns and readers, and say the
answer in their own words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property, lru_cache
from itertools import product
from typing import Final

from chunkwise.model import worth
from chunkwise.model.cost import Stored, decodes_by_size, walk_cost
from chunkwise.model.held import Cache, suited
from chunkwise.model.readers import CHUNKWISE, Reader, reader
from chunkwise.model.traffic import Pattern, traffic
from chunkwise.remedy.fix import Tool
from chunkwise.remedy.records import OpenNatively, SetCache, natively

# More than any dataset has.
_ALL_NBYTES: Final = 1 << 80


class Cause(Enum):
    """What a chunk cache does to the chunks that reads come back to."""

    HELD = auto()  # It holds them, or no read comes back to any
    PIECES = auto()  # None is used: what is read comes straight from the file, piece by piece
    CHUNK = auto()  # Not even one chunk fits into it
    WALK = auto()  # Between two reads of a chunk come more chunks than it holds
    SLOTS = auto()  # The chunks of a read fit into it, but have to share its slots
    NO_ORDER = auto()  # Reads come to chunks in no order, and it holds only some of them


def decodes(stored: Stored, pattern: Pattern, who: Reader) -> float:
    """Return how often the reads of a pattern load each chunk that they touch; 1.0 is once."""
    if not stored.chunked:
        return 1.0
    if not pattern.scattered and pattern.selections is None:
        return walk_cost(stored, pattern.block, who, order=pattern.order).decodes
    everything = replace(who, cache_nbytes=_ALL_NBYTES, nslots=None)
    loads, least = (traffic(stored, pattern, one).loads for one in (who, everything))
    return max(1.0, loads / max(1.0, least))


def may_lose(stored: Stored, who: Reader) -> bool:
    """Whether a cache has no room for all chunks, or slots that some of them have to share."""
    grid = stored.grid
    # libhdf5 packs coordinates of chunks, the slowest on top; others take the bits that they need.
    packed = grid[0] << sum((n - 1).bit_length() for n in grid[1:])
    slots = bool(who.nslots) and packed > (who.nslots or 0)
    return slots or math.prod(grid) * stored.chunk_nbytes > who.cache_nbytes


# Several findings ask for the same.
@lru_cache(maxsize=1024)
def cause(stored: Stored, pattern: Pattern, who: Reader, least: float = worth.NOTICED) -> Cause:
    """Say why chunks are loaded at least so many times; `Cause.HELD` if they are not."""
    if not stored.chunked or stored.is_read_in_pieces(who):
        return Cause.PIECES
    if not may_lose(stored, who):
        return Cause.HELD
    if pattern.scattered or pattern.selections is not None:
        return Cause.NO_ORDER if decodes(stored, pattern, who) >= least else Cause.HELD
    if decodes_by_size(stored, pattern.block, who, order=pattern.order) >= least:
        return Cause.CHUNK if stored.chunk_nbytes > who.cache_nbytes else Cause.WALK
    touched = stored.walk(pattern.block, pattern.order).chunks_per_operation
    # Those that do not fit by their bytes are lost with any number of slots.
    fit = touched * stored.chunk_nbytes <= who.cache_nbytes
    return Cause.SLOTS if fit and decodes(stored, pattern, who) >= least else Cause.HELD


@dataclass(frozen=True)
class Reads:
    """Reads of a dataset as it is stored, and who reads it."""

    file: str
    path: str
    stored: Stored
    filters: str
    patterns: tuple[Pattern, ...]
    readers: tuple[Reader, ...]

    def causes(self, least: float = worth.NOTICED) -> set[Cause]:
        """Say what the readers' caches do to the chunks of the patterns."""
        pairs = product(self.patterns, self.readers)
        return {cause(self.stored, pattern, who, least) for pattern, who in pairs}

    @cached_property
    def cache(self) -> Cache | None:
        """The chunk cache with which much less is loaded; None if there is none."""
        return suited(self.stored, self.patterns, self.readers) if self.stored.chunked else None

    def with_cache(self, cache: Cache | None, program: Tool = "h5py") -> tuple[SetCache, ...]:
        """Open the dataset with a chunk cache, if there is one, in the language of a program."""
        if cache is None:
            return ()
        nbytes, nslots, filters = cache.nbytes, cache.nslots, self.filters
        return (SetCache(self.file, self.path, nbytes, nslots, filters, program),)

    @property
    def natively(self) -> tuple[OpenNatively, ...]:
        """Read by chunkwise, if it decodes the filters and its own cache holds the chunks."""
        ours = reader(CHUNKWISE)
        several = (one for one in self.patterns if not one.of_one_read)
        lost = any(decodes(self.stored, one, ours) >= worth.NOTICED for one in several)
        return () if lost else natively(self.file, self.path, self.filters)
