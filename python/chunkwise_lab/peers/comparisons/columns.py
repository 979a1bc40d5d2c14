"""Columns and rows of matrices, as in paper 001."""

from __future__ import annotations

from collections.abc import Iterator

from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target, alike

COLUMNS = 64


def columns(store: Store) -> Iterator[Comparison]:
    """Columns of a 16384x512 matrix, in the layouts of paper 001's Table 4."""
    shape = (16384, 512)
    for rows, factor in ((None, 12.0), (4096, 1.0), (8192, 1.0), (16384, 1.0)):
        chunk = None if rows is None else (rows, 1)
        data = store.sampled("counting", shape, chunk, "none")
        stored = "contiguous" if rows is None else f"chunks {rows}x1"
        count = min(COLUMNS, data.shape[1])
        for many, what in ((1, "one column"), (count, f"each of {count} columns")):
            arguments = {**data.arguments, "shape": data.shape, "count": many}
            yield Comparison(
                f"column-{stored.replace(' ', '-')}-{'one' if many == 1 else 'each'}",
                "columns",
                f"{what} {data.shape[0]}x1, {stored}, compiled loops",
                alike("loops:columns", ("libhdf5", "chunkwise"), arguments),
                (Target(factor, "libhdf5"),),
                repeat=11 if many == 1 else 7,
            )


def rows(store: Store) -> Iterator[Comparison]:
    """All rows of a 3162x3162 matrix one by one, as in Table 7, beside one read of all."""
    shape = (3162, 3162)
    for chunk in (None, shape):
        data = store.sampled("counting", shape, chunk, "none")
        stored = "contiguous" if chunk is None else "one chunk"
        arguments = {**data.arguments, "shape": data.shape}
        row = {**arguments, "block": (1, data.shape[1])}
        yield Comparison(
            f"rows-{stored.replace(' ', '-')}",
            "rows",
            f"{data.shape[0]:,} rows one by one, {stored}, compiled loops",
            (
                Reader(
                    "libhdf5, one read",
                    "loops:blocks",
                    {"reader": "libhdf5", **arguments, "block": data.shape},
                ),
                Reader("chunkwise", "loops:blocks", {"reader": "chunkwise", **row}),
                Reader("libhdf5, row by row", "loops:blocks", {"reader": "libhdf5", **row}),
            ),
            (Target(1, "libhdf5, one read"),),
            repeat=9,
        )
