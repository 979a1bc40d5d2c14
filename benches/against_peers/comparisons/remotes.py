"""Reading a file behind HTTP that answers after 50 ms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from against_peers.files import Store
from against_peers.spec import Comparison, Reader, Target

READERS: Final = {
    "fsspec": "h5py on fsspec's file",
    "blocks": "the same with blocks of 4 MiB",
    "chunkwise": "chunkwise",
    "ranges": "cat_ranges of the chunks",
}
# What no reader that opens the file can do without.
BOUND: Final = "three rounds and the bytes"
# So many times as long may chunkwise take.
MOST_TIMES: Final = 1.3


def remote(store: Store) -> Iterator[Comparison]:
    """Maps in a row, and points anywhere."""
    data = store.sampled("cube", (365, 600, 600), (1, 600, 600), "shuffle+deflate:4")
    for kind, title in (("maps", "60 of 365 maps"), ("points", "500 points over all maps")):
        readers = tuple(
            Reader(
                name,
                "remotes:opened_and_read",
                {"reader": reader, "kind": kind, **data.arguments},
                limit=reader == "ranges",
                compared=reader != "ranges",
                # Each point of these waits for a chunk.
                most=1 if kind == "points" and reader in ("fsspec", "blocks") else None,
            )
            for reader, name in READERS.items()
        )
        bound = Reader(
            BOUND,
            "remotes:three_rounds",
            {"kind": kind, **data.arguments},
            limit=True,
            compared=False,
        )
        within = Target(1 / MOST_TIMES, BOUND)
        yield Comparison(
            f"remote-{kind}",
            "remote",
            f"cube behind HTTP, 50 ms a request: opened, {title} read",
            (*readers, bound),
            (Target(0.5), within) if kind == "maps" else (within,),
            note="cat_ranges: the chunks alone, their addresses known, nothing decoded; three "
            "rounds: the latency of front, index and chunks, and all their bytes by bare sockets, "
            "nothing decoded",
        )
