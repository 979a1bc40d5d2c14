"""What is known to fail, hang or crawl in a parallel program, by its settings?

A check looks at one known fault of parallel HDF5, of MPI or of a file system.  If a setting is
not known (None), its finding is a note.  Nothing here opens a file or calls MPI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from chunkwise.mpi.filesystems import FileSystem
from chunkwise.words import counted

Severity = Literal["note", "warning", "error"]
SEVERITIES: Final[tuple[Severity, ...]] = ("note", "warning", "error")
Version = tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """One thing that is known against what a program is going to do."""

    code: str  # Stable, such as ``independent-filtered``; docs/mpi.md explains each
    # ``error``: fails or spoils data; ``warning``: much slower; ``note``: it depends.
    severity: Severity
    summary: str  # What happens
    evidence: str  # Which settings show it, with their values
    remedy: str  # What to do instead
    sources: tuple[str, ...] = ()  # Where it is described: addresses


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a parallel program uses, as far as it is known; None if it is not."""

    hdf5: Version | None = None  # Version of HDF5
    mpi: str | None = None  # Name of the MPI library: ``Open MPI``, ``MPICH``, ``Intel MPI``,
    mpi_version: Version | None = None
    mpi_io: str | None = None  # Its component for MPI-IO: ``ompio`` or ``romio``
    n_ranks: int = 1  # Processes, machines, and cores of all machines that the processes may use
    n_hosts: int = 1
    n_cores: int | None = None
    filesystem: FileSystem | None = None  # Where the file lies


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


_COMPRESSION: Final = "https://support.hdfgroup.org/documentation/hdf5/latest/_par_compr.html"
_FILL: Final = "https://support.hdfgroup.org/HDF5/doc_resource/H5Fill_Behavior.html"
_DEPENDS: Final = "depends on the program"


@dataclass(frozen=True)
class _OfHdf5:
    """What some versions of parallel HDF5 are known for."""

    code: str
    severity: Severity
    holds: Callable[[Version, Settings], bool]
    summary: str
    evidence: str  # ``{version}``: of HDF5; ``{ranks}``: how many
    remedy: str
    sources: tuple[str, ...]


_OF_HDF5: Final = (
    _OfHdf5(
        "hdf5-too-old", "note", lambda version, _: version < (1, 10, 2),
        "This HDF5 cannot write datasets with filters in parallel; it came with 1.10.2.",
        "HDF5 {version}",
        "use HDF5 1.10.2 or later, or write with chunkwise, which needs no parallel HDF5",
        (_COMPRESSION,),
    ),
    _OfHdf5(
        "independent-filtered", "note", lambda *_: True,
        "H5Dwrite fails on datasets with filters unless it is collective, also with one rank: "
        "'Can't perform independent write with filters in pipeline'.",
        _DEPENDS,
        "write collectively: `with dset.collective:` in h5py, "
        "H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE) in C, nc_var_par_access in netCDF",
        (_COMPRESSION, "https://github.com/h5py/h5py/issues/1159"),
    ),
    _OfHdf5(
        "idle-ranks", "note", lambda *_: True,
        "Each rank must call each collective write, also with nothing to write; if one does not, "
        "the others wait for ever. h5py makes no call where the selection is empty, and so hangs.",
        _DEPENDS,
        "let each rank write something, or, where it has nothing, select nothing: "
        "`space.select_none(); dset.id.write(space, space, data, dxpl=dxpl)` in h5py",
        (_COMPRESSION, "https://github.com/h5py/h5py/issues/965"),
    ),
    _OfHdf5(
        "broadcast", "note", lambda _, settings: settings.n_ranks > 1,
        "h5py writes a value that it broadcasts in several calls, as many as the part has "
        "rows; collective writes hang where ranks make different numbers of them.",
        _DEPENDS,
        "assign arrays of the full shape of the part",
        ("https://github.com/h5py/h5py/issues/1108",),
    ),
    _OfHdf5(
        "conversion-filtered", "note", lambda *_: True,
        "Where HDF5 must convert types, a collective write becomes independent, and fails on "
        "datasets with filters: 'datatype conversions were required'.",
        _DEPENDS,
        "convert in memory first: `data.astype(dset.dtype)`",
        (f"{_HDF5}/pull/2823", f"{_HDF5}/issues/886"),
    ),
    _OfHdf5(
        "fill-at-creation", "note",
        lambda version, _: version < (1, 10, 10) or (1, 11) <= version < (1, 13, 1),
        "Parallel HDF5 allocates all chunks as a dataset is created, and writes the fill value to "
        "each: everything is written twice, and filters run twice.",
        "HDF5 {version}; it depends on the program",
        "never fill what will be written: `fill_time='never'` in h5py, "
        "H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER) in C, nc_def_var_fill in netCDF",
        (_COMPRESSION, _FILL),
    ),
    _OfHdf5(
        "collective-metadata", "note", lambda version, _: (1, 10, 1) <= version < (1, 10, 4),
        "Collective reads of metadata can hang where some ranks have nothing to read or write.",
        "HDF5 {version}",
        "use HDF5 1.10.4 or later, or leave H5Pset_all_coll_metadata_ops out",
        ("https://github.com/Unidata/netcdf-c/issues/1016",),
    ),
    _OfHdf5(
        "collective-metadata", "note",
        lambda version, _: (1, 10, 5) <= version < (1, 10, 9) or (1, 12) <= version < (1, 12, 2),
        "Collective reads of metadata are broken in this version: each rank reads for itself, "
        "whatever was asked for.",
        "HDF5 {version}",
        "use HDF5 1.10.9, 1.12.2 or later",
        (f"{_HDF5}/pull/1206", f"{_OPENPMD}/pull/1250"),
    ),
    _OfHdf5(
        "order-of-metadata", "note",
        lambda version, settings: version >= (2,) and settings.n_ranks > 1,
        "From HDF5 2.0 on, closing a file hangs where ranks made its groups and datasets in "
        "different orders, which earlier versions let pass.",
        "HDF5 {version}; it depends on the program",
        "let all ranks make all objects and attributes, in the same order",
        ("https://github.com/cp2k/cp2k/pull/4942",),
    ),
    _OfHdf5(
        "metadata-of-many-ranks", "warning", lambda _, settings: settings.n_ranks >= 4000,
        "HDF5's parallel compression was found not to scale at about 8,000 ranks, as each of "
        "them reads and writes metadata for itself.",
        "{ranks}",
        "H5Pset_all_coll_metadata_ops and H5Pset_coll_metadata_write, or fewer ranks",
        (_COMPRESSION,),
    ),
)  # fmt: skip


