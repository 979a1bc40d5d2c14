"""How long will a pattern take before and after, by the model?

Chunks touched and decoded are counted (`chunkwise.advise.cost`), and the sample that inspect took
tells how fast they decode.  The rest are costs of h5py and libhdf5 on bytes in memory.
"""

from __future__ import annotations

import math
from typing import Final

from chunkwise.access import Access
from chunkwise.advise.cost import Stored, decodes_in_no_order, walk_cost
from chunkwise.advise.readers import Reader, this_process
from chunkwise.grammar import Pipeline
from chunkwise.inspecting.facts import DatasetFacts
from chunkwise.inspecting.findings.severity import DECODED_NBYTES_PER_S
from chunkwise.inspecting.patterns import decoding_speed, pieces

# One read: Python, h5py and libhdf5's selections (10 us), and each chunk that it touches.
_CALL_S: Final = 1e-5
_TOUCH_S: Final = 3e-6
# One chunk that is not cached: found, fetched, its filters started.
_LOAD_S: Final = 5e-6
# Bytes copied, and chunks fetched that have no filters.
_COPIED_NBYTES_PER_S: Final = 4e9
_FETCHED_NBYTES_PER_S: Final = 2.5e9
# A piece of contiguous data, if it lies beyond what libhdf5's sieve buffer holds.
_PIECE_S: Final = 4e-6
_SIEVE_NBYTES: Final = 1 << 16


def promised_s(
    facts: DatasetFacts,
    access: Access,
    *,
    chunk: tuple[int, ...] | None,
    filters: str,
    reader: Reader | None = None,
) -> float | None:
    """Predict the seconds of a pattern over the whole dataset, read by h5py from memory.

    Parameters
    ----------
    facts
        The dataset as it is, with its sample.
    access
        What is read.
    chunk
        The chunk shape for which it is predicted; None for contiguous data.
    filters
        The pipeline for which it is predicted.
    reader
        Whose chunk cache; None for that of this process.

    Returns
    -------
    float or None
        None where the model does not know the pattern (unions), or the data were not sampled.
    """
    shape = facts.shape
    if not shape or access.has_unions:
        return None
    reads = _reads(shape, access)
    selected = reads * math.prod(access.block) * facts.itemsize
    if access.is_ordered:
        selected = math.prod(shape) * facts.itemsize
    seconds = reads * _CALL_S + selected / _COPIED_NBYTES_PER_S
    if chunk is None:
        return seconds + reads * _contiguous_s(shape, access.block, facts.itemsize)
    speed = _speed(facts, filters)
    if speed is None:
        return None
    stored = Stored(shape, chunk, facts.itemsize, filters != "none")
    one = reader or this_process()
    cost = walk_cost(stored, access.block, one, order=access.order)
    chunks = math.prod(stored.grid) * _share(facts)
    if access.is_ordered:
        loads = cost.decodes * chunks
    else:
        again = decodes_in_no_order(stored, access.block, one, reads)
        loads = again * min(reads * cost.chunks, chunks)
    return (
        seconds + reads * cost.chunks * _TOUCH_S + loads * (_LOAD_S + stored.chunk_nbytes / speed)
    )


def _reads(shape: tuple[int, ...], access: Access) -> int:
    if access.limit is not None:
        return access.limit
    if access.slabs is not None:
        return len(access.slabs)
    return math.prod(-(-n // b) for n, b in zip(shape, access.block, strict=True))


def _share(facts: DatasetFacts) -> float:
    """The part of the chunks that hold data."""
    return facts.chunks.allocated / facts.chunks.grid if facts.chunks else 1.0


def _speed(facts: DatasetFacts, filters: str) -> float | None:
    """Bytes decoded in a second under a pipeline, by the sample where it tells."""
    codecs = [one.name for one in Pipeline.parse(filters).filters]
    if not codecs:
        return _FETCHED_NBYTES_PER_S
    own = [one.name for one in Pipeline.parse(facts.filters).filters]
    # What shuffle adds is little beside what compressors take.
    if set(own) - {"shuffle"} == set(codecs) - {"shuffle"}:
        return decoding_speed(facts)
    return float(DECODED_NBYTES_PER_S)


def _contiguous_s(shape: tuple[int, ...], block: tuple[int, ...], itemsize: int) -> float:
    """Predict what gathering one block of contiguous data takes."""
    count = pieces(shape, block)
    inner = next((d for d in reversed(range(len(shape))) if block[d] < shape[d]), 0)
    split = next((d for d in reversed(range(inner)) if block[d] > 1), None)
    stride = itemsize * math.prod(shape[(inner if split is None else split) + 1 :])
    return count * _PIECE_S * min(1.0, stride / _SIEVE_NBYTES)
