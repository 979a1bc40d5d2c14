"""Which datasets, chunks and parts has a combination, and which value has each element?

In each step, each rank has a tile of every 2-D array of doubles.  By the dataset's rank, all
arrays of all steps are one 4-D dataset, several 3-D ones, or many 2-D ones.  The value is a smooth
bowl over the plane of all ranks, with 16 bits after the point, then 8 bits of noise, plus the
number of the array: a tile in another's place shows, and data compresses like measured data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkwise_lab.studies.iotest.settings import Settings
from chunkwise_lab.studies.iotest.walk import Combination

# Arrays that follow each other have other noise: a compressor that looks back must not find it.
_NOISES: Final = 4


class Tile(NamedTuple):
    """One write or read of a rank."""

    step: int
    array: int
    dataset: str
    start: tuple[int, ...]
    # Whether it is the first, and the last, that is done with its dataset before another.
    first: bool
    last: bool
    # Whether the dataset is made before it.
    new: bool


@dataclass(frozen=True)
class Geometry:
    """The datasets of one combination."""

    settings: Settings  # With its grid
    combination: Combination

    @property
    def shape(self) -> tuple[int, ...]:
        """Of each dataset."""
        return (*self._outer(self.settings.steps, self.settings.arrays), *self.settings.plane)

    @property
    def chunk(self) -> tuple[int, ...] | None:
        """Of each dataset; None if it is contiguous.

        A tile is a chunk, but for rank 4: there all arrays of a step lie in one, so that a
        write covers a small part of it.
        """
        if self.combination.layout != "chunked":
            return None
        if self.combination.rank == 4:
            return (*self._outer(1, self.settings.arrays), *self.settings.tile)
        return (*(1,) * (self.combination.rank - 2), *self.settings.tile)

    @property
    def unlimited(self) -> int | None:
        """The dimension that may grow, that of the steps; None if there is none."""
        if self.combination.layout != "chunked":
            return None
        by_step = self.combination.slowest == "step"
        if self.combination.rank == 4:
            return 0 if by_step else 1
        return 0 if self.combination.rank == 3 and not by_step else None

    @property
    def block(self) -> tuple[int, ...]:
        """The shape of a tile in its dataset."""
        return (*(1,) * (self.combination.rank - 2), *self.settings.tile)

    def tiles(self, rank: int) -> Iterator[Tile]:
        """Give a rank's tiles in the order in which they are written and read."""
        one, settings = self.combination, self.settings
        columns = settings.process_columns or 1
        place = (rank // columns * settings.tile[0], rank % columns * settings.tile[1])
        by_step, arrays = one.slowest == "step", settings.arrays
        whole = settings.steps * arrays
        for number in range(whole):
            step, array = divmod(number, arrays)
            start = (*self._outer(step, array), *place)
            if one.rank == 4:
                yield Tile(step, array, "dataset", start, number == 0, number == whole - 1,
                           number == 0)  # fmt: skip
            elif one.rank == 3 and by_step:
                yield Tile(step, array, f"step={step}", start, array == 0, array == arrays - 1,
                           array == 0)  # fmt: skip
            elif one.rank == 3:
                yield Tile(step, array, f"array={array}", start, True, True, step == 0)
            else:
                names = (f"step={step}", f"array={array}")
                name = "/".join(names if by_step else names[::-1])
                yield Tile(step, array, name, start, True, True, True)

    def _outer(self, step: int, array: int) -> tuple[int, ...]:
        """Return what stands before rows and columns, of the step's and the array's."""
        by_step = self.combination.slowest == "step"
        if self.combination.rank == 4:
            return (step, array) if by_step else (array, step)
        if self.combination.rank == 3:
            # A dataset has one step, or one array: what is left is the other.
            return (array,) if by_step else (step,)
        return ()


class Values:
    """The values of a rank's tiles."""

    def __init__(self, settings: Settings, rank: int) -> None:
        rows, columns = settings.tile
        row, column = divmod(rank, settings.process_columns or 1)
        y = (np.arange(rows) + row * rows) / settings.plane[0] - 0.3
        x = (np.arange(columns) + column * columns) / settings.plane[1] - 0.4
        bowl = np.floor((y[:, None] ** 2 + x[None, :] ** 2) * 2**16) / 2**16
        noise = np.random.default_rng(rank).integers(0, 2**8, (_NOISES, *bowl.shape)) / 2**24
        self.arrays = settings.arrays
        # All exact: a number below 2**28 and 24 bits after the point fit a double.
        self._planes: NDArray[np.float64] = bowl + noise
        self._expected = np.empty_like(bowl)
        self._same = np.empty(bowl.shape, bool)

    def fill(self, tile: NDArray[np.float64], step: int, array: int) -> None:
        """Put a tile's values into memory."""
        number = step * self.arrays + array
        np.add(self._planes[number % _NOISES], float(number), out=tile)

    def wrong(
        self, tile: NDArray[np.float64], step: int, array: int
    ) -> tuple[tuple[int, int], float, float] | None:
        """Compare every element that was read with what it must be."""
        expected = self._expected
        self.fill(expected, step, array)
        np.equal(tile, expected, out=self._same)
        if self._same.all():
            return None
        row, column = (int(at) for at in np.argwhere(~self._same)[0])
        return (row, column), float(tile[row, column]), float(expected[row, column])
