"""Which chunks do rules of thumb take, that look at the shape alone?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from chunkwise.model.chunk_shape import default_chunk
from chunkwise.model.references import h5py_guess, netcdf_default, square

Shape = tuple[int, ...]

_NBYTES: Final = 1 << 20


def rules(
    shape: Shape, itemsize: int, maxshape: Sequence[int | None] | None = None
) -> dict[str, Shape]:
    """Name them, and their chunk shapes for a dataset."""
    return {
        "h5py's guess": h5py_guess(shape, itemsize),
        "netCDF-C's default": netcdf_default(shape, itemsize, maxshape),
        "1 MiB, square": square(shape, itemsize),
        "balanced_chunks": balanced(shape, itemsize),
        "chunkwise, no patterns": default_chunk(shape, itemsize, None),
    }


def balanced(shape: Shape, itemsize: int, nbytes: int = _NBYTES) -> Shape:
    """Return chunks of which a line along the slowest dimension and a map need equally many.

    Unidata's advice for three dimensions (Rew, 'Chunking Data: Choosing Shapes', 2013), for any.
    """
    chunks = max(1.0, math.prod(shape) * itemsize / nbytes)
    if len(shape) == 1:
        return (max(1, math.ceil(shape[0] / chunks)),)
    sides = [1.0] * len(shape)
    free = list(range(1, len(shape)))
    left = math.sqrt(chunks)
    # A dimension that is shorter than its share leaves more to the others.
    while free:
        each = left ** (1 / len(free))
        short = [axis for axis in free if shape[axis] < each]
        if not short:
            for axis in free:
                sides[axis] = shape[axis] / each
            break
        for axis in short:
            left /= shape[axis]
            free.remove(axis)
    sides[0] = max(1.0, shape[0] / math.sqrt(chunks))
    return tuple(min(n, max(1, round(side))) for n, side in zip(shape, sides, strict=True))
