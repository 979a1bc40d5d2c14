"""What does a program import to write one file by many ranks?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunkwise._lazy import attach

if TYPE_CHECKING:
    from chunkwise.mpi.dataset import ParallelDataset
    from chunkwise.mpi.file import ParallelFile, ParallelGroup, open

__all__ = ["ParallelDataset", "ParallelFile", "ParallelGroup", "open"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "ParallelDataset": "chunkwise.mpi.dataset",
        "ParallelFile": "chunkwise.mpi.file",
        "ParallelGroup": "chunkwise.mpi.file",
        "open": "chunkwise.mpi.file",
    },
)
