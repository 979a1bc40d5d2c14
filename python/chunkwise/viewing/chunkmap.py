"""Where do the chunks of a dataset lie, as far as a part of a drawing shows it?

A cell of a tile is a chunk, or, from far away, the average of many.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise.grammar.boxes import chunk_counts
from chunkwise.viewing.source import listing

# Cells along each side of a tile.
SIDE: Final = 256
# Chunks that are averaged at a time.
_AT_A_TIME: Final = 1 << 17
VALUES: Final = ("stored", "place", "mask")
Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Plane:
    """The written chunks of two dimensions of the grid, sorted by their rows."""

    vertical: int | None
    horizontal: int
    at: tuple[int, ...]  # The chunk's index along each of the others
    places: npt.NDArray[np.uint64]  # Their positions in the grid
    chosen: Integers | None  # Their numbers in the list of all chunks; None for all of them
    rows: Integers | None  # None where `places` ascend, from `first` on
    first: int


@dataclass
class ChunkMap:
    """The written chunks of a dataset, by their positions in the grid."""

    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    positions: npt.NDArray[np.uint64]  # Ascending, in row-major order
    addresses: npt.NDArray[np.uint64]
    nbytes: npt.NDArray[np.uint64]
    masks: npt.NDArray[np.uint32]  # Filters that were skipped, as bits; empty where none was

    @classmethod
    def of(cls, dataset: h5py.Dataset) -> ChunkMap:
        """List the chunks of an open dataset."""
        found = listing(dataset)
        columns = (*found.columns(), found.masks())
        return cls(tuple(dataset.shape), tuple(dataset.chunks), *columns)

    def __post_init__(self) -> None:
        self._planes: dict[Any, Plane] = {}

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """Chunks along each dimension."""
        return chunk_counts(self.shape, self.chunk)

    @cached_property
    def ranges(self) -> dict[str, tuple[int, int] | None]:
        """The least and the largest of each kind of value; None if no chunk is written."""
        if not self.positions.size:
            return dict.fromkeys(VALUES)
        last = int(self.addresses.argmax())
        end = int(self.addresses[last]) + int(self.nbytes[last])
        return {
            "stored": (int(self.nbytes.min()), int(self.nbytes.max())),
            "place": (int(self.addresses.min()), end),
            "mask": (0, 1) if self.masks.size else None,
        }

    def _strides(self) -> list[int]:
        return [math.prod(self.grid[axis + 1 :]) for axis in range(len(self.grid))]

    def _along(self, chosen: npt.NDArray[np.uint64], axis: int) -> Integers:
        """Return the indices of some positions along a dimension."""
        # Positions are below 2**64, and so are strides of more than one chunk.
        stride, length = np.uint64(self._strides()[axis]), np.uint64(self.grid[axis])
        found = chosen if stride == 1 else chosen // stride
        if axis:
            # NumPy divides several numbers at a time, and takes remainders of one.
            found = found - found // length * length
        return found.astype(np.int64)

    @property
    def _is_whole(self) -> bool:
        """Whether each chunk was written: then none need be searched for."""
        return self.positions.size == math.prod(self.grid)

    def plane(self, vertical: int | None, horizontal: int, at: Sequence[int]) -> Plane:
        """Choose the chunks of two dimensions, or one row; `at` is the index along the others."""
        if self._is_whole:
            return Plane(vertical, horizontal, tuple(at), self.positions, None, None, 0)
        shown = {vertical, horizontal}
        key = (vertical, horizontal, *(0 if axis in shown else i for axis, i in enumerate(at)))
        found = self._planes.get(key)
        if found is None:
            chosen: Integers | None = None
            for axis, index in enumerate(at):
                if axis not in shown and self.grid[axis] > 1:
                    inside = self._along(self._places(chosen), axis) == index
                    chosen = np.flatnonzero(inside) if chosen is None else chosen[inside]
            rows = None
            if vertical is not None and vertical > horizontal:
                rows = self._along(self._places(chosen), vertical)
                order = np.argsort(rows, kind="stable")
                rows, chosen = rows[order], order if chosen is None else chosen[order]
            slower = range(vertical or 0)
            first = sum(at[axis] * self._strides()[axis] for axis in slower if axis not in shown)
            found = Plane(
                vertical, horizontal, tuple(at), self._places(chosen), chosen, rows, first
            )
            # One is looked at at a time.
            self._planes = {key: found}
        return found

    def _places(self, chosen: Integers | None) -> npt.NDArray[np.uint64]:
        return self.positions if chosen is None else self.positions[chosen]

    def _between(self, plane: Plane, rows: tuple[int, int]) -> tuple[int, int]:
        """Find the chunks of some rows of a plane, by their numbers in it."""
        if plane.vertical is None:
            return (0, plane.places.size) if rows[0] == 0 else (0, 0)
        if plane.rows is not None:
            first, last = np.searchsorted(plane.rows, rows)
        else:
            stride, most = self._strides()[plane.vertical], self.grid[plane.vertical]
            bounds = [plane.first + min(row, most) * stride for row in rows]
            # No chunk has the last number of 64 bits.
            limited = np.array([min(bound, 2**64 - 1) for bound in bounds], np.uint64)
            first, last = np.searchsorted(plane.places, limited)
        return int(first), int(last)

    def tile(self, plane: Plane, what: str, level: tuple[int, int], at: tuple[int, int]) -> Floats:
        """Average the values of a tile's cells, of 2**level chunks along each side."""
        # NaN where no chunk of a cell was written.
        if self._is_whole:
            return self._tile_of_all(plane, what, level, at)
        (down, right), (row, column) = level, at
        high, wide = SIDE << down, SIDE << right
        counts, sums = np.zeros(SIDE * SIDE, np.int64), np.zeros(SIDE * SIDE)
        first, last = self._between(plane, (row * high, (row + 1) * high))
        # Of ten million chunks, lists of all take longer to allocate than to fill.
        for begin in range(first, last, _AT_A_TIME):
            part = slice(begin, min(begin + _AT_A_TIME, last))
            places = plane.places[part]
            columns = (self._along(places, plane.horizontal) - column * wide) >> right
            cells = columns
            if plane.vertical is not None:
                rows = (
                    self._along(places, plane.vertical) if plane.rows is None else plane.rows[part]
                )
                cells = ((rows - row * high) >> down) * SIDE + columns
            chosen = part if plane.chosen is None else plane.chosen[part]
            values = self._values(what)[chosen]
            inside = (columns >= 0) & (columns < SIDE)
            if not inside.all():
                cells, values = cells[inside], values[inside]
            counts += np.bincount(cells, minlength=SIDE * SIDE)
            sums += np.bincount(cells, values, minlength=SIDE * SIDE)
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = (sums / counts).astype(np.float32)
        return found

    def _values(self, what: str) -> npt.NDArray[Any]:
        if what == "mask":
            # The mean is the share of chunks for which a filter was skipped.
            return self.masks != 0 if self.masks.size else np.zeros(self.positions.size, np.bool_)
        return self.nbytes if what == "stored" else self.addresses

    def _tile_of_all(
        self, plane: Plane, what: str, level: tuple[int, int], at: tuple[int, int]
    ) -> Floats:
        """Average the cells of a tile of a dataset whose chunks were all written."""
        shown = {plane.vertical, plane.horizontal}
        index = tuple(slice(None) if axis in shown else i for axis, i in enumerate(plane.at))
        values = self._values(what).reshape(self.grid)[index]
        if plane.vertical is None:
            values = values[None]
        elif plane.vertical > plane.horizontal:
            values = values.T
        found = np.full((SIDE, SIDE), np.nan, np.float32)
        sides = [SIDE << one for one in level]
        part = values[tuple(slice(i * n, (i + 1) * n) for i, n in zip(at, sides, strict=True))]
        if part.size:
            begins = [np.arange(0, n, 1 << one) for n, one in zip(part.shape, level, strict=True)]
            sums = part
            for axis in (1, 0):
                sums = np.add.reduceat(sums, begins[axis], axis, np.float64)
            high, wide = (
                np.diff(one, append=n) for one, n in zip(begins, part.shape, strict=True)
            )
            found[: sums.shape[0], : sums.shape[1]] = sums / np.outer(high, wide)
        return found.ravel()

    def one(self, index: Sequence[int]) -> Mapping[str, Any]:
        """Say where one chunk lies; no address if it was never written."""
        pairs = zip(index, self._strides(), strict=True)
        position = sum(i * stride for i, stride in pairs)
        number = int(np.searchsorted(self.positions, np.uint64(position)))
        written = number < self.positions.size and int(self.positions[number]) == position
        return {
            "index": tuple(index),
            "origin": tuple(i * c for i, c in zip(index, self.chunk, strict=True)),
            "address": int(self.addresses[number]) if written else None,
            "stored_nbytes": int(self.nbytes[number]) if written else None,
            "filter_mask": int(self.masks[number]) if written and self.masks.size else 0,
        }
