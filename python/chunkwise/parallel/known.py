"""What is known about a parallel program, and which faults does that mean?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from chunkwise.parallel.filesystems import FileSystem

Severity = Literal["note", "warning", "error"]
SEVERITIES: Final[tuple[Severity, ...]] = ("note", "warning", "error")
Version = tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """One thing that is known against what a program is going to do.

    Attributes
    ----------
    code : str
        Stable, such as ``independent-filtered``; docs/mpi.md explains each.
    severity : str
        ``error``: it fails, hangs or spoils data; ``warning``: it takes a multiple of the time;
        ``note``: it depends on what the program does.
    summary : str
        What happens.
    evidence : str
        Which settings show it, with their values.
    remedy : str
        What to do instead.
    sources : tuple of str
        Where it is described: addresses.
    """

    code: str
    severity: Severity
    summary: str
    evidence: str
    remedy: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a parallel program uses, as far as it is known; None if it is not.

    Attributes
    ----------
    hdf5 : tuple of int, optional
        Version of HDF5.
    h5py : tuple of int, optional
        Version of h5py, where it writes through h5py.
    mpi : str, optional
        Name of the MPI library: ``Open MPI``, ``MPICH``, ``Intel MPI``, ...
    mpi_version : tuple of int, optional
        Its version.
    mpi_io : str, optional
        Its component for MPI-IO: ``ompio`` or ``romio``.
    n_ranks, n_hosts, n_cores : int
        Processes, machines, and cores of all machines that the processes may use.
    filesystem : FileSystem, optional
        Where the file lies.
    filters : tuple of str, optional
        Names of the dataset's filters; empty if it has none.
    collective : bool, optional
        Whether data is written collectively.
    collective_metadata : bool, optional
        Whether metadata is read collectively.
    idle_ranks : int, optional
        How many ranks have nothing to write in some collective write.
    converts : bool, optional
        Whether the type in memory is another than that of the dataset.
    fill : str, optional
        When the fill value is written (H5Pset_fill_time): ``ifset``, ``alloc``, ``never``.
    allocation : str, optional
        When space is allocated (H5Pset_alloc_time): ``default``, ``early``, ``incremental``,
        ``late``.
    shape, chunks : tuple of int, optional
        Of the dataset; `chunks` is empty for a contiguous one.
    tile : tuple of int, optional
        What one rank writes at once; elements a dimension.
    itemsize : int, optional
        Bytes of an element.
    cache_nbytes : int
        Of the dataset's chunk cache.
    path : str
        Names the dataset in findings.
    """

    hdf5: Version | None = None
    h5py: Version | None = None
    mpi: str | None = None
    mpi_version: Version | None = None
    mpi_io: str | None = None
    n_ranks: int = 1
    n_hosts: int = 1
    n_cores: int | None = None
    filesystem: FileSystem | None = None
    filters: tuple[str, ...] | None = None
    collective: bool | None = None
    collective_metadata: bool | None = None
    idle_ranks: int | None = None
    converts: bool | None = None
    fill: str | None = None
    allocation: str | None = None
    shape: tuple[int, ...] | None = None
    chunks: tuple[int, ...] | None = None
    tile: tuple[int, ...] | None = None
    itemsize: int | None = None
    cache_nbytes: int = 1 << 20
    path: str = ""

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
