"""Does a reader's default chunk cache hold the chunks that the reader needs again?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import h5py

from chunkwise.grammar import format_shape, format_size
from chunkwise.inspection.facts import ChunkFacts, DatasetFacts, Survival
from chunkwise.inspection.finding import SEVERITIES, Severity, Unspelled
from chunkwise.inspection.findings.chunks import offered_chunks, other_chunks
from chunkwise.inspection.findings.severity import by_cost
from chunkwise.inspection.findings.subject import COMPRESSED, DatasetCheck, Subject
from chunkwise.inspection.patterns import (
    Block,
    decoding_speed,
    row,
    stored_as,
    survival,
    walked,
)
from chunkwise.model import readers, worth
from chunkwise.model.chunk_shape import shrunk
from chunkwise.model.cost import decodes_by_size
from chunkwise.model.geometry import plane
from chunkwise.model.held import holding
from chunkwise.model.readers import CHUNKWISE, Reader, this_process
from chunkwise.model.traffic import Pattern
from chunkwise.remedy.records import Copy, ReadOnce, Remedy, SetCache, larger_cache, natively
from chunkwise.words import counted, format_seconds, joined

# About a second of inflating: what is decoded in vain must take so long to be noticed.
NOTICED_NBYTES: Final = 256 << 20
# Without filters chunks are only fetched, about this many times as fast.
FETCHING_SPEED: Final = 8
# The most that may be kept in memory as a whole without asking.
READ_ONCE_NBYTES: Final = 1 << 30


def chunk_exceeds_cache(subject: Subject) -> Iterator[Unspelled]:
    """Find filtered chunks that a reader's cache can never hold."""
    facts, chunks = subject.facts, _chunks(subject)
    if facts.filters == "none" or chunks is None:
        return
    small = [each for each in subject.readers if chunks.nbytes > each.cache_nbytes]
    block = _in_a_loop(subject)
    if not small or block is None:
        return
    lost = survival(facts, Pattern("", block), small[0], decoding_speed(facts))
    if lost.decodes < worth.NOTICED or not _is_noticed(facts, lost.decodes):
        return
    limit = min(each.cache_nbytes for each in small)
    smaller = shrunk(chunks.shape, facts.itemsize, limit)
    yield Unspelled(
        code="chunk-exceeds-cache",
        severity=_severity(facts, lost.decodes, rare=False),
        path=subject.path,
        summary=(
            f"A chunk ({format_shape(chunks.shape)}, {format_size(chunks.nbytes)}) "
            f"does not fit the default chunk cache of {_named(small)}: reading "
            f"{_in_words(facts, block)} decodes each chunk {_times(lost.decodes)}"
            f"{_seconds(facts, lost)}.{_here(subject, chunks.nbytes)}"
        ),
        evidence={
            "chunk_nbytes": chunks.nbytes,
            "cache_nbytes": limit,
            **_evidence(facts, block, lost),
        },
        source=f"{COMPRESSED}, 'Adjust Chunk Cache Size' (Table 5) and 'Change the Chunk Size'",
        remedies=(
            *_reading(subject, block, small),
            *other_chunks(subject, smaller),
        ),
        waste_nbytes=_waste(facts, lost.decodes),
    )


