"""Regions of large chunks that filters store in blocks, and one such chunk on all threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison, Target, alike

# Frames as detectors write them: 8 MiB each, a chunk each.
FRAMES: Final = (8, 2048, 2048)
WHOLE: Final = (1, 8192, 16384)
NATIVE: Final = {
    "bitshuffle:lz4": "bitshuffle-LZ4",
    "blosc:lz4:5": "Blosc (LZ4)",
    "blosc2:lz4:5": "Blosc2 (LZ4)",
    "lz4:block=65536": "LZ4",
}
TARGETED: Final = ("bitshuffle:lz4", "blosc:lz4:5")
ONE: Final = "one thread"


def roi(store: Store) -> Iterator[Comparison]:
    """Regions of frames of which nothing was read before; then whole chunks."""
    for spelled, words in NATIVE.items():
        data = store.frames(FRAMES, spelled)
        names = ("h5py", "chunkwise", *(["b2h5py"] if spelled.startswith("blosc2") else []))
        yield Comparison(
            f"roi-{spelled.split(':')[0]}",
            "roi",
            f"{words}, 50x50 of each of 8 frames",
            alike("peers:regions", names, data.arguments),
            (Target(15, "h5py"),) if spelled in TARGETED else (),
            repeat=15,
        )
    for spelled in TARGETED:
        data = store.frames(WHOLE, spelled)
        arguments = {**data.arguments, "kind": "all", "plugins": True}
        yield Comparison(
            f"one-chunk-{spelled.split(':')[0]}",
            "roi",
            f"{NATIVE[spelled]}, one chunk of 256 MiB, whole",
            alike("peers:picked", ("h5py", "chunkwise", ONE), arguments),
            (Target(1.7, ONE),),
        )
