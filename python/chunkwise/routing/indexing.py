"""Which indices does h5py take that the engine resolves alike?

A patched program relies on h5py's errors: only indices that h5py takes go to the engine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# h5py refuses a step that does not fit into libhdf5's integers, also if it goes nowhere.
_LARGEST_STEP = 2**63 - 1


def plain(args: Any) -> bool:
    """Whether an index is of integers, slices with steps of at least 1, and Ellipsis."""
    # Whether it fits the dataset is for the code that resolves it to say.
    for item in args if type(args) is tuple else (args,):
        kind = type(item)
        if kind is slice:
            step = item.step
            if step is not None and (not _is_integer(step) or not 1 <= step <= _LARGEST_STEP):
                return False
        elif item is not Ellipsis and kind is not int and not isinstance(item, np.integer):
            return False
    return True


def listed(args: Any, shape: tuple[int, ...]) -> bool:
    """Whether an index holds one list, or one mask, that h5py takes; the rest is plain."""
    # A list is of integers that increase and are not negative, in one dimension.  A mask stands
    # alone and has the dataset's shape; or it has one dimension and stands beside others.  h5py
    # refuses some of these if they select nothing: see `reading.py`.
    items = args if type(args) is tuple else (args,)
    arrays = [item for item in items if isinstance(item, list | np.ndarray)]
    if len(arrays) != 1 or not plain(tuple(i for i in items if i is not arrays[0])):
        return False
    array = arrays[0]
    if isinstance(array, np.ndarray) and array.dtype.kind == "b":
        return array.shape == shape if len(items) == 1 else array.ndim == 1 < len(shape)
    if isinstance(array, list):
        if not all(_is_integer(item) for item in array):
            return False
        array = np.array(array, dtype=object)
    elif array.ndim != 1 or array.dtype.kind not in "iu":
        return False
    return len(array) > 0 and array[0] >= 0 and bool((array[1:] > array[:-1]).all())


def is_mask(args: Any) -> bool:
    """Whether an index that `listed` has taken is a mask of all dimensions."""
    alone = args[0] if type(args) is tuple and len(args) == 1 else args
    return isinstance(alone, np.ndarray) and alone.dtype.kind == "b"


def _is_integer(value: Any) -> bool:
    return type(value) is int or isinstance(value, np.integer)
