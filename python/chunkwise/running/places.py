"""Where do the boxes of a traced walk lie?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from chunkwise.running.trace import Run

Integers = npt.NDArray[np.int64]


def number(cell: Integers, count: tuple[int, ...]) -> Integers:
    """Return numbers of cells in row-major order, from 0; `cell` has shape (n, rank)."""
    if not count:
        return np.zeros(len(cell), dtype=np.int64)
    found: Any = np.ravel_multi_index(tuple(cell.T), count)
    return np.asarray(found, dtype=np.int64)


def span(run: Run) -> Integers:
    """Return how many elements a box spans in each dimension, gaps included."""
    spans = [
        0 if count * block == 0 else (count - 1) * stride + block
        for _, stride, count, block in run.first
    ]
    return np.array(spans, dtype=np.int64)


def starts(run: Run, steps: Integers, extent: tuple[int, ...]) -> Integers:
    """Return where the boxes of these numbers start, in a dataset of this shape."""
    first = np.array([start for start, *_ in run.first], dtype=np.int64)
    if run.by is not None:
        return first + steps[:, None] * np.array(run.by, dtype=np.int64)
    if not run.in_order:
        return np.broadcast_to(first, (len(steps), len(first)))
    # The next box in row-major order, of boxes that lie beside each other in the dataset.
    length = np.maximum(span(run), 1)
    along = np.maximum(np.array(extent, dtype=np.int64) // length, 1)
    place = number(np.minimum(first // length, along - 1)[None], tuple(along.tolist()))
    moved = np.minimum(place + steps, math.prod(along.tolist()) - 1)
    found = np.stack(np.unravel_index(moved, tuple(along)), axis=1).astype(np.int64)
    # The slowest dimension never begins again; in the others the walk goes on from 0.
    off = first % length
    slowest = int(np.argmax(along > 1)) if (along > 1).any() else 0
    off[slowest + 1 :] = 0
    moved_to = found * length + off
    moved_to[steps == 0] = first
    return np.asarray(moved_to, dtype=np.int64)
