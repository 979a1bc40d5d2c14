"""What do tests do where an older h5py, or its HDF5, cannot do what they need?"""

import h5py
import pytest

H5PY = h5py.version.version_tuple[:2]
HDF5 = h5py.version.hdf5_version_tuple

needs_sizes = pytest.mark.skipif(H5PY < (3, 11), reason="h5py tells sizes of metadata from 3.11")
HAS_CHUNK_ITER = hasattr(h5py.h5d.DatasetID, "chunk_iter")
needs_chunk_iter = pytest.mark.skipif(
    not HAS_CHUNK_ITER, reason="h5py has chunk_iter where its HDF5 has H5Dchunk_iter"
)
needs_errors_of_today = pytest.mark.skipif(
    H5PY < (3, 11), reason="h5py before 3.11 raises other exceptions for what makes no sense"
)
needs_cache_of_hdf5_2 = pytest.mark.skipif(
    HDF5 < (2, 0), reason="HDF5 before 2.0 has a chunk cache of 1 MiB, and findings say so louder"
)


def in_memory() -> h5py.File:
    """A new file that is never written to disk (``h5py.File.in_memory``, from 3.13 on)."""
    return h5py.File("in-memory.h5", "w", driver="core", backing_store=False)
