"""Whole arrays behind filters that HDF5 does not bring, and szip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chunkwise_lab.peers.comparisons.whole import bare
from chunkwise_lab.peers.files import Data, Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target, alike

NATIVE: Final = {
    "lz4": "LZ4",
    "zstd:3": "Zstandard",
    "bitshuffle:lz4": "bitshuffle-LZ4",
    "blosc:lz4:5": "Blosc (LZ4)",
    "szip:nn:8": "szip",
}


def filters(store: Store) -> Iterator[Comparison]:
    """Each filter; of Blosc2, a box is to take no longer than b2h5py takes."""
    shape, chunk = (120, 600, 600), (1, 600, 600)
    for spelled, words in NATIVE.items():
        data = store.sampled("cube", shape, chunk, spelled)
        name = spelled.split(":")[0]
        yield Comparison(
            f"filter-{name}",
            "filters",
            f"{words}, whole array",
            (*_readers(data, "all", ("h5py", "chunkwise", "pyfive")), bare(store.chunks(data))),
            (Target(1.6, "h5py"),),
        )
    data = store.sampled("cube", shape, chunk, "blosc2:lz4:5")
    for kind, words in (("all", "whole array"), ("box", "[:, y:y+10, x:x+10]")):
        yield Comparison(
            f"filter-blosc2-{kind}",
            "filters",
            f"Blosc2 (LZ4), {words}",
            _readers(data, kind, ("h5py", "chunkwise", "b2h5py")),
            (Target(1, "b2h5py"),) if kind == "box" else (),
            repeat=5,
        )


def _readers(data: Data, kind: str, names: tuple[str, ...]) -> tuple[Reader, ...]:
    arguments = {**data.arguments, "kind": kind, "plugins": True}
    return alike("peers:picked", names, arguments)
