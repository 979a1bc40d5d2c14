"""What do many processes do with one file under MPI, and what must a machine have for that?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunkwise._lazy import attach

if TYPE_CHECKING:
    from chunkwise.collective.dataset import ParallelDataset
    from chunkwise.collective.file import ParallelFile, open
    from chunkwise.collective.group import ParallelGroup

__all__ = ["ParallelDataset", "ParallelFile", "ParallelGroup", "open"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "ParallelDataset": "chunkwise.collective.dataset",
        "ParallelFile": "chunkwise.collective.file",
        "ParallelGroup": "chunkwise.collective.group",
        "open": "chunkwise.collective.file",
    },
)
