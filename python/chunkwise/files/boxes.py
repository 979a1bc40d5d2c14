"""How does libhdf5 read a part of a dataset without converting a byte?

The type in memory is the file's own, so types that h5py or NumPy cannot name are read as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from h5py import h5s

Bytes: TypeAlias = npt.NDArray[np.uint8]
Box: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


def boxes(shape: tuple[int, ...], chunk: tuple[int, ...], most: int) -> Iterator[Box]:
    """Cut an array into boxes of whole chunks, in row-major order."""
    if 0 in shape:
        return
    lengths = [min(c, n) for c, n in zip(chunk, shape, strict=True)]
    for axis in reversed(range(len(shape))):
        others = math.prod(lengths[:axis] + lengths[axis + 1 :])
        steps = max(1, most // (others * lengths[axis]))
        # As many boxes as that takes, but of about one size.
        chunks = -(-shape[axis] // lengths[axis])
        steps = -(-chunks // -(-chunks // steps))
        lengths[axis] = min(shape[axis], lengths[axis] * steps)
    ranges = (range(0, n, step) for n, step in zip(shape, lengths, strict=True))
    for start in product(*ranges):
        yield (
            start,
            tuple(min(step, n - at) for step, n, at in zip(lengths, shape, start, strict=True)),
        )


def read_box(dataset: Any, datatype: Any, start: tuple[int, ...], count: tuple[int, ...]) -> Bytes:
    """Read a box as bytes of `datatype`, the dataset's own."""
    values = np.zeros(math.prod(count) * datatype.get_size(), np.uint8)
    memory, stored = _spaces(dataset, start, count)
    dataset.read(memory, stored, values, datatype)
    return values


def _spaces(dataset: Any, start: tuple[int, ...], count: tuple[int, ...]) -> tuple[Any, Any]:
    stored = dataset.get_space()
    if not count:
        return h5s.create(h5s.SCALAR), stored
    stored.select_hyperslab(start, count)
    return h5s.create_simple(count), stored
