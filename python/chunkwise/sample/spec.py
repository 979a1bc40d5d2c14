"""What is known of a sample before it is written, and what is a generator asked for?"""

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


@dataclass(frozen=True)
class Sample:
    """A dataset of one of the papers, as it can be made again.

    Attributes
    ----------
    name
        What the user types.
    summary
        What it is, in a few words.
    stands_for
        The paper, with its table or figure, or the kind of file.
    datasets
        Paths of the datasets; all have the same type, shape and storage.
    dtype
        NumPy's code of the type in the file, with its byte order: ``>f4``.
    shape, chunk
        Defaults, in elements.
    filters
        Default pipeline, in chunkwise's grammar.
    expected_ratio
        Lowest and highest ratio of raw to stored bytes with all defaults.
    values
        The generator: fills a box, broadcastable to its shape, in any type
        that converts to `dtype`.  See `Region` for what it may depend on.
    fill
        Fill value of the datasets; None leaves HDF5's own, 0.
    unlimited
        Whether all dimensions are unlimited.
    attributes
        Attributes of every dataset.
    resolutions
        Shapes that have a name of their own.
    any_rank
        Whether a shape may have another number of dimensions than `shape` has.
    """

    name: str
    summary: str
    stands_for: str
    datasets: tuple[str, ...]
    dtype: str
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    filters: str
    expected_ratio: tuple[float, float]
    values: Callable[[Region], Values]
    fill: float | None = None
    unlimited: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)
    resolutions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    any_rank: bool = False