def warnings_for(settings: Settings) -> tuple[Finding, ...]:
    """Say what is known against settings, the worst first."""
    checks = (of_hdf5, mpi_io_faults, oversubscribed, incoherent_filesystem)
    found = [finding for check in checks for finding in check(settings)]
    return tuple(sorted(found, key=lambda one: -SEVERITIES.index(one.severity)))


def of_hdf5(settings: Settings) -> Iterator[Finding]:
    """Parallel HDF5 has traps of its own, some only in some versions."""
    version = settings.hdf5
    ranks = counted(settings.n_ranks, "rank")
    if version is None:
        return
    for one in _OF_HDF5:
        if one.holds(version, settings):
            evidence = one.evidence.format(version=said(version), ranks=ranks)
            yield Finding(one.code, one.severity, one.summary, evidence, one.remedy, one.sources)


def oversubscribed(settings: Settings) -> Iterator[Finding]:
    """Ranks that wait take the cores of those that work."""
    if settings.n_cores is not None and settings.n_ranks > settings.n_cores:
        spin = (
            " Open MPI waits without sleeping: a rank that waits takes the core of one that works."
            if settings.mpi == "Open MPI"
            else ""
        )
        yield Finding(
            "oversubscribed",
            "warning",
            f"More ranks than cores: times say nothing of how the program scales.{spin}",
            f"{counted(settings.n_ranks, 'rank')}, {counted(settings.n_cores, 'core')}",
            "start as many ranks as there are cores; to try more: "
            "`mpirun --oversubscribe --mca mpi_yield_when_idle 1`",
        )


def incoherent_filesystem(settings: Settings) -> Iterator[Finding]:
    """On some file systems the writes of several hosts do not add up."""
    if settings.filesystem is None:
        return
    text = settings.filesystem.warning(settings.n_hosts)
    if text is not None:
        summary, _, remedy = text.rpartition("; ")
        alone = settings.n_hosts == 1
        known = settings.filesystem.writes != "unknown"
        yield Finding(
            "filesystem",
            "note" if alone else "error" if known else "warning",
            f"{summary[0].upper()}{summary[1:]}.",
            f"{settings.filesystem.kind}, {counted(settings.n_hosts, 'host')}",
            remedy,
        )
