"""Which indexes does h5py take that the engine resolves alike?

The engine understands more than h5py does.  A program that is patched has h5py's errors to
rely on, and so only what h5py takes goes to the engine.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(args: Any) -> bool:
    """Whether an index is of integers, slices with steps of at least 1, and Ellipsis.

    Whether it fits the dataset is for whoever resolves it to say.
    """
    for item in args if type(args) is tuple else (args,):
        kind = type(item)
        if kind is slice:
            step = item.step
            if step is not None and (not _is_integer(step) or step < 1):
                return False
        elif item is not Ellipsis and kind is not int and not isinstance(item, np.integer):
            return False
    return True


def one_vector(args: Any, shape: tuple[int, ...]) -> bool:
    """Whether an index is plain except for one list of increasing integers, or one mask.

    A mask is of the dataset's shape, or of one dimension.
    """
    items = args if type(args) is tuple else (args,)
    vectors = [n for n, item in enumerate(items) if isinstance(item, list | np.ndarray)]
    if len(vectors) != 1:
        return False
    at = vectors[0]
    if not plain((*items[:at], *items[at + 1 :])):
        return False
    try:
        vector = np.asarray(items[at])
    except ValueError:
        return False
    if vector.dtype.kind == "b" and vector.shape == shape and len(items) == 1:
        return True
    if vector.ndim != 1 or vector.size == 0:
        return False
    # Where it stands counts from the end behind an Ellipsis.
    axis = at if Ellipsis not in items[:at] else len(shape) - len(items) + at
    if not 0 <= axis < len(shape):
        return False
    if vector.dtype.kind == "b":
        return len(vector) == shape[axis]
    if vector.dtype.kind not in "iu":
        return False
    return bool(vector[0] >= 0 and vector[-1] < shape[axis] and (np.diff(vector) > 0).all())


def kept(args: Any, rank: int) -> tuple[bool, ...]:
    """Of each dimension, whether a plain index that fits keeps it in the result's shape."""
    items = args if type(args) is tuple else (args,)
    keeps: list[bool] = []
    for item in items:
        if item is Ellipsis:
            keeps += [True] * (rank - len(items) + 1)
        else:
            keeps.append(type(item) is slice)
    return (*keeps, *[True] * (rank - len(keeps)))


def _is_integer(value: Any) -> bool:
    return type(value) is int or isinstance(value, np.integer)
