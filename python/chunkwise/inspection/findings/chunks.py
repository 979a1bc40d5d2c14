"""Does the shape of a dataset's chunks cost every reader time or space?

Shapes are judged by the present extent of a dataset, even if it can grow.  If one
change of the chunk shape would fix several findings, only the most telling is given:
`unlimited-chunk-1` before `small-chunks`, `floor-chunk` before `edge-waste` before
`single-chunk`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from chunkwise.grammar import format_shape, format_size
from chunkwise.grammar.boxes import chunk_counts
from chunkwise.inspection.facts import ChunkFacts, entry_nbytes
from chunkwise.inspection.finding import SEVERITIES, Finding, Severity
from chunkwise.inspection.findings.subject import NETCDF4, PIECE_S, DatasetCheck, Subject, by_cost
from chunkwise.inspection.patterns import stored_as
from chunkwise.model import nominal
from chunkwise.model.chunk_shape import (
    PAGE_NBYTES,
    TINY_CHUNK_NBYTES,
    Present,
    are_too_small,
    suited_chunk,
)
from chunkwise.model.cost import Stored, decodes_by_size, walk_cost
from chunkwise.model.geometry import line, plane
from chunkwise.model.nominal import DECODED_NBYTES_PER_S
from chunkwise.model.purpose import purpose
from chunkwise.model.readers import LIBRARIES, Reader
from chunkwise.model.traffic import Pattern
from chunkwise.names import printable
from chunkwise.remedy.records import Copy, in_chunks
from chunkwise.words import counted

# Below this nothing about a dataset takes a noticeable time, except by the counts below.
SMALL_DATASET_NBYTES: Final = 1 << 20
# A series through fewer chunks than this is quick even if each is a seek (10 ms).
MANY_STEPS: Final = 100
# A chunk that is used to an eighth or less, because the others fall short by that much.
NEARLY_EMPTY: Final = 8
# Less is read in well under a millisecond, and is no space to speak of.
EDGE_NBYTES: Final = 1 << 20
# Share of the dataset's bytes that nearly empty chunks add.
# Table 6 has 56 % of waste and as much loss of speed.
FLOOR_SHARE: Final = 0.1
# Other waste at the edges is often meant (room to grow), up to a third of what is stored.
EDGE_SHARE: Final = 0.5
# Decoding this at zlib's 200 to 400 MB/s is noticed by someone who wanted one number.
SINGLE_CHUNK_NBYTES: Final = 1 << 23


def offered_chunks(subject: Subject) -> tuple[int, ...]:
    """Return the chunks that a dataset is offered: those of ``chunkwise repack --chunk auto``."""
    facts = subject.facts
    assert facts.shape is not None
    if subject.measured is not None and subject.measured.chunks is not None:
        return subject.measured.chunks
    return suited_chunk(
        facts.shape,
        facts.itemsize,
        facts.maxshape,
        subject.stated,
        _present(subject),
        _named(subject),
    )


def _named(subject: Subject) -> tuple[Reader, ...] | None:
    return subject.readers if subject.names_readers else None


def _present(subject: Subject) -> Present | None:
    facts = subject.facts
    chunks = None if facts.chunks is None else facts.chunks.shape
    return Present.of(chunks, facts.filters, facts.stored_nbytes or 0, _named(subject))


def harms_stated(subject: Subject, chunks: tuple[int, ...]) -> bool:
    """Whether stated reads become slower in other chunks, by the model, for any reader."""
    present, facts, best = _present(subject), subject.facts, subject.measured
    if not subject.stated or (best is not None and best.chunks == chunks):
        return False
    return present is not None and not present.is_served(
        _shape(subject), facts.itemsize, subject.stated, chunks
    )


def chunks_for_uses(subject: Subject) -> tuple[int, ...]:
    """Return the chunks that suit the ways of reading that fit a dataset."""
    facts = subject.facts
    shape = _shape(subject)
    found = [one for use in subject.purpose.uses for one in use.patterns(shape)]
    return suited_chunk(shape, facts.itemsize, facts.maxshape, found, None, _named(subject))


def slowdown(subject: Subject, chunks: tuple[int, ...]) -> float:
    """Return how many times as long reading takes in other chunks, by the model."""
    shape, present = _shape(subject), subject.facts.chunks
    before = subject.in_chunks(None if present is None else present.shape)
    uses = [one for use in subject.purpose.uses for one in use.patterns(shape)]
    readers, after = subject.readers or LIBRARIES, subject.in_chunks(chunks)
    return max(
        nominal.slowdown(before, after, (one,), readers) for one in (*uses, Pattern("all", shape))
    )


def other_chunks(subject: Subject, chunks: tuple[int, ...]) -> tuple[Copy, ...]:
    """Store a dataset in other chunks."""
    return in_chunks(subject.file, subject.path, chunks, subject.present)


def if_chunked(subject: Subject, shape: tuple[int, ...]) -> Subject:
    """Return a dataset as it would be in other chunks, all of them stored, in order."""
    facts = subject.facts
    if facts.chunks is None:
        return subject
    grid = math.prod(chunk_counts(_shape(subject), shape))
    chunks = replace(
        facts.chunks,
        shape=shape,
        nbytes=math.prod(shape) * facts.itemsize,
        grid=grid,
        allocated=grid,
        edge_nbytes=_edge_nbytes(subject, shape),
    )
    used = purpose(_shape(subject), shape, facts.itemsize, subject.purpose.signs)
    return replace(subject, facts=replace(facts, chunks=chunks, purpose=used))


def index_nbytes(chunks: ChunkFacts) -> int:
    """Return about how many bytes of the file the list of stored chunks takes."""
    return chunks.allocated * entry_nbytes(len(chunks.shape))


def check_count(subject: Subject) -> Iterator[Finding]:
    """Report too many chunks: ``unlimited-chunk-1``, or else ``small-chunks``."""
    chunks = _stored_chunks(subject)
    if chunks is not None:
        # Users who state patterns want findings about these (`access`).
        found = None if subject.stated else _unlimited_chunk_1(subject, chunks)
        found = found or _small_chunks(subject, chunks)
        if found is not None:
            yield found


def check_reach(subject: Subject, agreed: tuple[int, ...] | None = None) -> Iterator[Finding]:
    """Report chunks that reach too far: ``floor-chunk``, ``edge-waste``, ``single-chunk``."""
    chunks = _stored_chunks(subject)
    if chunks is not None:
        found = (
            _floor_chunk(subject, chunks, agreed)
            or _edge_waste(subject, chunks, agreed)
            or (None if subject.stated else _single_chunk(subject, chunks))
        )
        if found is not None:
            yield found


CHECKS: Final[tuple[DatasetCheck, ...]] = (check_count, check_reach)


# --- too many --------------------------------------------------------------------------


def _unlimited_chunk_1(subject: Subject, chunks: ChunkFacts) -> Finding | None:
    shape, maxshape = _shape(subject), subject.facts.maxshape
    assert maxshape is not None
    steps = [
        i
        for i, (limit, chunk) in enumerate(zip(maxshape, chunks.shape, strict=True))
        if limit is None and chunk == 1 and shape[i] >= MANY_STEPS
    ]
    small = _are_small(chunks)
    if not steps or (_array_nbytes(subject) < SMALL_DATASET_NBYTES and not small):
        return None
    axis = max(steps, key=lambda i: shape[i])
    along = line(shape, axis)
    series = shape[axis] * subject.facts.itemsize
    decoded = _touched_nbytes(subject, along, chunks.shape)
    offered = offered_chunks(subject)
    after = _touched_nbytes(subject, along, offered)
    fewer = -(-shape[axis] // offered[axis])
    # Faster series make reading step by step slower.
    now, then = (
        math.prod(chunk_counts(shape, c)) // -(-shape[axis] // c[axis])
        for c in (chunks.shape, offered)
    )
    if offered[axis] == 1:  # elements too large to share a chunk
        return None
    steps_then = f", and one step through {then:,} instead of {now:,}" if then != now else ""
    waste = max(_decoded_again(subject, chunks, along), decoded - series)
    return Finding(
        code="unlimited-chunk-1",
        # Nobody said that series are read; but small chunks cost every reader.
        severity=_smallness(chunks) if small else "note",
        is_offer=not small,
        path=subject.path,
        summary=(
            f"{_dimension(subject, axis)} can grow and is chunked at 1: no chunk "
            f"({format_size(chunks.nbytes)}) holds more than one of its {shape[axis]:,} steps. A "
            f"series along it asks for {format_size(series)} and goes through {shape[axis]:,} "
            f"chunks ({format_size(decoded)}); in chunks of {format_shape(offered)}, through "
            f"{fewer:,} ({format_size(after)}){steps_then}."
        ),
        evidence={
            "dimension": axis,
            "steps": shape[axis],
            "chunk_nbytes": chunks.nbytes,
            "series_nbytes": series,
            "series_decoded_nbytes": decoded,
            "offered_chunks": format_shape(offered),
            "offered_count": fewer,
            "offered_series_decoded_nbytes": after,
            "step_chunks": now,
            "offered_step_chunks": then,
        },
        source=f"{NETCDF4}, section 4.1.2; netCDF-C's default (nc_def_var_chunking)",
        remedies=other_chunks(subject, offered),
        waste_nbytes=waste,
        block=along,
    )


def _small_chunks(subject: Subject, chunks: ChunkFacts) -> Finding | None:
    if not _are_small(chunks):
        return None
    shape = _shape(subject)
    offered = offered_chunks(subject)
    fewer = math.prod(chunk_counts(shape, offered))
    if fewer >= chunks.allocated:
        return None
    listed = index_nbytes(chunks)
    cost = "each is found, fetched and started on its own"
    if chunks.nbytes < TINY_CHUNK_NBYTES:
        cost = "to find and start each takes longer than to read it"
    return Finding(
        code="small-chunks",
        severity=_smallness(chunks),
        path=subject.path,
        summary=(
            f"{counted(chunks.allocated, 'chunk')} of only {format_size(chunks.nbytes)} "
            f"({format_shape(chunks.shape)}): {cost}, and the list of them takes about "
            f"{format_size(listed)}. Chunks of {format_shape(offered)} would be {fewer:,}."
        ),
        evidence={
            "chunks": chunks.allocated,
            "chunk_nbytes": chunks.nbytes,
            # Unknown if the library cannot list so many chunks.
            **({"median_stored_nbytes": chunks.median_nbytes} if chunks.median_nbytes else {}),
            "index_nbytes": listed,
            "offered_chunks": format_shape(offered),
            "offered_count": fewer,
        },
        source=f"{NETCDF4}, section 5.1.2, guideline 1; Figures 10 and 11, region A",
        remedies=other_chunks(subject, offered),
        waste_nbytes=listed,
    )


def _are_small(chunks: ChunkFacts) -> bool:
    """Whether there are so many chunks, and so small ones, that finding them takes the time."""
    # Small chunks are what keeps an array small that is mostly empty.
    return 2 * chunks.allocated >= chunks.grid and are_too_small(chunks.allocated, chunks.nbytes)


def _smallness(chunks: ChunkFacts) -> Severity:
    """Judge the cost of separate reads, compared with the time to decode the data."""
    found_s = PIECE_S * chunks.allocated
    must_s = chunks.allocated * chunks.nbytes / DECODED_NBYTES_PER_S
    rare = chunks.nbytes >= TINY_CHUNK_NBYTES
    return by_cost(seconds=found_s, times=1 + found_s / must_s, rare=rare)


# --- too far ---------------------------------------------------------------------------


def _floor_chunk(
    subject: Subject, chunks: ChunkFacts, agreed: tuple[int, ...] | None
) -> Finding | None:
    shape = _shape(subject)
    short = [
        i
        for i, (n, c) in enumerate(zip(shape, chunks.shape, strict=True))
        if c < n and 0 < n % c * NEARLY_EMPTY <= c
    ]
    offered = agreed or tuple(
        -(-n // (n // c)) if i in short else snug
        for i, (n, c, snug) in enumerate(
            zip(shape, chunks.shape, _snug(subject, chunks), strict=True)
        )
    )
    array = _array_nbytes(subject)
    left = _edge_nbytes(subject, offered)
    saved = chunks.edge_nbytes - left
    if not short or saved < max(EDGE_NBYTES, FLOOR_SHARE * array):
        return None
    along = " and ".join(str(i) for i in short)
    return Finding(
        code="floor-chunk",
        severity=by_cost(
            nbytes=saved, times=1 + saved / array, filtered=subject.facts.filters != "none"
        ),
        path=subject.path,
        summary=(
            f"Chunks of {format_shape(chunks.shape)} fall just short of {format_shape(shape)}, "
            f"so that nearly empty ones are added along dimension{'s' * (len(short) > 1)} "
            f"{along}: {format_size(chunks.edge_nbytes)} ({counted(chunks.edge_nbytes, 'byte')}) "
            f"{_for_nothing(subject)}. Chunks of {format_shape(offered)} leave "
            f"{format_size(left)}."
        ),
        evidence={
            "chunks": chunks.allocated,
            "chunk_nbytes": chunks.nbytes,
            "edge_nbytes": chunks.edge_nbytes,
            "offered_chunks": format_shape(offered),
            "offered_count": math.prod(chunk_counts(shape, offered)),
            "offered_edge_nbytes": left,
        },
        source=f"{NETCDF4}, section 5.1.2, guidelines 3 and 4; Table 6",
        remedies=other_chunks(subject, offered),
        waste_nbytes=chunks.edge_nbytes,
    )


def _edge_waste(
    subject: Subject, chunks: ChunkFacts, agreed: tuple[int, ...] | None
) -> Finding | None:
    array = _array_nbytes(subject)
    offered = agreed or _snug(subject, chunks)
    left = _edge_nbytes(subject, offered)
    if chunks.edge_nbytes - left < max(EDGE_NBYTES, EDGE_SHARE * array):
        return None
    shape = _shape(subject)
    return Finding(
        code="edge-waste",
        severity=by_cost(
            nbytes=chunks.edge_nbytes,
            times=1 + chunks.edge_nbytes / array,
            filtered=subject.facts.filters != "none",
        ),
        path=subject.path,
        summary=(
            f"Chunks of {format_shape(chunks.shape)} reach far beyond the shape "
            f"{format_shape(shape)}: {format_size(chunks.edge_nbytes)} {_for_nothing(subject)}, "
            f"for {format_size(array)} of data. Chunks of {format_shape(offered)} leave "
            f"{format_size(left)}."
        ),
        evidence={
            "chunks": chunks.allocated,
            "chunk_nbytes": chunks.nbytes,
            "data_nbytes": array,
            "edge_nbytes": chunks.edge_nbytes,
            "offered_chunks": format_shape(offered),
            "offered_edge_nbytes": left,
        },
        source=f"{NETCDF4}, section 5.1.1, Figure 12",
        remedies=other_chunks(subject, offered),
        waste_nbytes=chunks.edge_nbytes,
    )


def _snug(subject: Subject, chunks: ChunkFacts) -> tuple[int, ...]:
    """Return the smallest chunks that are as many; if it can grow, at least a page."""
    shape, maxshape = _shape(subject), subject.facts.maxshape
    assert maxshape is not None
    counts = chunk_counts(shape, chunks.shape)
    snug = [-(-n // count) for n, count in zip(shape, counts, strict=True)]
    for i, limit in enumerate(maxshape):
        if limit is None:
            others = math.prod(snug[:i] + snug[i + 1 :]) * subject.facts.itemsize
            snug[i] = max(snug[i], min(chunks.shape[i], PAGE_NBYTES // others))
    return tuple(snug)


def _single_chunk(subject: Subject, chunks: ChunkFacts) -> Finding | None:
    # Without filters, libhdf5 reads only the selected part of a large chunk.
    whole = chunks.grid == 1 and subject.facts.filters != "none"
    if not whole or _array_nbytes(subject) < SINGLE_CHUNK_NBYTES:
        return None
    shape = _shape(subject)
    axis = next((i for i, n in enumerate(shape) if n > 1), 0)
    across = plane(shape, axis)
    offered = offered_chunks(subject)
    if offered == chunks.shape:  # one element is as large
        return None
    offered_nbytes = math.prod(offered) * subject.facts.itemsize
    again = _decoded_again(subject, chunks, across)
    return Finding(
        code="single-chunk",
        severity=max(
            by_cost(nbytes=again, times=1 + again / chunks.nbytes, rare=True),
            # The cost of any small read, even of the first one.
            by_cost(nbytes=chunks.nbytes - offered_nbytes, times=chunks.nbytes / offered_nbytes),
            key=SEVERITIES.index,
        ),
        path=subject.path,
        summary=(
            "The whole dataset is one chunk: to read any part of it, "
            f"{format_size(chunks.nbytes)} are decoded. In chunks of {format_shape(offered)}, a "
            f"small read decodes {format_size(offered_nbytes)}."
        ),
        evidence={
            "chunk_nbytes": chunks.nbytes,
            "offered_chunks": format_shape(offered),
            "offered_chunk_nbytes": offered_nbytes,
        },
        source=f"{NETCDF4}, section 5.1.2, guidelines 2 and 3",
        remedies=other_chunks(subject, offered),
        waste_nbytes=max(again, chunks.nbytes - subject.facts.itemsize),
    )


# --- arithmetic ------------------------------------------------------------------------


def _stored_chunks(subject: Subject) -> ChunkFacts | None:
    """Return the facts about the chunks, if there is data in any."""
    chunks = subject.facts.chunks
    if chunks is None or not chunks.allocated or not math.prod(_shape(subject)):
        return None
    return chunks


def _shape(subject: Subject) -> tuple[int, ...]:
    assert subject.facts.shape is not None  # only a null dataspace has none, and no layout
    return subject.facts.shape


def _array_nbytes(subject: Subject) -> int:
    return math.prod(_shape(subject)) * subject.facts.itemsize


def _edge_nbytes(subject: Subject, chunks: tuple[int, ...]) -> int:
    """Bytes of a full grid of chunks that lie beyond the shape."""
    grid = math.prod(chunk_counts(_shape(subject), chunks))
    return grid * math.prod(chunks) * subject.facts.itemsize - _array_nbytes(subject)


def _touched_nbytes(subject: Subject, block: tuple[int, ...], chunks: tuple[int, ...]) -> int:
    """Bytes of the chunks that one read of a block touches."""
    return walk_cost(Stored(_shape(subject), chunks, subject.facts.itemsize), block).decoded_nbytes


def _decoded_again(subject: Subject, chunks: ChunkFacts, block: tuple[int, ...]) -> int:
    """Bytes that reading the whole dataset by a block decodes more than once."""
    reader = min(subject.readers or LIBRARIES, key=lambda each: each.cache_nbytes)
    decodes = decodes_by_size(stored_as(subject.facts), block, reader)
    return int((decodes - 1) * chunks.allocated * chunks.nbytes)


# --- words -----------------------------------------------------------------------------


def _dimension(subject: Subject, axis: int) -> str:
    names = subject.facts.dimensions
    name = names[axis] if names is not None else None
    return f"Dimension {axis}" + (f" ({printable(name)})" if name else "")


def _for_nothing(subject: Subject) -> str:
    if subject.facts.filters == "none":
        return "are stored and read for nothing"
    return "are decoded for nothing"
