"""Do the references in some values lead anywhere?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
from h5py import h5r

from chunkwise.names import HDF5_ERRORS


def unresolved(values: Any, owner: Any) -> int:
    """Count references that are set and lead nowhere.

    Parameters
    ----------
    values
        As h5py gives them.
    owner
        h5py's low-level identifier of an object of the same file.
    """
    return sum(not _leads(reference, owner) for reference in _references(values))


def _leads(reference: Any, owner: Any) -> bool:
    try:
        target = h5r.dereference(reference, owner)
    except HDF5_ERRORS:
        return False
    return target is not None and bool(target.valid)


def _references(values: Any) -> Iterator[Any]:
    """Give all references within some values that are set."""
    if isinstance(values, h5py.Reference | h5py.RegionReference):
        if values:
            yield values
    elif isinstance(values, np.ndarray | np.void):
        if not values.dtype.hasobject:
            return
        if values.dtype.names is not None:
            for name in values.dtype.names:
                if values.dtype[name].hasobject:
                    yield from _references(values[name])
        elif isinstance(values, np.ndarray):
            for value in values.reshape(-1):
                if not isinstance(value, bytes | str):
                    yield from _references(value)