def reads_exceed_cache(subject: Subject) -> Iterator[Unspelled]:
    """Find walks that read too many other chunks between two reads of a chunk."""
    facts, chunks = subject.facts, _chunks(subject)
    smallest = min((each.cache_nbytes for each in subject.readers), default=0)
    if chunks is None or chunks.grid * chunks.nbytes <= smallest:
        return
    stored = stored_as(facts)
    found: list[tuple[Severity, float, str, Block, list[Reader]]] = []
    for name, block in _walks(subject):
        affected = [
            (decodes, reader)
            for reader in subject.readers
            if reader.cache_nbytes >= chunks.nbytes
            and (decodes := decodes_by_size(stored, block, reader)) >= worth.NOTICED
        ]
        if affected:
            decodes = max(decodes for decodes, _ in affected)
            concerned = [reader for _, reader in affected]
            severity = _of_walk(subject, block, decodes, concerned)
            if _is_noticed(facts, decodes):
                found.append((severity, decodes, name, block, concerned))
    worst = max(found, key=lambda each: (SEVERITIES.index(each[0]), each[1]), default=None)
    if worst is None:
        return
    severity, _, name, block, affected_readers = worst
    reader = min(affected_readers, key=lambda each: each.cache_nbytes)
    lost = survival(facts, Pattern(name, block), reader, decoding_speed(facts))
    needed = stored.walk(block).chunks_to_cache()
    verb = "fetches" if facts.filters == "none" else "decodes"
    yield Unspelled(
        code="reads-exceed-cache",
        severity=severity,
        path=subject.path,
        summary=(
            f"Reading {_in_words(facts, block)}, one after the other, comes back to each chunk "
            f"after {needed:,} of them ({format_size(needed * chunks.nbytes)}), more than "
            f"the default chunk cache of {_named(affected_readers)} holds: it {verb} each chunk "
            f"{_times(lost.decodes)}{_seconds(facts, lost)}."
        ),
        evidence={
            "pattern": name,
            "chunks_to_cache": needed,
            "chunks_to_cache_nbytes": needed * chunks.nbytes,
            "cache_nbytes": max(each.cache_nbytes for each in affected_readers),
            **_evidence(facts, block, lost),
        },
        source=f"{COMPRESSED}, 'Adjust Chunk Cache Size'; H5Pset_chunk_cache",
        remedies=(
            *_reading(subject, block, affected_readers),
            *_other_chunks(subject, block, affected_readers),
        ),
        waste_nbytes=_waste(facts, lost.decodes),
        block=block,
    )


def slot_collision(subject: Subject) -> Iterator[Unspelled]:
    """Find reads whose chunks fit a cache, but not its hash table."""
    facts, chunks = subject.facts, _chunks(subject)
    if chunks is None:
        return
    stored = stored_as(facts)
    found: list[tuple[Survival, str, Block, Reader]] = []
    for reader in subject.readers:
        if not _may_collide(facts, reader):
            continue
        for name, block in _walks(subject):
            touched = stored.walk(block).chunks_per_operation
            # Chunks that do not fit by their bytes are lost with any number of slots.
            if touched * chunks.nbytes > reader.cache_nbytes:
                continue
            kept = survival(facts, Pattern(name, block), reader, decoding_speed(facts))
            if kept.decodes >= worth.NOTICED and _is_noticed(facts, kept.decodes):
                found.append((kept, name, block, reader))
    worst = max(found, key=lambda each: each[0].decodes, default=None)
    if worst is None:
        return
    kept, name, block, reader = worst
    touched = stored.walk(block).chunks_per_operation
    verb = "fetched" if facts.filters == "none" else "decoded"
    yield Unspelled(
        code="slot-collision",
        severity=_severity(facts, kept.decodes, rare=False),
        path=subject.path,
        summary=(
            f"The {touched:,} chunks of one read of {format_shape(block)} ({name}) fit the chunk "
            f"cache of {reader.title} by their bytes, but {kept.collisions:,} of them have "
            f"to share its {counted(reader.nslots or 0, 'slot')} and drop each other: read after "
            "read, each "
            f"chunk is {verb} {_times(kept.decodes)} on average."
        ),
        evidence={
            "reader": reader.name,
            "nslots": reader.nslots or 0,
            "pattern": name,
            "chunks": touched,
            "collisions": kept.collisions,
            **_evidence(facts, block, kept),
        },
        source=f"{COMPRESSED}, 'Chunk Caching in HDF5'; H5Pset_cache",
        remedies=(
            _cache_for(subject, touched, [reader]),
            *_other_chunks(subject, block, [reader]),
        ),
        waste_nbytes=_waste(facts, kept.decodes),
    )


