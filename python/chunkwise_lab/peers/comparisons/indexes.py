"""References to chunks: chunkwise index beside kerchunk and VirtualiZarr."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison, Target, alike

CHUNKS: Final = 1_000_000
WRITERS: Final = ("kerchunk", "virtualizarr", "chunkwise")


def indexes(store: Store) -> Iterator[Comparison]:
    """A file of a million chunks, in both formats."""
    data = store.many_chunks(100 if store.small else CHUNKS)
    for form in ("json", "parquet"):
        yield Comparison(
            f"index-{form}",
            "index",
            f"references to {data.shape[0]:,} chunks, as {form}",
            alike("indexes:references", WRITERS, {"form": form, **data.arguments}, "writer"),
            # Seconds, whoever else there is.
            (Target(5),) if form == "json" else (),
            repeat=3,
            patience_s=1200,
        )
