"""What is known about a parallel program, and which MPI-IO components have known faults?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from chunkwise.grammar.boxes import chunk_counts
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
        return math.prod(chunk_counts(self.shape, self.chunks))


def said(version: Version | None) -> str:
    """Write a version: ``1.14.6``."""
    return ".".join(map(str, version or ()))


_HDF5: Final = "https://github.com/HDFGroup/hdf5"
_OMPI: Final = "https://github.com/open-mpi/ompi/issues"
_OPENPMD: Final = "https://github.com/openPMD/openPMD-api"
_NEWS: Final = "https://docs.open-mpi.org/en/v5.0.1/news"


@dataclass(frozen=True)
class _Fault:
    """A fault of an MPI-IO component, in versions from one until before another."""

    component: str
    versions: tuple[tuple[Version, Version], ...]
    severity: Severity
    summary: str
    remedy: str
    sources: tuple[str, ...]


_SPOILED: Final = "OMPIO crashes in, or spoils, collective HDF5 writes of chunks."
_ON_SPOILED: Final = (f"{_OMPI}/6285", f"{_OPENPMD}/issues/446")
_FAULTS: Final = (
    _Fault(
        "ompio", (((2,), (3, 0, 4)), ((3, 1), (3, 1, 4))), "error", _SPOILED,
        "use Open MPI 3.0.4, 3.1.4, 4.0.1 or later, or ROMIO: `mpirun --mca io ^ompio`",
        _ON_SPOILED,
    ),
    _Fault(
        # Its ROMIO crashes, too: below.
        "ompio", (((4,), (4, 0, 1)),), "error", _SPOILED, "use Open MPI 4.0.1 or later",
        _ON_SPOILED,
    ),
    _Fault(
        "ompio", (((2,), (3, 0, 5)), ((3, 1), (3, 1, 5))), "warning",
        "Reads and writes of 2 GB and more at once fail in OMPIO.",
        "use a later Open MPI, or ROMIO: `mpirun --mca io ^ompio`",
        (f"{_NEWS}/news-v3.0.x.html", f"{_NEWS}/news-v3.1.x.html"),
    ),
    _Fault(
        "ompio", (((4,), (4, 1)),), "warning",
        "Collective HDF5 writes can hang in OMPIO's component vulcan (seen with 31 ranks).",
        "use a later Open MPI, or another component: `mpirun --mca fcoll dynamic_gen2`",
        (f"{_HDF5}/issues/1227",),
    ),
    _Fault(
        "ompio", (((4,), (4, 1, 7)), ((5,), (5, 0, 6))), "warning",
        "OMPIO's component vulcan can spoil data where a communicator has other ranks than "
        "MPI_COMM_WORLD, such as a Cartesian one.",
        "use a release later than August 2024, or another component: `mpirun --mca fcoll "
        "dynamic_gen2`; give HDF5 MPI_COMM_WORLD",
        (f"{_OMPI}/12718",),
    ),
    _Fault(
        "romio", (((4,), (5,)),), "error",
        "The ROMIO of Open MPI 4 crashes on HDF5's chunked datasets.",
        "use OMPIO, which is the default: leave OMPI_MCA_io out",
        (f"{_OMPI}/7795", f"{_OPENPMD}/pull/1441"),
    ),
)  # fmt: skip


def mpi_io_faults(settings: Settings) -> Iterator[Finding]:
    """Some components for MPI-IO have known faults."""
    version = settings.mpi_version
    if settings.mpi != "Open MPI" or version is None or settings.hdf5 is None:
        return
    for fault in _FAULTS:
        fits = any(first <= version < fixed for first, fixed in fault.versions)
        if settings.mpi_io == fault.component and fits:
            yield Finding(
                "mpi-io",
                fault.severity,
                fault.summary,
                f"Open MPI {said(version)}, {settings.mpi_io.upper()}",
                fault.remedy,
                fault.sources,
            )
    kind = settings.filesystem.kind if settings.filesystem else ""
    if kind == "lustre" and (4,) <= version < (4, 1) and settings.mpi_io == "romio":
        yield Finding(
            "mpi-io",
            "error",
            "HDF5's parallel tests hang in this ROMIO on Lustre.",
            f"Open MPI {said(version)}, ROMIO, Lustre",
            "use Open MPI 4.1 or later, whose default on Lustre is OMPIO",
            (f"{_OMPI}/6871",),
        )
