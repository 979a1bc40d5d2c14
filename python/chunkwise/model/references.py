"""Which chunk shapes do others take, so that a search must not lose to them?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

Shape = tuple[int, ...]

RULE_OF_THUMB_NBYTES: Final = 1 << 20
# h5py's: a chunk of 16 KiB for a dataset of 1 MiB, doubled for ten times as many bytes.
_H5PY_BASE: Final = 16 << 10
_H5PY_LEAST: Final = 8 << 10
_H5PY_MOST: Final = 1 << 20
# netCDF-C's (NC_DEFAULT_CHUNK_SIZE, since 4.7); an unlimited dimension gets 1.
_NETCDF_NBYTES: Final = 4 << 20
# Rounds of the search for sides that stay within their array.
_ROUNDS: Final = 16


def references(
    shape: Shape,  # The dataset's extents in elements, at least 1 each, and bytes of an element
    itemsize: int,
    blocks: Sequence[Shape],
    weights: Sequence[float],
    maxshape: Sequence[int | None] | None = None,
) -> Iterator[tuple[str, Shape]]:
    """Name the shapes that are always candidates."""
    yield "h5py's guess", h5py_guess(shape, itemsize)
    yield "netCDF-C's default", netcdf_default(shape, itemsize, maxshape)
    yield "1 MiB, square", square(shape, itemsize)
    for name, touched in (
        ("Sarawagi and Stonebraker (1994)", aligned),
        ("Otoo, Rotem and Seshadri (2007)", anywhere),
    ):
        yield name, fewest_touched(shape, itemsize, blocks, weights, touched)
    for block in dict.fromkeys(blocks):
        yield "the block that is read", within(shape, itemsize, block)


def h5py_guess(shape: Shape, itemsize: int) -> Shape:
    """Return what h5py chooses for ``chunks=True`` (``h5py._hl.filters.guess_chunk``)."""
    sides = [float(n) for n in shape]
    mebibytes = math.prod(sides) * itemsize / (1 << 20)
    target = _H5PY_BASE * 2 ** math.log10(mebibytes)
    target = min(max(target, _H5PY_LEAST), _H5PY_MOST)
    axis = 0
    while True:
        nbytes = math.prod(sides) * itemsize
        near = nbytes < target or abs(nbytes - target) / target < 0.5
        if (near and nbytes < _H5PY_MOST) or math.prod(sides) == 1:
            return tuple(int(side) for side in sides)
        sides[axis % len(sides)] = math.ceil(sides[axis % len(sides)] / 2)
        axis += 1


def netcdf_default(
    shape: Shape, itemsize: int, maxshape: Sequence[int | None] | None = None
) -> Shape:
    """Return netCDF-C's default for a variable (``nc4_find_default_chunksizes2``)."""
    # An unlimited dimension gets 1, the others equal shares, about 4 MiB, evenly filled.
    growing = [most is None for most in maxshape] if maxshape else [False] * len(shape)
    if len(shape) == 1 and growing[0]:
        return (max(1, min(shape[0], _NETCDF_NBYTES // itemsize)),)
    fixed = math.prod(n for n, grows in zip(shape, growing, strict=True) if not grows)
    number = max(1, len(shape) - sum(growing))
    share = min(1.0, (_NETCDF_NBYTES / (max(1, fixed) * itemsize)) ** (1 / number))
    sides = [1 if grows else max(1, int(n * share - 0.5)) if share < 1 else n
             for n, grows in zip(shape, growing, strict=True)]  # fmt: skip
    # Overhanging parts are avoided.
    return tuple(-(-n // -(-n // side)) for n, side in zip(shape, sides, strict=True))


def square(shape: Shape, itemsize: int) -> Shape:
    """Return a chunk with sides of one length, of about 1 MiB, within the array."""
    # What an array cannot hold goes to its other dimensions.
    wanted = [1.0] * len(shape)
    for _ in range(_ROUNDS):
        free = [axis for axis, side in enumerate(wanted) if side < shape[axis]]
        factor = RULE_OF_THUMB_NBYTES / (math.prod(wanted) * itemsize)
        if not free or abs(factor - 1) < 0.01:
            break
        each = factor ** (1 / len(free))
        for axis in free:
            wanted[axis] = min(float(shape[axis]), wanted[axis] * each)
    return tuple(max(1, min(n, round(side))) for n, side in zip(shape, wanted, strict=True))


def aligned(block: int, side: int) -> float:
    """Count the chunks that a read touches along a dimension where it is aligned to chunks."""
    # Sarawagi and Stonebraker, 'Efficient organization of large multidimensional arrays' (ICDE
    # 1994): the mean number of chunks fetched is minimised.
    return -(-block // side)


def anywhere(block: int, side: int) -> float:
    """Count the chunks that a read touches along a dimension on average, if it begins anywhere."""
    # Otoo, Rotem and Seshadri, 'Optimal chunking of large multidimensional arrays for data
    # warehousing' (DOLAP 2007).
    return 1 + (block - 1) / side


def fewest_touched(
    shape: Shape,
    itemsize: int,
    blocks: Sequence[Shape],
    weights: Sequence[float],
    touched: Callable[[int, int], float],  # `aligned` or `anywhere`
) -> Shape:
    """Return the shape with which reads touch the fewest chunks, of the same size."""
    # Sides are halved, the cheapest first, until a chunk is small enough.

    def cost(sides: Sequence[int]) -> float:
        return sum(
            weight * math.prod(touched(b, s) for b, s in zip(block, sides, strict=True))
            for block, weight in zip(blocks, weights, strict=True)
        )

    sides = list(shape)
    while math.prod(sides) * itemsize > RULE_OF_THUMB_NBYTES and max(sides) > 1:
        halves = []
        for axis, side in enumerate(sides):
            if side > 1:
                cut = [*sides]
                cut[axis] = -(-side // 2)
                halves.append(cut)
        # If several ways cost the same, the longest side is cut.
        costs = np.array([cost(cut) for cut in halves])
        close = [
            cut for cut, one in zip(halves, costs, strict=True) if one <= costs.min() * 1.0001
        ]
        sides = min(close, key=max)
    return tuple(sides)


def within(shape: Shape, itemsize: int, block: Shape) -> Shape:
    """Return a pattern's own block, cut if it is larger than a chunk should be."""
    sides = [min(b, n) for b, n in zip(block, shape, strict=True)]
    while math.prod(sides) * itemsize > 4 * RULE_OF_THUMB_NBYTES and max(sides) > 1:
        longest = max(range(len(sides)), key=lambda axis: sides[axis])
        parts = -(-shape[longest] // sides[longest]) + 1
        sides[longest] = min(sides[longest] - 1, -(-shape[longest] // parts))
    return tuple(sides)
