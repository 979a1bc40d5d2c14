"""How do libhdf5 and the engine do in compiled loops, with no Python inside?"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, Final

import h5py
import numpy as np

import chunkwise
from chunkwise import _lib, _native
from chunkwise_lab.peers.boxes import random_boxes
from chunkwise_lab.peers.task import EVERYTHING, Sample, Task

Properties = dict[str, Any]
LARGE_CACHE: Final = 256 << 20


def blocks(
    reader: str,
    file: str,
    dataset: str,
    block: Sequence[int],  # 0 stands for all of a dimension
    cache_nbytes: int | None = None,
    operations: int | None = None,
) -> Task:
    """Read block by block in C order; after this many, the rest is extrapolated."""
    shape = _shape(file, dataset)
    walk = _native.Walk(shape, [b or n for b, n in zip(block, shape, strict=True)])
    yield lambda: _walked(reader, file, dataset, walk, cache_nbytes, operations)


def columns(reader: str, file: str, dataset: str, count: int) -> Task:
    """Read this many columns of a matrix, spread over it; seconds for each."""
    rows, width = shape = _shape(file, dataset)
    count = min(count, width)
    step = width // count
    one = ([1, 1], [1, 1], [rows, 1])
    walk = _native.Walk.listed(shape, [([0, n * step], *one) for n in range(count)])

    def measure() -> Sample:
        sample = _walked(reader, file, dataset, walk)
        return Sample(sample.value / count, details=sample.details)

    yield measure


def union(reader: str, file: str, dataset: str) -> Task:
    """Read a union of random boxes, putting the selection together included."""
    shape = _shape(file, dataset)
    boxes = random_boxes(shape)
    ones = [1] * len(shape)
    walk = _native.Walk.listed(shape, [[(start, ones, ones, count) for start, count in boxes]])

    def in_python() -> Sample:
        with chunkwise.open(file) as opened:
            begun = time.perf_counter()
            selection = chunkwise.union(chunkwise.hyperslab(*box) for box in boxes)
            found: Any = opened[dataset]
            data = found.read(selection)
            return Sample(time.perf_counter() - begun, data)

    yield in_python if reader == "python" else lambda: _walked(reader, file, dataset, walk)


def small(reader: str, file: str, dataset: str) -> Task:
    """Read row by row; seconds for each row but the first, which loads what is cached."""
    shape = _shape(file, dataset)
    walk = _native.Walk(shape, (1, *shape[1:]))

    def measure() -> Sample:
        result = _result(reader, file, dataset, walk, LARGE_CACHE, walk.operations)
        return Sample(float(np.mean(result["latencies_s"][1:])), details=_details(result))

    yield measure


def _shape(file: str, dataset: str) -> tuple[int, ...]:
    with h5py.File(file) as opened:
        shape: tuple[int, ...] = opened[dataset].shape
    return shape


def _walked(
    reader: str,
    file: str,
    dataset: str,
    walk: _native.Walk,
    cache_nbytes: int | None = None,
    operations: int | None = None,
) -> Sample:
    wanted = min(operations or walk.operations, walk.operations)
    result = _result(reader, file, dataset, walk, cache_nbytes, wanted)
    elapsed = result["elapsed_s"] * walk.operations / result["operations"]
    return Sample(elapsed, details=_details(result))


def _result(
    reader: str,
    file: str,
    dataset: str,
    walk: _native.Walk,
    cache_nbytes: int | None,
    operations: int,
) -> _native.WalkResult:
    properties: Properties = {} if cache_nbytes is None else {"cache_nbytes": cache_nbytes}
    opened = _native.OpenDataset(_lib.library(), file, dataset, properties)
    if reader == "libhdf5":
        return opened.walk(walk, operations, math.inf)
    result = opened.engine_walk(walk, operations, math.inf)
    if "fallback" in result:
        raise RuntimeError(f"libhdf5 had to read: {result['fallback']}")
    return result


def _details(result: _native.WalkResult) -> dict[str, Any]:
    """Checksums after this many reads, of stored bytes; and whether these were all."""
    total = result["total_operations"]
    details: dict[str, Any] = {
        "checksums": {
            EVERYTHING if n == total else f"{n} reads": crc
            for n, crc in result["checksums"].items()
        }
    }
    if result["operations"] < total:
        details["measured_operations"] = result["operations"]
    return details
