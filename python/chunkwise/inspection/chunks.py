"""How do the chunks of a dataset lie in the file?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from h5py import h5d

from chunkwise._lib import library
from chunkwise.inspection.facts import ChunkFacts

if TYPE_CHECKING:
    from chunkwise._native import ChunkCensus

# H5D_chunk_index_t
_INDEXES: Final = {
    0: "v1 B-tree",
    1: "single chunk",
    2: "implicit",
    3: "fixed array",
    4: "extensible array",
    5: "v2 B-tree",
}


def chunk_facts(
    dataset: h5d.DatasetID, shape: tuple[int, ...], chunk: tuple[int, ...], itemsize: int
) -> tuple[ChunkFacts, int | None]:
    """Collect where the chunks of a chunked dataset are, from its index alone."""
    found = library().chunk_census(dataset.id)
    return facts_of_census(found, shape, chunk, itemsize), found["stored_nbytes"]


def facts_of_census(
    found: ChunkCensus, shape: tuple[int, ...], chunk: tuple[int, ...], itemsize: int
) -> ChunkFacts:
    """Say how chunks lie of which a census was taken."""
    nbytes = math.prod(chunk) * itemsize
    grid = math.prod(-(-n // c) for n, c in zip(shape, chunk, strict=True))
    allocated = found["allocated"]
    smallest, median, largest = found["sizes"] or (None, None, None)
    # If chunks cannot be told apart, some are missing: count none of them as edges.
    covered, pairs, adjacent, backward, span = found["placement"] or (None, 0, 0, 0, 0)
    edge_nbytes = 0 if covered is None else allocated * nbytes - covered * itemsize
    return ChunkFacts(
        shape=chunk,
        nbytes=nbytes,
        grid=grid,
        allocated=allocated,
        index=_INDEXES.get(-1 if found["index_type"] is None else found["index_type"]),
        smallest_nbytes=smallest,
        median_nbytes=median,
        largest_nbytes=largest,
        unfiltered=found["unfiltered"],
        masked=found["masked"],
        edge_nbytes=edge_nbytes,
        pairs=pairs,
        adjacent=adjacent,
        backward=backward,
        span_nbytes=span,
        order_known=found["placement"] is not None,
    )
