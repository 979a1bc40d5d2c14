"""Memory: of a large index, and of thousands of files that are open together."""

from __future__ import annotations

from collections.abc import Iterator

from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target, alike

CHUNKS, FILES = 10_000_000, 4_400


def memory(store: Store) -> Iterator[Comparison]:
    """Bytes, not seconds."""
    chunks = 1000 if store.small else CHUNKS
    yield Comparison(
        "memory-index",
        "memory",
        f"index of {chunks:,} chunks (bytes)",
        (Reader("chunkwise", "limits", {"argv": ["index", str(chunks)]}),),
        (Target(240e6),),
        unit="bytes",
        repeat=1,
    )
    data = store.sampled("cube", (2, 256, 256), (1, 256, 256), "shuffle+deflate:4")
    files = 20 if store.small else FILES
    folder = store.copies(data, files)
    arguments = {"folder": str(folder), "dataset": data.name}
    yield Comparison(
        "memory-files",
        "memory",
        f"{files:,} files open at once, a part of each read (peak resident bytes)",
        alike("many_files:held_open", ("h5py", "chunkwise"), arguments),
        (Target(float(1 << 30)),),
        unit="bytes",
        repeat=1,
        note="descriptors in use and the limit are in the JSON (told)",
    )
