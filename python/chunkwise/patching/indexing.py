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
