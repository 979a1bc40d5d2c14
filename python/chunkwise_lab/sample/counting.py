"""`counting`: the integers 0, 1, 2, ..., from which paper 003 selects hyperslabs.

Every element is its own position, so a wrong read shows at once.  Shape,
chunk and filter are those of the paper's "small dataset, many chunks"; give
``--shape 100000x3000 --chunk 500x500`` for its "normal dataset".  With other ranks it
is what paper 003's test tool reads, and paper 001's array variables:
``--shape 56x56x56x56 --chunk contiguous``.
"""

from __future__ import annotations

import numpy as np

from chunkwise_lab.sample.spec import Region, Sample, Values


def _values(region: Region) -> Values:
    # Beyond 2**31 elements the count starts again at 0.
    return region.linear_index() & np.uint64(2**31 - 1)


COUNTING = Sample(
    name="counting",
    summary="the integers 0, 1, 2, ...",
    stands_for="paper 003, HDF5 Performance Testing with Complex Hyperslabs",
    datasets=("/counting",),
    dtype="<i4",
    shape=(10000, 3000),
    chunk=(50, 50),
    filters="deflate:5",
    values=_values,
    any_rank=True,
)
