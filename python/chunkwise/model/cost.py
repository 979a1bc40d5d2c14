"""What does reading a dataset block by block cost?  `inspect` and `bench` judge by it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from chunkwise.model.chunk_cache import Read, collisions, reloads
from chunkwise.model.geometry import Walk
from chunkwise.model.readers import UNCACHED, Reader

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """How a dataset is stored."""

    shape: Shape  # Of the dataset and of a chunk, in elements
    chunks: Shape
    itemsize: int  # Bytes of an element
    filtered: bool = True  # Whether its chunks have filters
    chunked: bool = True  # If it has none, it is one piece: `chunks` is its shape

    @classmethod
    def of(
        cls, shape: Shape, chunks: Shape | None, itemsize: int, *, filtered: bool = True
    ) -> Stored:
        """Say how a dataset is stored that may have no chunks."""
        if chunks is None:
            return cls(shape, shape, itemsize, filtered=False, chunked=False)
        return cls(shape, chunks, itemsize, filtered)

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
        """Whether libhdf5 reads just the elements it needs, as from contiguous storage."""
        # It does so from a chunk that is neither filtered nor fits its cache.
        return not self.filtered and self.chunk_nbytes > reader.cache_nbytes


@dataclass(frozen=True)
class Cost:
    """What a walk of blocks costs one reader with its chunk cache."""

    stored: Stored
    block: Shape
    reader: Reader = UNCACHED
    order: Shape | None = None

    @cached_property
    def _read(self) -> Read:
        stored = self.stored
        start = (0,) * len(self.block)
        return Read(stored.shape, stored.chunks, stored.itemsize, start, self.block)

    @cached_property
    def _in_pieces(self) -> bool:
        return self.stored.is_read_in_pieces(self.reader)

    @cached_property
    def chunks(self) -> int:
        """The most chunks that one read touches."""
        return self.stored.walk(self.block, self.order).chunks_per_operation

    @property
    def selected_nbytes(self) -> int:
        """Bytes that one read asks for."""
        return math.prod(self.block) * self.stored.itemsize

    @property
    def decoded_nbytes(self) -> int:
        """Bytes of the chunks that it touches."""
        return self.chunks * self.stored.chunk_nbytes

    @property
    def amplification(self) -> float:
        """Bytes decoded for each that one read asks for."""
        return self.decoded_nbytes / self.selected_nbytes

    @cached_property
    def collisions(self) -> int:
        """Chunks of one read that share a slot of the cache with another one of it."""
        return 0 if self._in_pieces else collisions(self.reader, self._read)

    @cached_property
    def reloads(self) -> int:
        """Chunks that are decoded again when the same read follows at once."""
        return self.chunks if self._in_pieces else reloads(self.reader, self._read)

    @cached_property
    def decodes(self) -> float:
        """How often a walk over the whole dataset decodes each chunk; 1.0 is once."""
        if self._in_pieces:
            return 1.0
        by_size = decodes_by_size(self.stored, self.block, self.reader, order=self.order)
        lost = self.collisions / self._read.chunks
        if not lost:
            return by_size
        # Those are lost before the next read.
        uncached = self.stored.walk(self.block, self.order).decodes_per_chunk(0)
        return (1 - lost) * by_size + lost * uncached


# Several findings and sentences ask for the same figures.
walk_cost = lru_cache(maxsize=1024)(Cost)


def decodes_by_size(
    stored: Stored, block: Shape, reader: Reader, *, order: Sequence[int] | None = None
) -> float:
    """Return how often a walk decodes each chunk, if a cache has enough slots."""
    return stored.walk(block, order).decodes_per_chunk(reader.cache_nbytes // stored.chunk_nbytes)
