"""Do the references in some values lead anywhere?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
from h5py import h5r

from chunkwise.names import HDF5_ERRORS


class Targets:
    """What references of a file lead to."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file

    def lost(self, values: Any) -> int:
        """Count the references in some values that are set and lead nowhere."""
        return sum(not self._leads(reference) for reference in _references(values))

    def _leads(self, reference: Any) -> bool:
        try:
            return h5r.dereference(reference, self._file.id) is not None
        except HDF5_ERRORS:
            return False


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
