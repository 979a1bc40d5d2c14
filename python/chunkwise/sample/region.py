"""Which box of which array is a generator asked for?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Region:
    """A box of a sample's array, to be filled by a generator.

    A generator's values depend on an element's index, on `shape`, `variable`
    and `seed`, never on `start` and `count`: that is what makes a sample the
    same whichever slabs it is written in.

    Attributes
    ----------
    start, count
        First element and number of elements per dimension.
    shape
        Shape of the whole array, in elements.
    seed
        What the user chose.
    variable
        Position of the dataset among the sample's datasets.
    """

    start: tuple[int, ...]
    count: tuple[int, ...]
    shape: tuple[int, ...]
    seed: int
    variable: int = 0

    def axis(self, number: int) -> npt.NDArray[np.uint64]:
        """Return the box's indexes along one axis, shaped to broadcast over the box."""
        first = self.start[number]
        indexes = np.arange(first, first + self.count[number], dtype=np.uint64)
        return indexes.reshape([-1 if axis == number else 1 for axis in range(len(self.count))])

    def linear_index(self) -> npt.NDArray[np.uint64]:
        """Return each element's position in the array in C order, modulo 2**64."""
        stride = 1
        position = np.zeros((1,) * len(self.shape), dtype=np.uint64)
        for number in reversed(range(len(self.shape))):
            position = position + self.axis(number) * np.uint64(stride % 2**64)
            stride *= self.shape[number]
        return position