CHECKS: Final[tuple[DatasetCheck, ...]] = (
    chunk_exceeds_cache,
    reads_exceed_cache,
    slot_collision,
)


# --- what is looked at -----------------------------------------------------------------


def _chunks(subject: Subject) -> ChunkFacts | None:
    """Return the facts about the chunks, if there is data in any."""
    chunks = subject.facts.chunks
    return chunks if chunks and chunks.allocated and not subject.facts.variable_length else None


def _walks(subject: Subject) -> Iterator[tuple[str, Block]]:
    """Give the patterns that come back to chunks: not everything at once, nor by chunks.

    Of those that are stated, the ones in C order; `access` judges all.
    """
    for one in walked(subject.facts, subject.stated):
        plain = one.order is None and not one.scattered and not one.writes
        if plain if subject.stated else one.name not in ("all", "chunk"):
            yield one.name, one.block


def _in_a_loop(subject: Subject) -> Block | None:
    """Give the block that programs read in a loop; of stated ones the first, if there is any."""
    if not subject.stated:
        return row(subject.facts)
    return next((block for _, block in _walks(subject)), None)


def _severity(facts: DatasetFacts, decodes: float, *, rare: bool) -> Severity:
    """Judge chunks that are decoded so often, each once being what it must be."""
    filtered = facts.filters != "none"
    return by_cost(nbytes=_waste(facts, decodes), times=decodes, rare=rare, filtered=filtered)


def _of_walk(
    subject: Subject, block: Block, decodes: float, affected: Sequence[Reader]
) -> Severity:
    """Judge a walk: chunks that serve one way of reading cost another, which is no fault.

    The usual way is row by row or plane by plane in C order.  What does not concern the
    reader at hand, nor the only one asked for, is a note.
    """
    shape = subject.facts.shape or ()
    axes = [d for d, n in enumerate(shape) if n > 1]
    # Nobody states a way of reading that nobody uses.
    natural = bool(subject.stated) or block in (row(subject.facts), plane(shape, axes[0]))
    here = this_process().cache_nbytes
    concerned = len(subject.readers) == 1 or any(each.cache_nbytes >= here for each in affected)
    return _severity(subject.facts, decodes, rare=not natural) if concerned else "note"


def _may_collide(facts: DatasetFacts, reader: Reader) -> bool:
    """Whether packed coordinates of chunks can be as large as the hash table."""
    assert facts.chunks is not None
    if not reader.nslots or facts.chunks.nbytes * 2 > reader.cache_nbytes:
        return False
    grid = stored_as(facts).grid
    # The slowest coordinate is on top; below it each takes the bits that it needs.
    bits = sum((n - 1).bit_length() for n in grid[1:])
    return ((grid[0] << bits) if bits else grid[0]) > reader.nslots


def _waste(facts: DatasetFacts, decodes: float) -> int:
    """Bytes that reading the whole dataset decodes more than once."""
    assert facts.chunks is not None
    return int((decodes - 1) * facts.chunks.allocated * facts.chunks.nbytes)


def _is_noticed(facts: DatasetFacts, decodes: float) -> bool:
    noticed = NOTICED_NBYTES * (FETCHING_SPEED if facts.filters == "none" else 1)
    return _waste(facts, decodes) >= noticed


def _evidence(facts: DatasetFacts, block: Block, lost: Survival) -> dict[str, int | float | str]:
    once_s = _once_s(facts)
    return {
        "block": format_shape(block),
        "decodes_per_chunk": lost.decodes,
        **({} if lost.total_s is None else {"predicted_s": lost.total_s}),
        **({} if once_s is None else {"decoded_once_s": once_s}),
    }


def _once_s(facts: DatasetFacts) -> float | None:
    """Seconds of decoding everything once."""
    assert facts.chunks is not None
    speed = decoding_speed(facts)
    return facts.chunks.allocated * facts.chunks.nbytes / speed if speed else None


