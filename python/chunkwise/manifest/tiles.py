"""What is the checksum of a dataset's values, however they are stored?

The dataset's shape and the size of an element determine tiles.  Each has a SHA-256 of its bytes in
row-major order, and the dataset the SHA-256 of all these.  So threads can sum tiles side by side.
Tiles in which nothing was written are alike: one of each shape is summed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from operator import mul
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chunkwise.grammar import Shape
from chunkwise.grammar.boxes import Box, chunk_at, chunk_counts

TILE_NBYTES: Final = 4 << 20
ALGORITHM: Final = "sha256-of-tiles-4MiB"
# Tiles without data whose checksums are made at a time.
_RUN: Final = 1 << 16


def tile_shape(shape: Shape, nbytes: int) -> Shape:
    """Give the shape of a tile: the longest side is halved until a tile has at most 4 MiB."""
    tile = [max(1, n) for n in shape]
    while tile and math.prod(tile) * nbytes > TILE_NBYTES and max(tile) > 1:
        longest = tile.index(max(tile))
        tile[longest] = -(-tile[longest] // 2)
    return tuple(tile)


def boxes(shape: Shape, tile: Shape, chunk: Shape, nbytes: int, most_nbytes: int) -> Iterator[Box]:
    """Cut a dataset into boxes to be read one after the other."""
    # Whole tiles in all dimensions but the first, there whole chunks: each is decoded once.
    if 0 in shape:
        return
    if not shape:
        yield Box((), ())
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
    side[0] = rows = min(shape[0], fitting // rows * rows if fitting >= rows else fitting)
    for columns in product(
        *(range(0, n, step) for n, step in zip(shape[1:], side[1:], strict=True))
    ):
        for row in range(0, shape[0], rows):
            yield chunk_at(shape, side, (row, *columns))


class Tiles:
    """Sums the tiles of one dataset, as boxes of it come."""

    def __init__(
        self,
        shape: Shape,
        nbytes: int,
        encode: Callable[[npt.NDArray[Any]], bytes | memoryview],
        pool: ThreadPoolExecutor,
    ) -> None:
        self.tile = tile_shape(shape, nbytes)
        self.element_nbytes = nbytes
        self._shape = shape
        self._encode = encode
        self._pool = pool
        self._counts = chunk_counts(shape, self.tile)
        self._sums: dict[Shape, Any] = {}
        self._done: dict[Shape, bytes] = {}

    def add(self, box: Box, values: npt.NDArray[Any]) -> None:
        """Add the values of a box; see `boxes` for their order."""
        if not self._shape:
            self._done[()] = hashlib.sha256(self._encode(values)).digest()
            return
        sides = zip(box.start, box.end, self.tile, strict=True)
        touched = product(*(range(start // t, -(-end // t)) for start, end, t in sides))
        for _ in self._pool.map(lambda at: self._add_to(at, box, values), list(touched)):
            pass

    def _add_to(self, at: Shape, box: Box, values: npt.NDArray[Any]) -> None:
        """Add the rows of one tile."""
        found = self._sums.get(at)
        if found is None:
            found = self._sums[at] = hashlib.sha256()
        tile = self._tile_at(at)
        found.update(self._encode(values[tile.common(box).within(box).slices]))
        if box.end[0] >= tile.end[0]:
            self._done[at] = self._sums.pop(at).digest()

    @property
    def count(self) -> int:
        """How many tiles there are."""
        return math.prod(self._counts)

    def box(self, number: int) -> Box:
        """Give the box of a tile, by its number in row-major order."""
        return self._tile_at(tuple(map(int, np.unravel_index(number, self._counts))))

    def _tile_at(self, at: Shape) -> Box:
        return chunk_at(self._shape, self.tile, tuple(map(mul, at, self.tile)))

    def numbers(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Number tiles, given their places."""
        steps = [math.prod(self._counts[d + 1 :]) for d in range(len(self._counts))]
        return np.sort(places @ np.array(steps, np.int64))

    def hexdigest(self, blank: Callable[[Box], npt.NDArray[Any]] | None = None) -> str:
        """Give the checksum, once all boxes were added."""
        whole = hashlib.sha256()
        if blank is None:
            for at in product(*map(range, self._counts)):
                whole.update(self._done[at])
            return whole.hexdigest()
        known = sorted((self._number(at), digest) for at, digest in self._done.items())
        numbers = np.array([number for number, _ in known], np.int64)
        digests = np.frombuffer(b"".join(digest for _, digest in known), np.uint8).reshape(-1, 32)
        # Of a tile without data, by the sides at which it is cut.
        alike: dict[int, npt.NDArray[np.uint8]] = {}
        for begin in range(0, self.count, _RUN):
            these = np.arange(begin, min(begin + _RUN, self.count), dtype=np.int64)
            mine = slice(*np.searchsorted(numbers, [begin, begin + _RUN]).tolist())
            left = np.ones(len(these), bool)
            left[numbers[mine] - begin] = False
            out = np.empty((len(these), 32), np.uint8)
            out[numbers[mine] - begin] = digests[mine]
            cut = self._cut(these)
            for kind in np.unique(cut[left]).tolist():
                same = left & (cut == kind)
                if kind not in alike:
                    values = blank(self.box(int(these[same.argmax()])))
                    digest = hashlib.sha256(self._encode(values)).digest()
                    alike[kind] = np.frombuffer(digest, np.uint8)
                out[same] = alike[kind]
            whole.update(out.tobytes())
        return whole.hexdigest()

    def _cut(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Distinguish tiles by shape: one bit for each side at which they are cut."""
        found, step = np.zeros(len(numbers), np.int64), 1
        for d in reversed(range(len(self._counts))):
            count = self._counts[d]
            if self._shape[d] % self.tile[d]:
                found |= (numbers // step % count == count - 1).astype(np.int64) << d
            step *= count
        return found

    def _number(self, at: Shape) -> int:
        number = 0
        for one, count in zip(at, self._counts, strict=True):
            number = number * count + one
        return number
