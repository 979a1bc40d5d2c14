"""Which parts of a chunked dataset hold values that were written?"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from chunkwise._lib import library
from chunkwise.grammar import Shape
from chunkwise.grammar.boxes import chunk_counts


def written_boxes(
    dataset: Any, chunk: Shape, box: Shape, *, share: int = 1, most: int | None = None
) -> npt.NDArray[np.int64] | None:
    """Give the places of the boxes that hold a written chunk, in a grid of them; None for all."""
    # All, too, if one of `share` chunks was written, or if more than `most` were to be looked at.
    shape = tuple(dataset.shape)
    listing = library().chunk_listing(dataset.id)
    if share * listing.written >= listing.grid_len:
        return None
    numbers: npt.NDArray[Any] = listing.columns()[0]
    begins = np.empty((len(numbers), len(shape)), np.int64)
    for axis, count in reversed([*enumerate(chunk_counts(shape, chunk))]):
        numbers, at = np.divmod(numbers, np.uint64(count))
        begins[:, axis] = at.astype(np.int64) * chunk[axis]
    sides = np.asarray(box, np.int64)
    first = begins // sides
    last = (np.minimum(begins + np.asarray(chunk, np.int64), np.asarray(shape)) - 1) // sides
    spans = (last - first + 1).max(axis=0, initial=0).tolist()
    if most is not None and math.prod(spans) * len(first) > most:
        return None
    places = [np.empty((0, len(shape)), np.int64)]
    for offset in product(*map(range, spans)):
        one = first + np.asarray(offset, np.int64)
        places.append(one[(one <= last).all(axis=1)])
    return np.unique(np.concatenate(places), axis=0)
