"""Where do the chunks of a dataset lie, as far as a part of a drawing shows it?

A drawing shows two dimensions of the grid of chunks, at one place of the others.  It comes in
tiles: a cell of a tile is a chunk, or, from far away, the average of many.
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
VALUES: Final = ("stored", "place", "mask")
Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Plane:
    """The written chunks of two dimensions of the grid, sorted by their rows."""

    rows: Integers
    columns: Integers
    chosen: Integers  # Their numbers in the list of all chunks


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
        return {
            "stored": (int(self.nbytes.min()), int(self.nbytes.max())),
            "place": (int(self.addresses.min()), int((self.addresses + self.nbytes).max())),
            "mask": (0, 1) if self.masks.size else None,
        }

    def _strides(self) -> list[int]:
        return [math.prod(self.grid[axis + 1 :]) for axis in range(len(self.grid))]

    def _along(self, chosen: npt.NDArray[np.uint64], axis: int) -> Integers:
        """Return the indices of some positions along a dimension."""
        # Positions are below 2**64, and so are strides of more than one chunk.
        found: Integers = (
            chosen // np.uint64(self._strides()[axis]) % np.uint64(self.grid[axis])
        ).astype(np.int64)
        return found

    def plane(self, vertical: int | None, horizontal: int, at: Sequence[int]) -> Plane:
        """Choose the chunks of two dimensions; `at` is the chunk index along each of the others.

        Without a vertical dimension there is one row.
        """
        shown = {vertical, horizontal}
        key = (vertical, horizontal, *(0 if axis in shown else i for axis, i in enumerate(at)))
        found = self._planes.get(key)
        if found is None:
            chosen: Integers = np.arange(self.positions.size, dtype=np.int64)
            for axis, index in enumerate(at):
                if axis not in shown and self.grid[axis] > 1:
                    chosen = chosen[self._along(self.positions[chosen], axis) == index]
            places = self.positions[chosen]
            columns = self._along(places, horizontal)
            rows = columns * 0 if vertical is None else self._along(places, vertical)
            if vertical is not None and vertical > horizontal:
                order = np.argsort(rows, kind="stable")
                rows, columns, chosen = rows[order], columns[order], chosen[order]
            found = Plane(rows, columns, chosen)
            # One is looked at at a time.
            self._planes = {key: found}
        return found

    def tile(self, plane: Plane, what: str, level: tuple[int, int], at: tuple[int, int]) -> Floats:
        """Average the values of a tile's cells, of 2**level chunks along each side.

        NaN where no chunk of a cell was written.
        """
        (down, right), (row, column) = level, at
        high, wide = SIDE << down, SIDE << right
        first, last = np.searchsorted(plane.rows, [row * high, (row + 1) * high])
        rows = (plane.rows[first:last] - row * high) >> down
        columns = (plane.columns[first:last] - column * wide) >> right
        inside = (columns >= 0) & (columns < SIDE)
        cells = rows[inside] * SIDE + columns[inside]
        chosen = plane.chosen[first:last][inside]
        if what == "mask":
            # The share of chunks for which a filter was skipped.
            weights = (self.masks[chosen] != 0 if self.masks.size else chosen * 0.0) * 1.0
        else:
            weights = (self.nbytes if what == "stored" else self.addresses)[chosen] * 1.0
        counts = np.bincount(cells, minlength=SIDE * SIDE)
        sums = np.bincount(cells, weights, minlength=SIDE * SIDE)
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = (sums / counts).astype(np.float32)
        return found

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
