"""A virtual dataset over 50 compressed files: all of it, a slice across, and small boxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison, Target, alike

FILES: Final = 50
MAP: Final = (1, 600, 600)
FILTERS: Final = "shuffle+deflate:4"
# What is read, in words, and how many times as fast as h5py it shall be.
KINDS: Final = {
    "all": ("whole", 4),
    "box": ("[:, y:y+10, x:x+10], a slice across", 3),
}


def virtual(store: Store) -> Iterator[Comparison]:
    """Sources of seven chunks each, and of a single one."""
    for length in (7, 1):
        data = store.mapped((length, *MAP[1:]), MAP, FILTERS, FILES)
        chunks = "seven chunks" if length == 7 else "one chunk"
        for kind, (title, factor) in KINDS.items():
            arguments = {**data.arguments, "kind": kind}
            yield Comparison(
                f"virtual-{length}-{kind}",
                "virtual",
                f"{FILES} files of {chunks} each, {title}",
                alike("peers:picked", ("h5py", "chunkwise", "patched"), arguments),
                (Target(factor, "h5py"),),
                repeat=5,
            )
        yield Comparison(
            f"virtual-{length}-boxes",
            "virtual",
            f"{FILES} files of {chunks} each, 10x10 at random of each map, one call each",
            alike("peers:regions", ("h5py", "chunkwise"), {**data.arguments, "size": 10}),
            (Target(1, "h5py"),),
            repeat=5,
        )
