"""All workers of a cluster write Dask arrays to HDF5 files, and repack files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunkwise import system
from chunkwise._lazy import attach

if TYPE_CHECKING:
    from chunkwise.dask.arrays import to_hdf5
    from chunkwise.dask.repacking import repack
    from chunkwise.dask.writing import Written

if not system.FORKS:
    raise ImportError("chunkwise.dask is not supported on Windows: use Linux or macOS")

__all__ = ["Written", "repack", "to_hdf5"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Written": "chunkwise.dask.writing",
        "repack": "chunkwise.dask.repacking",
        "to_hdf5": "chunkwise.dask.arrays",
    },
)
