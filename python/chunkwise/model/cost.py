"""What does reading a dataset block by block cost?

It counts chunks touched, bytes decoded, chunks that a cache loses between two reads, decodes of
each chunk in a walk over everything, and seconds if a speed is known.  `inspect` judges by these
figures, and `bench` explains by them.

Arithmetic on shapes and the models of `geometry` and `chunk_cache`: nothing is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from chunkwise.model.chunk_cache import Read, collisions, kept
from chunkwise.model.geometry import Walk
from chunkwise.model.readers import UNCACHED, Reader

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """How a chunked dataset is stored."""

    shape: Shape  # Of the dataset and of a chunk, in elements
    chunks: Shape
    itemsize: int  # Bytes of an element
    filtered: bool = True  # Whether its chunks have filters

    @property
    def chunk_nbytes(self) -> int:
        """Bytes of a decoded chunk."""
        return math.prod(self.chunks) * self.itemsize

    @property
    def grid(self) -> Shape:
        """How many chunks lie along each dimension."""
        return tuple(-(-n // c) for n, c in zip(self.shape, self.chunks, strict=True))

    def walk(self, block: Sequence[int], order: Sequence[int] | None = None) -> Walk:
        """Return the walk of a block, its dimensions from the slowest to the fastest."""
        axes = range(len(self.shape)) if order is None else order
        sides = (self.shape, block, self.chunks)
        return Walk(*(tuple(lengths[axis] for axis in axes) for lengths in sides))

    def is_read_in_pieces(self, reader: Reader) -> bool:
        """Whether libhdf5 reads just the elements it needs, as from contiguous storage.

        It does so from a chunk that is neither filtered nor fits its cache.
        """
        return not self.filtered and self.chunk_nbytes > reader.cache_nbytes


@dataclass(frozen=True, slots=True)
class Cost:
    """What a walk of blocks costs one reader."""

    chunks: int  # The most chunks that one read touches
    selected_nbytes: int  # Bytes that one read asks for, and those of the chunks that it touches
    decoded_nbytes: int
    collisions: int  # Chunks of one read that share a slot of the cache with another one of it
    reloads: int  # Chunks that are decoded again when the same read follows at once
    decodes: float  # How often a walk over the whole dataset decodes each chunk; 1.0 is once

    @property
    def amplification(self) -> float:
        """Bytes decoded for each that one read asks for."""
        return self.decoded_nbytes / self.selected_nbytes

    def total_s(self, allocated_nbytes: int, nbytes_per_s: float | None) -> float | None:
        """Predict the seconds of the whole walk; None without a speed."""
        return self.decodes * allocated_nbytes / nbytes_per_s if nbytes_per_s else None


# Several findings and sentences ask for the same figures.
@lru_cache(maxsize=1024)
def walk_cost(
    stored: Stored,
    block: Shape,
    reader: Reader = UNCACHED,
    *,
    order: tuple[int, ...] | None = None,
) -> Cost:
    """Return the cost of reading a dataset by a block, for a reader with its chunk cache."""
    walk = stored.walk(block, order)
    chunks = walk.chunks_per_operation
    selected = math.prod(block) * stored.itemsize
    decoded = chunks * stored.chunk_nbytes
    if stored.is_read_in_pieces(reader):
        return Cost(chunks, selected, decoded, 0, chunks, 1.0)
    start = (0,) * len(block)
    found = kept(reader, Read(stored.shape, stored.chunks, stored.itemsize, start, block))
    decodes = _decodes(stored, block, reader, order, found.collisions / found.chunks)
    return Cost(chunks, selected, decoded, found.collisions, found.reloads, decodes)


def decodes_of_walk(
    stored: Stored, block: Shape, reader: Reader, *, order: Sequence[int] | None = None
) -> float:
    """Tell how often a walk decodes each chunk: `Cost.decodes`, in a tenth of the time.

    Parameters are those of `walk_cost`.
    """
    if stored.is_read_in_pieces(reader):
        return 1.0
    read = Read(stored.shape, stored.chunks, stored.itemsize, (0,) * len(block), block)
    lost = collisions(reader, read) / math.prod(read.extent)
    return _decodes(stored, block, reader, order, lost)


def _decodes(
    stored: Stored, block: Shape, reader: Reader, order: Sequence[int] | None, lost: float
) -> float:
    """Count decodes if a share of each read's chunks collides with others of it."""
    by_size = decodes_by_size(stored, block, reader, order=order)
    if not lost:
        return by_size
    # Those are lost before the next read.
    return (1 - lost) * by_size + lost * stored.walk(block, order).decodes_per_chunk(0)


def decodes_by_size(
    stored: Stored, block: Shape, reader: Reader, *, order: Sequence[int] | None = None
) -> float:
    """Return how often a walk decodes each chunk, if a cache has enough slots.

    Parameters are those of `walk_cost`, which counts collisions as well and takes longer.
    """
    return stored.walk(block, order).decodes_per_chunk(reader.cache_nbytes // stored.chunk_nbytes)


def decodes_in_no_order(stored: Stored, block: Shape, reader: Reader, operations: int) -> float:
    """Tell how often so many reads at random places decode each chunk that they touch.

    A chunk is cached as often as the cache holds a share of all chunks.
    """
    if stored.is_read_in_pieces(reader):
        return 1.0
    walk = stored.walk(block)
    touched = operations * walk.chunks_per_operation
    lost = max(0.0, 1 - reader.cache_nbytes // stored.chunk_nbytes / walk.chunk_count)
    return max(1.0, touched * lost / min(touched or 1, walk.chunk_count))
