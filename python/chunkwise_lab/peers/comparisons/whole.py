"""Whole arrays, and all rows of one, as the papers' users read them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

from chunkwise._native import thread_count
from chunkwise_lab.peers.files import Data, Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target, alike, limit

# Within 15 percent of.
NEARLY: Final = 1 / 1.15
OTHERS: Final = ("netCDF4", "hidefix", "pyfive", "b2h5py")
BARE: Final = "bare decoding"


def whole_readers(data: Data, others: tuple[str, ...] = OTHERS) -> tuple[Reader, ...]:
    """Return those that read everything, one after the other."""
    return alike("peers:whole", ("h5py", "chunkwise", *others), data.arguments)


def bare(chunks: list[str]) -> Reader:
    """Return the limit: decoding of the same chunks, on as many threads, and nothing else."""
    # In the order of the file, and of all chunks: other bytes than a reader's.
    return limit(BARE, [*chunks, str(thread_count())], compared=False)


def cube(store: Store) -> Iterator[Comparison]:
    """A year of maps, shuffled and deflated."""
    data = store.sampled("cube", (365, 600, 600), (1, 600, 600), "shuffle+deflate:4")
    yield Comparison(
        "cube-whole",
        "cube",
        "cube whole (shuffle + deflate)",
        (*whole_readers(data), bare(store.chunks(data))),
        (
            Target(4, "h5py"),
            Target(1, "hidefix"),
            Target(NEARLY, BARE),
        ),
        repeat=5,
    )
    yield Comparison(
        "cube-patched",
        "cube",
        "cube whole through h5py after chunkwise.patch_h5py()",
        tuple(
            Reader(name, "peers:whole", {"reader": reader, **data.arguments})
            for name, reader in (("h5py", "h5py"), ("chunkwise", "patched"))
        ),
        (Target(3, "h5py"),),
        repeat=3,
    )


def cris(store: Store) -> Iterator[Comparison]:
    """Radiances, big-endian and hardly compressible: whole, and all rows."""
    shape, chunk = (60, 30, 9, 717), (4, 30, 9, 717)
    data = store.sampled("cris", shape, chunk, "deflate:6")
    yield Comparison(
        "cris-whole",
        "cris",
        "cris whole (big-endian, deflate)",
        (*whole_readers(data), bare(store.chunks(data))),
        (Target(3.5, "h5py"), Target(NEARLY, BARE)),
        repeat=7,
    )
    rows = {**data.arguments, "shape": data.shape, "block": (1, 1, 1, data.shape[-1])}
    enough, little = "libhdf5, cache 4 MiB", "libhdf5, cache 1 MiB"
    yield Comparison(
        "cris-rows",
        "cris",
        f"{prod(data.shape[:-1]):,} CrIS rows, compiled loops",
        (
            Reader(enough, "loops:blocks", {"reader": "libhdf5", **rows, "cache_nbytes": 4 << 20}),
            Reader("chunkwise", "loops:blocks", {"reader": "chunkwise", **rows}),
            Reader(
                little,
                "loops:blocks",
                {"reader": "libhdf5", **rows, "cache_nbytes": 1 << 20, "operations": 64},
            ),
        ),
        (Target(2.5, enough), Target(2000, little)),
        repeat=5,
        note="with 1 MiB, 64 rows are read and the rest is extrapolated",
    )
