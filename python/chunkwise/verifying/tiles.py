"""What is the checksum of a dataset's values, however they are stored?

Values are cut into tiles.  Only the dataset's shape and the size of an element determine the
tiles' shape.  Each tile has a SHA-256 of its bytes in row-major order, and the dataset the SHA-256
of all these, also in row-major order.  So any number of threads can sum tiles at the same time,
and a dataset is read in boxes that suit its chunks: if a tile is read in several rows, the sum
continues from one to the next.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any, Final, TypeAlias

import numpy.typing as npt

Box: TypeAlias = tuple[slice, ...]
Shape: TypeAlias = tuple[int, ...]

TILE_NBYTES: Final = 4 << 20
ALGORITHM: Final = "sha256-of-tiles-4MiB"


def tile_shape(shape: Shape, nbytes: int) -> Shape:
    """Give the shape of a tile: the longest side is halved until a tile has at most 4 MiB.

    Parameters
    ----------
    shape
        Of the dataset; () for a scalar.
    nbytes
        Of an element.
    """
    tile = [max(1, n) for n in shape]
    while tile and math.prod(tile) * nbytes > TILE_NBYTES and max(tile) > 1:
        longest = tile.index(max(tile))
        tile[longest] = -(-tile[longest] // 2)
    return tuple(tile)


def boxes(shape: Shape, tile: Shape, chunk: Shape, nbytes: int, most_nbytes: int) -> Iterator[Box]:
    """Cut a dataset into boxes to be read one after the other.

    A box has whole tiles in all dimensions but the first, in which it has whole chunks where there
    is room: a chunk is then decoded once, whatever its shape.

    Parameters
    ----------
    shape, tile, chunk
        Of the dataset, its tiles and its chunks.
    nbytes
        Of an element.
    most_nbytes
        Bytes of a box; more only where less cannot be summed.

    Yields
    ------
    tuple of slice
        Along the first dimension, boxes of the same columns follow each other.
    """
    if 0 in shape:
        return
    if not shape:
        yield ()
        return
    side = list(shape)
    rows = min(chunk[0], shape[0])
    while rows * math.prod(side[1:]) * nbytes > most_nbytes:
        # As many tiles as there are, and half of them at least one less.
        longest = [-(-side[d] // tile[d]) if d else 0 for d in range(len(side))]
        axis = longest.index(max(longest))
        if longest[axis] < 2:
            break
        side[axis] = -(-longest[axis] // 2) * tile[axis]
    column_nbytes = math.prod(side[1:]) * nbytes
    fitting = max(1, most_nbytes // max(1, column_nbytes))
    rows = min(shape[0], fitting // rows * rows if fitting >= rows else fitting)
    others = (range(0, n, step) for n, step in zip(shape[1:], side[1:], strict=True))
    for starts in product(*others):
        columns = tuple(
            slice(at, min(at + step, n))
            for at, step, n in zip(starts, side[1:], shape[1:], strict=True)
        )
        for row in range(0, shape[0], rows):
            yield (slice(row, min(row + rows, shape[0])), *columns)


class Tiles:
    """Sums the tiles of one dataset, as boxes of it come.

    Parameters
    ----------
    shape
        Of the dataset.
    nbytes
        Of an element, as `tile_shape` takes it.
    encode
        Gives the bytes of an array of elements.
    pool
        Threads that sum.
    """

    def __init__(
        self,
        shape: Shape,
        nbytes: int,
        encode: Callable[[npt.NDArray[Any]], bytes | memoryview],
        pool: ThreadPoolExecutor,
    ) -> None:
        self.tile = tile_shape(shape, nbytes)
        self._shape = shape
        self._encode = encode
        self._pool = pool
        self._counts = tuple(-(-n // t) for n, t in zip(shape, self.tile, strict=True))
        self._sums: dict[Shape, Any] = {}
        self._done: dict[Shape, bytes] = {}

    def add(self, box: Box, values: npt.NDArray[Any]) -> None:
        """Add the values of a box; see `boxes` for their order."""
        if not self._shape:
            self._done[()] = hashlib.sha256(self._encode(values)).digest()
            return
        ranges = (
            range(part.start // t, -(-part.stop // t))
            for part, t in zip(box, self.tile, strict=True)
        )
        for _ in self._pool.map(lambda at: self._add_to(at, box, values), list(product(*ranges))):
            pass

    def _add_to(self, at: Shape, box: Box, values: npt.NDArray[Any]) -> None:
        """Add the rows of one tile."""
        found = self._sums.get(at)
        if found is None:
            found = self._sums[at] = hashlib.sha256()
        within = tuple(
            slice(
                max(number * t, part.start) - part.start,
                min((number + 1) * t, part.stop) - part.start,
            )
            for number, t, part in zip(at, self.tile, box, strict=True)
        )
        found.update(self._encode(values[within]))
        if box[0].stop >= min((at[0] + 1) * self.tile[0], self._shape[0]):
            self._done[at] = self._sums.pop(at).digest()

    def hexdigest(self) -> str:
        """Give the checksum, once all boxes were added."""
        whole = hashlib.sha256()
        for at in product(*map(range, self._counts)):
            whole.update(self._done[at])
        return whole.hexdigest()
