"""What is known of a sample before it is written?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from chunkwise.sample.region import Region

Values = npt.NDArray[Any]


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
