"""Which libhdf5 does this process call?  The one that h5py's handles come from."""

from __future__ import annotations

from functools import cache

import h5py
from h5py import h5d

from chunkwise import _native


@cache
def library() -> _native.Library:
    """The libhdf5 of h5py, bound through h5py's own extension module.

    Raises
    ------
    chunkwise.errors.LibraryError
        When that library cannot be bound (older than HDF5 1.10.5).
    """
    return _native.Library.from_handle(h5d.__file__, h5py._objects.phil)
