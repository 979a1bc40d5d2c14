"""Reading a file behind HTTP that answers after 50 ms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target

READERS: Final = {
    "fsspec": "h5py on fsspec's file",
    "blocks": "the same with blocks of 4 MiB",
    "chunkwise": "chunkwise",
    "ranges": "cat_ranges of the chunks",
}
# A line of 1 Gbit/s; on loopback the server takes a processor from the decoding.
GIGABIT: Final = 125e6
# What no reader that opens the file can do without.
BOUND: Final = "three rounds and the bytes"
# So many times as long may chunkwise take.
MOST_TIMES: Final = 1.3


def remote(store: Store) -> Iterator[Comparison]:
    """Maps in a row, and points anywhere."""
    data = store.sampled("cube", (365, 600, 600), (1, 600, 600), "shuffle+deflate:4")
    maps, points = "60 of 365 maps", "500 points over all maps"
    for kind, title, rate in (
        ("maps", maps, None),
        ("points", points, None),
        ("maps", maps, GIGABIT),
        ("points", points, GIGABIT),
    ):
        served = {"kind": kind, "rate": rate, **data.arguments}
        line = " over 1 Gbit/s" if rate else ""
        readers = tuple(
            Reader(
                name,
                "remotes:opened_and_read",
                {"reader": reader, **served},
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
            served,
            limit=True,
            compared=False,
        )
        within = Target(1 / MOST_TIMES, BOUND)
        yield Comparison(
            f"remote-{kind}-gigabit" if rate else f"remote-{kind}",
            "remote",
            f"cube behind HTTP, 50 ms a request{line}: opened, {title} read",
            (*readers, bound),
            (Target(0.5), within) if kind == "maps" and not rate else (within,),
            note="cat_ranges: the chunks alone, their addresses known, nothing decoded; three "
            "rounds: the latency of front, index and chunks, and all their bytes by bare sockets, "
            "nothing decoded"
            + ("" if rate else " (on loopback, decoding takes longer than the bytes do)"),
        )
