"""Unions of hyperslabs, as in paper 003: the selection is put together within the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import h5py

from chunkwise._native import thread_count
from chunkwise_lab.peers.boxes import random_boxes, runs
from chunkwise_lab.peers.comparisons.whole import bare
from chunkwise_lab.peers.files import Data, Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target, alike, limit

CUTS, SEED = 20, 3
COPY: Final = "plain copy"


def unions(store: Store) -> Iterator[Comparison]:
    """Read one union of random boxes, however the matrix is stored."""
    shape = (10000, 3000)
    contiguous = store.sampled("counting", shape, None, "none")
    copied = _copy(store, contiguous)
    target = Target(1.5, "libhdf5"), Target(0.8, COPY)
    yield _comparison("contiguous", contiguous, copied, target)
    for side, factor in ((50, 25), (500, None)):
        plain = store.sampled("counting", shape, (side, side), "none")
        wanted = () if factor is None else (Target(factor, "libhdf5"),)
        yield _comparison(f"{side}x{side}", plain, copied, wanted)
    for side in (50, 500):
        deflated = store.sampled("counting", shape, (side, side), "deflate:5")
        decoded = bare(store.chunks(deflated, _touched(deflated, side)))
        wanted = (Target(5, "libhdf5"),)
        yield _comparison(f"{side}x{side}-deflate", deflated, decoded, wanted)


def _comparison(name: str, data: Data, best: Reader, targets: tuple[Target, ...]) -> Comparison:
    cuts = min(CUTS, data.shape[0] // 4)
    arguments = {**data.arguments, "shape": data.shape, "cuts": cuts, "seed": SEED}
    readers = (
        *alike("loops:union", ("libhdf5", "chunkwise"), arguments),
        Reader("chunkwise, Python", "loops:union_in_python", arguments),
        best,
    )
    title = f"union of random boxes (k = {cuts}), {name.replace('-', ', ')}"
    note = "the plain copy is that of the same boxes from contiguous data"
    return Comparison(
        f"union-{name}",
        "unions",
        title,
        readers,
        targets,
        note=note if best.name == COPY and "x" in name else "",
    )


def _copy(store: Store, data: Data) -> Reader:
    with h5py.File(data.path) as file:
        offset = file[data.name].id.get_offset()
    rows, columns = data.shape
    boxes = random_boxes(data.shape, min(CUTS, rows // 4), SEED)
    found = runs((rows, columns), 4, boxes, offset)
    path = store.numbers(f"{data.path.stem}-runs", found)
    return limit(COPY, ["copy", str(data.path), path, thread_count()])


def _touched(data: Data, side: int) -> Callable[[tuple[int, ...]], bool]:
    """Return what tells whether the chunk that begins at an element holds some of the boxes'."""
    boxes = random_boxes(data.shape, min(CUTS, data.shape[0] // 4), SEED)

    def touched(origin: tuple[int, ...]) -> bool:
        return any(
            all(
                at < first + side and first < at + count
                for first, at, count in zip(origin, start, counts, strict=True)
            )
            for start, counts in boxes
        )

    return touched
