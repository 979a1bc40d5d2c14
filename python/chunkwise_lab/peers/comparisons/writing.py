"""Writing: paper 000's standard run, as libhdf5 does it and as chunkwise does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chunkwise_lab.peers.files import Data, Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target

FAST: Final = "chunkwise, deflate:fast"
OTHER: Final = "libhdf5"
# The most that a file may have over libhdf5's.
LARGER: Final = 1.02
# Paper 000, section 4.
SHAPE, CHUNK, LINES, CACHE_NBYTES = (66, 576, 1440), (11, 8, 360), 8, 8_700_000
# How many times as fast as libhdf5: as stated, and :fast.
WANTED: Final = {"occam": (5.0, 12.0), "occam-smooth": (8.0, 15.0)}


def writing(store: Store) -> Iterator[Comparison]:
    """72 hyperslabs of 8 lines, deflated and not."""
    for name, (stated, fast) in WANTED.items():
        data = store.sampled(name, SHAPE, CHUNK, "deflate:1")
        work = f"{name}, 72 hyperslabs of 8 lines"
        readers = (
            _writer(store, data, OTHER, "libhdf5", "deflate:1"),
            _writer(store, data, "chunkwise", "chunkwise", "deflate:1"),
            _writer(store, data, FAST, "chunkwise", "deflate:fast"),
        )
        yield Comparison(
            f"write-{name}",
            "write",
            f"{work}, deflate 1",
            readers,
            (Target(stated, OTHER), Target(fast, OTHER, by=FAST)),
            repeat=5,
            note=":fast has its target with ISA-L" if name == "occam-smooth" else "",
        )
        yield sizes(f"write-{name}-size", "write", f"{work}, deflate 1 (bytes of file)", readers)
        yield Comparison(
            f"write-{name}-plain",
            "write",
            f"{work}, no filter",
            (
                _writer(store, data, OTHER, "libhdf5", "none"),
                _writer(store, data, "chunkwise", "chunkwise", "none"),
            ),
            (Target(1, OTHER),),
            repeat=7,
        )


def sizes(
    name: str, group: str, title: str, readers: tuple[Reader, ...], larger: float = LARGER
) -> Comparison:
    """Compare the files that the readers of the comparison before have left."""
    other = readers[0].name
    return Comparison(
        name,
        group,
        title,
        tuple(
            Reader(one.name, "repacks:size", {"target": one.arguments["target"]})
            for one in readers
        ),
        (Target(1 / larger, other),),
        unit="bytes",
        repeat=1,
    )


def _writer(store: Store, data: Data, label: str, writer: str, filters: str) -> Reader:
    written = f"written-{data.path.stem}-{label.replace(' ', '-')}-{filters.replace(':', '-')}.h5"
    return Reader(
        label,
        "writes:lines",
        {
            "writer": writer,
            **data.arguments,
            "target": str(store.folder / written),
            "chunk": tuple(min(pair) for pair in zip(CHUNK, data.shape, strict=True)),
            "filters": filters,
            "count": LINES,
            "cache_nbytes": CACHE_NBYTES,
            "keep": filters != "none",
        },
    )