# --- remedies --------------------------------------------------------------------------


def _reading(subject: Subject, block: Block, affected: Sequence[Reader]) -> Iterator[Remedy]:
    """Read the file as it is: with a larger cache, by chunkwise, or all at once."""
    facts = subject.facts
    assert facts.chunks is not None
    stored = stored_as(facts)
    held = stored.walk(block).chunks_to_cache()
    if holding(held, facts.chunks.nbytes).is_moderate:
        yield _cache_for(subject, held, affected)
    # If chunkwise's own cache loses the same chunks, it is no remedy.
    if decodes_by_size(stored, block, readers.reader(CHUNKWISE)) < worth.NOTICED:
        yield from natively(subject.file, subject.path, facts.filters)
    if (facts.logical_nbytes or 0) <= READ_ONCE_NBYTES:
        yield ReadOnce(subject.file, subject.path)


def _cache_for(subject: Subject, held: int, affected: Sequence[Reader]) -> SetCache:
    """Give a dataset a cache of so many chunks, by the lines for the reader concerned first."""
    assert subject.facts.chunks is not None
    here = this_process()
    cache = holding(
        held,
        subject.facts.chunks.nbytes,
        least_nbytes=here.cache_nbytes,
        least_nslots=here.nslots or 0,
    )
    names = [each.name for each in affected]
    filters = subject.facts.filters
    return larger_cache(subject.file, subject.path, cache, readers=names, filters=filters)


def _other_chunks(subject: Subject, block: Block, affected: Sequence[Reader]) -> tuple[Copy, ...]:
    """Offer other chunks, if one of the readers decodes those much less often."""
    offered = offered_chunks(subject)
    stored = stored_as(subject.facts)
    largest = max(affected, key=lambda each: each.cache_nbytes)
    before, after = (
        decodes_by_size(each, block, largest) for each in (stored, replace(stored, chunks=offered))
    )
    return () if after * worth.NOTICED > before else other_chunks(subject, offered)


# --- words -----------------------------------------------------------------------------


def _named(readers: Sequence[Reader]) -> str:
    """Name readers with their caches; this process only if nobody else is concerned."""
    others = [each for each in readers if each.name != "this process"] or readers
    return joined([f"{each.title} ({format_size(each.cache_nbytes)})" for each in others])


def _in_words(facts: DatasetFacts, block: Block) -> str:
    """Say what is read, as a scientist would."""
    shape = facts.shape or ()
    axes = [d for d, n in enumerate(shape) if n > 1]
    long = [d for d in axes if block[d] > 1]
    spelled = format_shape(block)
    if len(axes) < 2:
        return f"small pieces (such as {counted(block[axes[0]], 'value')})" if axes else spelled
    if len(long) == 1:
        word = "row by row" if long == axes[-1:] else f"lines along dimension {long[0]}"
        return f"{word} ({spelled})"
    across = [d for d in axes if d not in long]
    return f"planes across dimension {across[0]} ({spelled})" if len(across) == 1 else spelled


def _here(subject: Subject, needed_nbytes: int) -> str:
    """Say that the library at hand is not concerned, if it is not."""
    here = this_process()
    judged = any(each.cache_nbytes == here.cache_nbytes for each in subject.readers)
    if not judged or needed_nbytes > here.cache_nbytes:
        return ""
    return f" (Not HDF5 {h5py.version.hdf5_version}, which is used here.)"


def _times(decodes: float) -> str:
    return f"{decodes:,.0f} times" if decodes >= 10 else f"{decodes:.1f} times"


def _seconds(facts: DatasetFacts, lost: Survival) -> str:
    once_s = _once_s(facts)
    if lost.total_s is None or once_s is None:
        return ""
    return f", about {format_seconds(lost.total_s)} instead of {format_seconds(once_s)}"
