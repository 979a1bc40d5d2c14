"""What does reading a dataset along each dimension, or across it, cost?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from chunkwise.diagnosis.reads import decodes
from chunkwise.inspection.facts import DatasetFacts, PatternFacts, Survival
from chunkwise.model.cost import Stored, walk_cost
from chunkwise.model.geometry import line, piece, plane
from chunkwise.model.readers import Reader
from chunkwise.model.traffic import Pattern

Block = tuple[int, ...]
# What the canonical patterns are called, before the number of their dimension.
ALONG: Final = "line along"
ACROSS: Final = "plane across"


def pattern_facts(
    facts: DatasetFacts, readers: tuple[Reader, ...], stated: tuple[Pattern, ...] = ()
) -> tuple[PatternFacts, ...]:
    """Work out the access patterns of a dataset: the canonical ones, or those that are stated."""
    if not facts.can_be_chunked:
        return ()
    return tuple(_pattern(facts, one, readers) for one in walked(facts, stated))


def blocks(facts: DatasetFacts) -> Iterator[tuple[str, Block]]:
    """Name the canonical patterns of a dataset with their blocks, equal ones once."""
    shape = facts.shape or ()
    seen: set[Block] = set()
    for name, block in _candidates(shape, facts):
        if block not in seen:
            seen.add(block)
            yield name, block


def walked(facts: DatasetFacts, stated: tuple[Pattern, ...] = ()) -> Iterator[Pattern]:
    """Give the patterns of blocks that are stated; without any, the canonical ones."""
    if stated:
        yield from (one for one in stated if one.selections is None)
    else:
        yield from (Pattern(name, block) for name, block in blocks(facts))


def row(facts: DatasetFacts) -> Block:
    """Give the block that programs read in a loop: a line along the fastest dimension."""
    shape = facts.shape or ()
    axes = [d for d, extent in enumerate(shape) if extent > 1]
    if len(axes) < 2:
        return piece(shape, facts.itemsize)
    return line(shape, axes[-1])


def survival(
    facts: DatasetFacts, read: Pattern, reader: Reader, nbytes_per_s: float | None = None
) -> Survival:
    """Return what a reader's cache keeps of one read, and the cost of the whole dataset."""
    assert facts.chunks is not None
    stored = stored_as(facts)
    cost = walk_cost(stored, read.block, reader, order=read.order)
    often = decodes(stored, read, reader)
    # Of an unfiltered chunk that it does not cache, libhdf5 reads just what is selected, piece
    # by piece: no sample shows how long that takes.  The sample was read by libhdf5; chunkwise
    # decodes otherwise, and on all cores.
    total_s = None
    if nbytes_per_s and reader.nslots is not None and not stored.is_read_in_pieces(reader):
        total_s = often * facts.chunks.allocated * facts.chunks.nbytes / nbytes_per_s
    return Survival(reader.name, cost.reloads, cost.collisions, often, total_s)


def stored_as(facts: DatasetFacts) -> Stored:
    """Say how a chunked dataset is stored, as the cost model takes it."""
    assert facts.chunks is not None
    assert facts.shape is not None
    return Stored(facts.shape, facts.chunks.shape, facts.itemsize, facts.filters != "none")


def decoding_speed(facts: DatasetFacts) -> float | None:
    """Bytes that libhdf5 decoded in a second from the sample; None without one."""
    sample = facts.sample
    return sample.raw_nbytes / sample.read_s if sample and sample.read_s > 0 else None


def _candidates(shape: Block, facts: DatasetFacts) -> Iterator[tuple[str, Block]]:
    axes = [d for d, extent in enumerate(shape) if extent > 1]
    if len(axes) > 1:
        for axis in axes:
            yield f"{ALONG} {axis}", line(shape, axis)
        for axis in axes:
            yield f"{ACROSS} {axis}", plane(shape, axis)
    else:
        yield "piece", row(facts)
    if facts.chunks:
        yield "chunk", tuple(map(min, facts.chunks.shape, shape))
    yield "all", shape


def _pattern(facts: DatasetFacts, read: Pattern, readers: tuple[Reader, ...]) -> PatternFacts:
    assert facts.shape is not None
    name, block = read.name, read.block
    if facts.chunks is None:
        selected = math.prod(block) * facts.itemsize
        return PatternFacts(
            name, block, pieces(facts.shape, block), selected, selected, 1.0, None, ()
        )
    speed = decoding_speed(facts)
    cost = walk_cost(stored_as(facts), block)
    return PatternFacts(
        name=name,
        block=block,
        chunks=cost.chunks,
        selected_nbytes=cost.selected_nbytes,
        decoded_nbytes=cost.decoded_nbytes,
        amplification=cost.amplification,
        read_s=cost.decoded_nbytes / speed if speed else None,
        survival=tuple(survival(facts, read, reader, speed) for reader in readers),
    )


def pieces(shape: Block, block: Block) -> int:
    """Count the separate runs of a contiguous dataset that a block consists of."""
    runs = 1
    for d in reversed(range(len(shape))):
        if block[d] < shape[d]:
            runs = math.prod(block[:d])
            break
    return runs
