"""Do bytes that are read together lie together in the file?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from chunkwise.grammar import format_shape, format_size
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.findings.chunks import index_nbytes, offered_chunks, other_chunks
from chunkwise.inspection.findings.subject import NETCDF4, PIECE_S, DatasetCheck, Subject, by_cost
from chunkwise.model.chunk_shape import PAGE_NBYTES
from chunkwise.remedy.records import Copy
from chunkwise.words import counted

# A line in fewer pieces than this is quick even if each is a seek (10 ms).
MANY_PIECES: Final = 1_000
# Less than this is read in a moment, and the system's cache keeps it (section 4.1.2).
# The paper's array of 32 MiB is the smallest that was seen to be slow.
STRIDED_NBYTES: Final = 1 << 24
# Shorter rows than this are quicker read in full than left out.
STRIDED_AMPLIFICATION: Final = 32
# Larger pieces take longer to read than to find: 10 ms of a disk at 100 MB/s.
SMALL_PIECE_NBYTES: Final = 1 << 20
# Chunks one after the other, but for alignment between them, span little more than their
# own bytes; those of two variables written by turns span twice as much.
SPAN_RATIO: Final = 1.9
# Written in another order of the dimensions, one pair in each row or so goes back; in no
# order at all, half of them.
BACKWARD_SHARE: Final = 0.25
# What Linux reads ahead.
READ_AHEAD_NBYTES: Final = 1 << 17


def check_strided(subject: Subject) -> Iterator[Finding]:
    """Report ``strided-contiguous``: lines that are gathered element by element."""
    facts = subject.facts
    if facts.layout != "contiguous" or not facts.shape or not facts.stored_nbytes:
        return
    if subject.stated:
        return
    shape = facts.shape
    strides = [math.prod(shape[i + 1 :]) * facts.itemsize for i in range(len(shape))]
    # The dimension whose lines bring in most: for each element a page, or all up to the next.
    piece = max(facts.itemsize, PAGE_NBYTES)
    fetched = [n * min(stride, piece) for n, stride in zip(shape, strides, strict=True)]
    line_fetched = max(fetched)
    axis = fetched.index(line_fetched)
    line_nbytes = shape[axis] * facts.itemsize
    array = math.prod(shape) * facts.itemsize
    if shape[axis] < MANY_PIECES or array < STRIDED_NBYTES:
        return
    if line_fetched < STRIDED_AMPLIFICATION * line_nbytes:
        return
    lines = array // line_nbytes
    offered = offered_chunks(subject)
    yield Finding(
        code="strided-contiguous",
        severity="note",
        is_offer=True,
        path=subject.path,
        summary=(
            f"If you read lines along dimension {axis}: stored in one piece, row after row, each "
            f"is gathered from "
            f"{shape[axis]:,} places, {format_size(strides[axis])} apart. For "
            f"{format_size(line_nbytes)} the system reads {format_size(line_fetched)}; chunks of "
            f"{format_shape(offered)} serve lines along every dimension."
        ),
        evidence={
            "dimension": axis,
            "pieces": shape[axis],
            "stride_nbytes": strides[axis],
            "line_nbytes": line_nbytes,
            "line_fetched_nbytes": line_fetched,
            "offered_chunks": format_shape(offered),
        },
        source=f"{NETCDF4}, section 4.1.2, Figure 7",
        remedies=other_chunks(subject, offered),
        waste_nbytes=lines * (line_fetched - line_nbytes),
    )


def check_scattered(subject: Subject) -> Iterator[Finding]:
    """Report ``scattered-chunks``: neighbours in the array that are none in the file."""
    chunks, stored = subject.facts.chunks, subject.facts.stored_nbytes
    if chunks is None or not stored or not chunks.order_known:
        return
    pieces = chunks.pairs - chunks.adjacent + 1
    if pieces < MANY_PIECES or (chunks.median_nbytes or 0) >= SMALL_PIECE_NBYTES:
        return
    # The list of the chunks lies among them, and says nothing about what else does.
    spread = chunks.span_nbytes - index_nbytes(chunks) >= SPAN_RATIO * stored
    shuffled = chunks.backward >= BACKWARD_SHARE * chunks.pairs
    if not spread and not shuffled:
        return
    if spread:
        how = (
            f"with other data between: their {format_size(stored)} are spread over "
            f"{format_size(chunks.span_nbytes)} of the file, as when several datasets are "
            "written by turns"
        )
    else:
        how = (
            f"in another order: {counted(chunks.backward, 'time')} the next one lies further back"
        )
    yield Finding(
        code="scattered-chunks",
        severity=by_cost(seconds=PIECE_S * pieces),
        path=subject.path,
        summary=(
            f"Chunks that follow each other lie in {pieces:,} separate places of the file, {how}. "
            f"Each is a seek, or a request to an object store, for "
            f"{format_size(stored // pieces)}; a copy brings them together."
        ),
        evidence={
            "chunks": chunks.allocated,
            "pieces": pieces,
            "backward": chunks.backward,
            "stored_nbytes": stored,
            "span_nbytes": chunks.span_nbytes,
        },
        source="H5Dchunk_iter: address and stored size of each chunk",
        remedies=(Copy(subject.file),),
        waste_nbytes=max(0, min(chunks.span_nbytes - stored, pieces * READ_AHEAD_NBYTES)),
    )


CHECKS: Final[tuple[DatasetCheck, ...]] = (check_strided, check_scattered)
