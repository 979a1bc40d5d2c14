"""What is known about a parallel program, and which faults does that mean?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from chunkwise.mpi.filesystems import FileSystem

Severity = Literal["note", "warning", "error"]
SEVERITIES: Final[tuple[Severity, ...]] = ("note", "warning", "error")
Version = tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """One thing that is known against what a program is going to do."""

    code: str  # Stable, such as ``independent-filtered``; docs/mpi.md explains each
    # ``error``: it fails, hangs or spoils data; ``warning``: it takes a multiple of the time;
    # ``note``: it depends on what the program does.
    severity: Severity
    summary: str  # What happens
    evidence: str  # Which settings show it, with their values
    remedy: str  # What to do instead
    sources: tuple[str, ...] = ()  # Where it is described: addresses


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a parallel program uses, as far as it is known; None if it is not."""

    hdf5: Version | None = None  # Version of HDF5
    h5py: Version | None = None  # Version of h5py, where it writes through h5py
    mpi: str | None = None  # Name of the MPI library: ``Open MPI``, ``MPICH``, ``Intel MPI``,
    mpi_version: Version | None = None
    mpi_io: str | None = None  # Its component for MPI-IO: ``ompio`` or ``romio``
    n_ranks: int = 1  # Processes, machines, and cores of all machines that the processes may use
    n_hosts: int = 1
    n_cores: int | None = None
    filesystem: FileSystem | None = None  # Where the file lies
    filters: tuple[str, ...] | None = None  # Names of the dataset's filters; empty if it has none
    collective: bool | None = None  # Whether data is written collectively
    collective_metadata: bool | None = None  # Whether metadata is read collectively
    idle_ranks: int | None = None  # How many ranks have nothing to write in some collective write
    converts: bool | None = None  # Whether the type in memory is another than that of the dataset
    # When the fill value is written (H5Pset_fill_time): ``ifset``, ``alloc``, ``never``.
    fill: str | None = None
    # When space is allocated (H5Pset_alloc_time): ``default``, ``early``, ``incremental``,
    # ``late``.
    allocation: str | None = None
    shape: tuple[int, ...] | None = None  # Of the dataset; `chunks` is empty for a contiguous one
    chunks: tuple[int, ...] | None = None
    tile: tuple[int, ...] | None = None  # What one rank writes at once; elements a dimension
    itemsize: int | None = None  # Bytes of an element
    cache_nbytes: int = 1 << 20  # Of the dataset's chunk cache
    path: str = ""  # Names the dataset in findings

    @property
    def chunk_nbytes(self) -> int | None:
        """Bytes of a decoded chunk."""
        if not self.chunks or self.itemsize is None:
            return None
        return math.prod(self.chunks) * self.itemsize

    @property
    def n_chunks(self) -> int | None:
        """How many chunks the dataset has."""
        if not self.chunks or self.shape is None:
            return None
        return math.prod(-(-n // c) for n, c in zip(self.shape, self.chunks, strict=True))


def said(version: Version | None) -> str:
    """Write a version: ``1.14.6``."""
    return ".".join(map(str, version or ()))
