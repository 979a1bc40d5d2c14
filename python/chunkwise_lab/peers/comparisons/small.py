"""Small reads: a row of 12 KB, through Python and in a compiled loop."""

from __future__ import annotations

from collections.abc import Iterator

from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target, alike, limit

SHAPE = (3162, 3162)


def small(store: Store) -> Iterator[Comparison]:
    """Rows of a contiguous matrix, and of one whose chunk is cached decoded."""
    contiguous = store.sampled("counting", SHAPE, None, "none")
    for stored, chunk, filters in (
        ("contiguous", None, "none"),
        ("cached", SHAPE, "shuffle+deflate:1"),
    ):
        data = store.sampled("counting", SHAPE, chunk, filters)
        arguments = data.arguments
        yield Comparison(
            f"small-{stored}",
            "small",
            f"a row of 12 KB, {stored}, through Python (a call)",
            (
                *alike("rows:by_index", ("h5py", "chunkwise"), arguments),
                Reader(
                    "np.empty and os.preadv",
                    "rows:by_preadv",
                    {"file": str(data.path), "nbytes": data.shape[1] * 4},
                    limit=True,
                ),
            ),
            (Target(3.5e-6),),
            repeat=9,
        )
        source = "memory" if chunk else "pread"
        walked = {**arguments, "shape": data.shape}
        yield Comparison(
            f"small-{stored}-compiled",
            "small",
            f"a row of 12 KB, {stored}, in a compiled loop (a call)",
            (
                *alike("loops:small", ("libhdf5", "chunkwise"), walked),
                limit(
                    "copy from memory" if chunk else "pread",
                    # Bytes as many as the matrix has, not compressed.
                    ["rows", source, str(contiguous.path), data.shape[1] * 4],
                ),
            ),
            (Target(1e-6),),
            repeat=9,
            note="libhdf5's chunk cache holds the chunk, too" if chunk else "",
        )
