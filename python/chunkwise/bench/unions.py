"""How does a loop in Python read a union of hyperslabs?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h5py
import numpy.typing as npt

from chunkwise import Dataset, Selection, Union, _native, lowlevel

Index = tuple[slice, ...] | Union


def union_of(hyperslabs: Sequence[_native.Hyperslab]) -> Union:
    """Return what `chunkwise.union` makes of these, each start, stride, count and block."""
    return Union(tuple(Selection(*(tuple(part) for part in one)) for one in hyperslabs))


def read_by_h5py(dataset: h5py.Dataset, index: Index) -> npt.NDArray[Any]:
    """Read as ``d[slices]``; a union, which h5py has no index for, by its low-level interface."""
    return lowlevel.read(dataset, index) if isinstance(index, Union) else dataset[index]


def read_by_chunkwise(dataset: Dataset, index: Index) -> npt.NDArray[Any]:
    """Read as ``d[slices]``, and a union by `Dataset.read`."""
    array: npt.NDArray[Any]
    array = dataset.read(index) if isinstance(index, Union) else dataset[index]
    return array
