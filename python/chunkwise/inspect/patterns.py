"""What does reading a dataset along each dimension, or across it, cost?

Arithmetic on shapes, with the speed of a sample of the data: nothing is read here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from chunkwise.advise.chunk_cache import Kept, Read, kept
from chunkwise.advise.geometry import Walk, line, plane
from chunkwise.advise.readers import Reader
from chunkwise.inspect.facts import DatasetFacts, PatternFacts, Survival

# Pieces of a one-dimensional dataset, whose lines and planes are all of it or one
# element: a page of memory, as much as a small read asks for.
PIECE_NBYTES: Final = 4096

Block = tuple[int, ...]


def pattern_facts(facts: DatasetFacts, readers: tuple[Reader, ...]) -> tuple[PatternFacts, ...]:
    """Work out the canonical access patterns of a dataset.

    Parameters
    ----------
    facts
        How it is stored.
    readers
        Whose chunk caches are looked at.

    Returns
    -------
    tuple of PatternFacts
        A line along each dimension, a plane across each, one chunk, everything; equal
        blocks once.  Empty for a dataset without elements, of variable length, or
        whose data is not chunks or bytes of this file.
    """
    if not facts.shape or 0 in facts.shape or facts.variable_length:
        return ()
    if facts.layout not in ("chunked", "contiguous"):
        return ()
    return tuple(_pattern(facts, name, block, readers) for name, block in blocks(facts))


def blocks(facts: DatasetFacts) -> Iterator[tuple[str, Block]]:
    """Name the canonical patterns of a dataset with their blocks, equal ones once."""
    shape = facts.shape or ()
    seen: set[Block] = set()
    for name, block in _candidates(shape, facts):
        if block not in seen:
            seen.add(block)
            yield name, block


def row(facts: DatasetFacts) -> Block:
    """Give the block that programs read in a loop: a line along the fastest dimension.

    Of a one-dimensional dataset, a piece of `PIECE_NBYTES`.
    """
    shape = facts.shape or ()
    axes = [d for d, extent in enumerate(shape) if extent > 1]
    if len(axes) < 2:
        piece = max(1, PIECE_NBYTES // facts.itemsize)
        return tuple(min(n, piece) for n in shape)
    return line(shape, axes[-1])


def survival(
    facts: DatasetFacts, block: Block, reader: Reader, nbytes_per_s: float | None = None
) -> Survival:
    """Tell what a reader's cache keeps of one read, and what the whole dataset costs so.

    Parameters
    ----------
    facts
        Of a chunked dataset with elements.
    block
        Shape of a read, in elements; the dataset is walked in C order.
    reader
        Whose cache.
    nbytes_per_s
        Bytes that libhdf5 decodes in a second; None predicts no time.
    """
    assert facts.chunks is not None
    assert facts.shape is not None
    chunks = facts.chunks
    walk = Walk(facts.shape, block, chunks.shape)
    # Of an unfiltered chunk that it does not cache, libhdf5 reads just what is asked for,
    # piece by piece: how long that takes no sample tells.
    if facts.filters == "none" and chunks.nbytes > reader.cache_nbytes:
        touched = walk.chunks_per_operation
        return Survival(reader.name, touched, 0, 1.0, None)
    start = (0,) * len(block)
    found = kept(reader, Read(facts.shape, chunks.shape, facts.itemsize, start, block))
    decodes = _decodes(walk, found, reader.cache_nbytes // chunks.nbytes)
    total_s = None
    # The sample was read by libhdf5; chunkwise decodes otherwise, and on all cores.
    if nbytes_per_s and reader.nslots is not None:
        total_s = decodes * chunks.allocated * chunks.nbytes / nbytes_per_s
    return Survival(reader.name, found.reloads, found.collisions, decodes, total_s)


def decoding_speed(facts: DatasetFacts) -> float | None:
    """Bytes that libhdf5 decoded in a second from the sample; None without one."""
    sample = facts.sample
    return sample.raw_nbytes / sample.read_s if sample and sample.read_s > 0 else None


def _candidates(shape: Block, facts: DatasetFacts) -> Iterator[tuple[str, Block]]:
    axes = [d for d, extent in enumerate(shape) if extent > 1]
    if len(axes) > 1:
        for axis in axes:
            yield f"line along {axis}", line(shape, axis)
        for axis in axes:
            yield f"plane across {axis}", plane(shape, axis)
    else:
        yield "piece", row(facts)
    if facts.chunks:
        yield "chunk", tuple(map(min, facts.chunks.shape, shape))
    yield "all", shape


def _decodes(walk: Walk, found: Kept, held: int) -> float:
    """Decodes of each chunk in a walk, when a cache holds so many chunks.

    Chunks that collide with others of their read are lost before the next one.
    """
    lost = found.collisions / found.chunks
    return (1 - lost) * walk.decodes_per_chunk(held) + lost * walk.decodes_per_chunk(0)


def _pattern(
    facts: DatasetFacts, name: str, block: Block, readers: tuple[Reader, ...]
) -> PatternFacts:
    assert facts.shape is not None
    selected = math.prod(block) * facts.itemsize
    speed = decoding_speed(facts)
    if facts.chunks is None:
        return PatternFacts(
            name, block, pieces(facts.shape, block), selected, selected, 1.0, None, ()
        )
    chunks = Walk(facts.shape, block, facts.chunks.shape).chunks_per_operation
    decoded = chunks * facts.chunks.nbytes
    return PatternFacts(
        name=name,
        block=block,
        chunks=chunks,
        selected_nbytes=selected,
        decoded_nbytes=decoded,
        amplification=decoded / selected,
        read_s=decoded / speed if speed else None,
        survival=tuple(survival(facts, block, reader, speed) for reader in readers),
    )


def pieces(shape: Block, block: Block) -> int:
    """Count the separate runs of a contiguous dataset that a block consists of."""
    runs = 1
    for d in reversed(range(len(shape))):
        if block[d] < shape[d]:
            runs = math.prod(block[:d])
            break
    return runs
