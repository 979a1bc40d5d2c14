"""Does a reader's default chunk cache hold the chunks that it comes back to?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from chunkwise.advise.fix import Fix
from chunkwise.advise.geometry import Walk
from chunkwise.advise.layout import hash_slots
from chunkwise.advise.readers import Reader
from chunkwise.advise.remedies import larger_cache, rechunk
from chunkwise.grammar import format_shape, format_size
from chunkwise.inspect.facts import DatasetFacts, Survival
from chunkwise.inspect.finding import Finding
from chunkwise.inspect.findings.papers import COMPRESSED
from chunkwise.inspect.findings.subject import DatasetCheck, Subject
from chunkwise.inspect.patterns import Block, blocks, decoding_speed, row, survival
from chunkwise.words import format_seconds

# Decoding each chunk twice is what a reader notices; less is not worth a change.
FEWEST_DECODES: Final = 2.0
# A cache is given in whole MiB, as people write it.
UNIT_NBYTES: Final = 1 << 20


def chunk_exceeds_cache(subject: Subject) -> Iterator[Finding]:
    """Find filtered chunks that a reader's cache can never hold."""
    facts = subject.facts
    if facts.filters == "none" or not _has_chunks(facts):
        return
    assert facts.chunks is not None
    small = [each for each in subject.readers if facts.chunks.nbytes > each.cache_nbytes]
    if not small:
        return
    block, speed = row(facts), decoding_speed(facts)
    lost = survival(facts, block, small[0], speed)
    if lost.decodes < FEWEST_DECODES:
        return
    limit = min(each.cache_nbytes for each in small)
    smaller = shrunk(facts.chunks.shape, facts.itemsize, limit)
    stored = facts.chunks.allocated * facts.chunks.nbytes
    once_s = stored / speed if speed else None
    yield Finding(
        code="chunk-exceeds-cache",
        severity="warning",
        path=subject.path,
        summary=(
            f"A chunk ({format_shape(facts.chunks.shape)}, {format_size(facts.chunks.nbytes)}) "
            f"does not fit the default chunk cache of {_named(small)}: reading in blocks of "
            f"{format_shape(block)} decodes each chunk {_times(lost.decodes)}"
            f"{_seconds(lost.total_s, once_s)}."
        ),
        evidence={
            "chunk_nbytes": facts.chunks.nbytes,
            "cache_nbytes": limit,
            "block": format_shape(block),
            "decodes_per_chunk": lost.decodes,
            **({} if lost.total_s is None else {"predicted_s": lost.total_s}),
            **({} if once_s is None else {"decoded_once_s": once_s}),
        },
        source=f"{COMPRESSED}, 'Adjust Chunk Cache Size' (Table 5) and 'Change the Chunk Size'",
        fixes=(
            *_cache_for(subject, block, slots_alone=False),
            *rechunk(subject.file, subject.path, smaller, facts.filters),
        ),
        waste_nbytes=int((lost.decodes - 1) * stored),
    )


def slot_collision(subject: Subject) -> Iterator[Finding]:
    """Find reads whose chunks fit a cache, but not its hash table."""
    facts = subject.facts
    if not _has_chunks(facts):
        return
    assert facts.chunks is not None
    found: list[tuple[Survival, str, Block, Reader]] = []
    for reader in subject.readers:
        if not _may_collide(facts, reader):
            continue
        for name, block in blocks(facts):
            # Everything at once, or a chunk, is not come back to.
            if name in ("all", "chunk"):
                continue
            kept = survival(facts, block, reader, decoding_speed(facts))
            if kept.collisions and kept.reloads == kept.collisions and kept.decodes > 1:
                found.append((kept, name, block, reader))
    worst = max(found, key=lambda each: each[0].decodes, default=None)
    if worst is None or worst[0].decodes < FEWEST_DECODES:
        return
    kept, name, block, reader = worst
    chunks = Walk(facts.shape or (), block, facts.chunks.shape).chunks_per_operation
    verb = "fetched" if facts.filters == "none" else "decoded"
    yield Finding(
        code="slot-collision",
        severity="warning",
        path=subject.path,
        summary=(
            f"The {chunks:,} chunks of one read of {format_shape(block)} ({name}) fit the chunk "
            f"cache of {reader.title} by their bytes, but {kept.collisions:,} of them have "
            f"to share its {reader.nslots:,} slots and drop each other: read after read, each "
            f"chunk is {verb} {_times(kept.decodes)} on average."
        ),
        evidence={
            "reader": reader.name,
            "nslots": reader.nslots or 0,
            "pattern": name,
            "chunks": chunks,
            "collisions": kept.collisions,
            "decodes_per_chunk": kept.decodes,
            **({} if kept.total_s is None else {"predicted_s": kept.total_s}),
        },
        source=f"{COMPRESSED}, 'Chunk Caching in HDF5'; H5Pset_cache",
        fixes=_cache_for(subject, block, slots_alone=True),
        waste_nbytes=int((kept.decodes - 1) * facts.chunks.allocated * facts.chunks.nbytes),
    )


CHECKS: Final[tuple[DatasetCheck, ...]] = (chunk_exceeds_cache, slot_collision)


def shrunk(chunk: Block, itemsize: int, limit_nbytes: int) -> Block:
    """Return a chunk of at most so many bytes, its slowest dimensions halved first."""
    sides = list(chunk)
    while math.prod(sides) * itemsize > limit_nbytes and max(sides) > 1:
        slowest = next(d for d, side in enumerate(sides) if side > 1)
        sides[slowest] = -(-sides[slowest] // 2)
    return tuple(sides)


def _has_chunks(facts: DatasetFacts) -> bool:
    return facts.chunks is not None and facts.chunks.allocated > 0 and not facts.variable_length


def _may_collide(facts: DatasetFacts, reader: Reader) -> bool:
    """Whether packed coordinates of chunks can be as large as the hash table."""
    assert facts.chunks is not None
    if not reader.nslots or facts.chunks.nbytes * 2 > reader.cache_nbytes:
        return False
    grid = [-(-n // c) for n, c in zip(facts.shape or (), facts.chunks.shape, strict=True)]
    # The slowest coordinate is on top; below it each takes the bits that it needs.
    bits = sum((n - 1).bit_length() for n in grid[1:])
    return ((grid[0] << bits) if bits else grid[0]) > reader.nslots


def _cache_for(subject: Subject, block: Block, *, slots_alone: bool) -> tuple[Fix, ...]:
    """Give the lines for a cache that holds what a walk comes back to."""
    facts = subject.facts
    assert facts.chunks is not None
    walk = Walk(facts.shape or (), block, facts.chunks.shape)
    held = walk.chunks_per_operation if slots_alone else walk.chunks_to_cache()
    nbytes = -(-held * facts.chunks.nbytes // UNIT_NBYTES) * UNIT_NBYTES
    return larger_cache(subject.file, subject.path, nbytes, hash_slots(held))


def _named(readers: list[Reader]) -> str:
    """Name readers with their caches; this process only where nobody else is concerned."""
    others = [each for each in readers if each.name != "this process"] or readers
    return " and ".join(f"{each.title} ({format_size(each.cache_nbytes)})" for each in others)


def _times(decodes: float) -> str:
    return f"{decodes:,.0f} times" if decodes >= 10 else f"{decodes:.1f} times"


def _seconds(lost_s: float | None, once_s: float | None) -> str:
    if lost_s is None or once_s is None:
        return ""
    return f", about {format_seconds(lost_s)} instead of {format_seconds(once_s)}"
