"""Which chunks of a dataset did the reads of a trace touch, and when?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chunkwise.running.places import Integers, number, span, starts
from chunkwise.running.trace import Run, TracedDataset

__all__ = ["Cells", "cells", "moments", "number", "times_read", "touched"]

# Of a dataset with more chunks, neighbours are counted together.
_MOST_CELLS: Final = 1 << 18
# Of more reads, this many are looked at, evenly spread, and stand for all.
_MOST_BOXES: Final = 20_000


@dataclass(frozen=True)
class Cells:
    """A dataset, cut into chunks or groups of chunks that follow each other."""

    extent: tuple[int, ...]  # Elements of the dataset in each dimension
    shape: tuple[int, ...]  # Elements in each dimension of one cell
    count: tuple[int, ...]  # Cells in each dimension
    chunks: int  # How many chunks one cell has; 0 where the dataset has none, and a cell is a row


def cells(one: TracedDataset) -> Cells:
    """Cut a dataset into chunks; without chunks, along its first dimension."""
    # More than 262,144 are joined along the last dimensions first, so that cells are still
    # numbered as the chunks are, in row-major order.
    shape = list(one.chunk or (1, *one.shape[1:])[: len(one.shape)])
    shape = [max(1, min(side, extent)) for side, extent in zip(shape, one.shape, strict=True)]
    joined = 1
    for axis in reversed(range(len(shape))):
        along = [-(-max(n, 1) // side) for n, side in zip(one.shape, shape, strict=True)]
        excess = -(-math.prod(along) // _MOST_CELLS)
        factor = min(excess, along[axis])
        shape[axis] *= factor
        joined *= factor
    count = tuple(-(-max(n, 1) // side) for n, side in zip(one.shape, shape, strict=True))
    return Cells(one.shape, tuple(shape), count, joined if one.chunk else 0)


def times_read(one: TracedDataset, into: Cells) -> npt.NDArray[np.float64]:
    """Count, for each cell, the reads that touched it."""
    counts = np.zeros(into.count)
    each = max(1, _MOST_BOXES // max(len(one.runs), 1))
    for run in one.runs:
        if not span(run).all():
            continue
        first, last = touched(run, _steps(run, each), into)
        bounds = np.concatenate([first, last], axis=1)
        rank = len(into.count)
        for box, often in zip(*np.unique(bounds, axis=0, return_counts=True), strict=True):
            where = tuple(slice(a, b + 1) for a, b in zip(box[:rank], box[rank:], strict=True))
            counts[where] += often * (run.times / len(bounds))
    return counts


def moments(run: Run, most: int) -> Iterator[tuple[float, int]]:
    """Give the seconds and the number of some reads of a run, its first and last among them."""
    # What lies between is interpolated: a run has no other times.
    steps = _steps(run, most)
    length = run.ended - run.began
    for step in steps.tolist():
        share = step / (run.times - 1) if run.times > 1 else 0.0
        yield run.began + share * length, step


def touched(run: Run, steps: Integers, into: Cells) -> tuple[Integers, Integers]:
    """Find the cells that reads of a run touch."""
    begins = starts(run, steps, into.extent)
    side = np.array(into.shape, dtype=np.int64)
    most = np.array(into.count, dtype=np.int64) - 1
    first = np.clip(begins // side, 0, most)
    last = np.clip((begins + np.maximum(span(run), 1) - 1) // side, 0, most)
    return first, last


def _steps(run: Run, most: int) -> Integers:
    return np.unique(np.linspace(0, run.times - 1, min(run.times, max(most, 1))).astype(np.int64))
