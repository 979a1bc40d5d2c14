"""What is known about a sample before it is written, and what must a generator do?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Region:
    """A box of a sample's array, to be filled by a generator.

    A generator's values depend on an element's index, on `shape`, `variable`
    and `seed`, never on `start` and `count`: that is what makes a sample the
    same whichever slabs it is written in.
    """

    # First element and number of elements per dimension.
    start: tuple[int, ...]
    count: tuple[int, ...]
    shape: tuple[int, ...]  # Shape of the whole array, in elements
    seed: int  # What the user chose
    variable: int = 0  # Position of the dataset among the sample's datasets

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


@dataclass(frozen=True)
class Sample:
    """A dataset of one of the papers, as it can be made again."""

    name: str  # What the user types
    summary: str  # What it is, in a few words
    stands_for: str  # The paper, with its table or figure, or the kind of file
    datasets: tuple[str, ...]  # Paths of the datasets; all have the same type, shape and storage
    dtype: str  # NumPy's code of the type in the file, with its byte order: ``>f4``
    # Defaults, in elements.
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    filters: str  # Default pipeline, in chunkwise's grammar
    # Fills a box, broadcastable to its shape, in any type that converts to `dtype`; see `Region`.
    values: Callable[[Region], Values]
    fill: float | None = None  # Fill value of the datasets; None leaves HDF5's own, 0
    unlimited: bool = False  # Whether all dimensions are unlimited
    attributes: Mapping[str, str] = field(default_factory=dict)  # Attributes of every dataset
    # Shapes that have a name of their own.
    resolutions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # Whether a shape may have another number of dimensions than `shape` has.
    any_rank: bool = False
