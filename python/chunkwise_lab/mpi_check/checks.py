"""What is known to fail, hang or crawl in a parallel program, by its settings?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from chunkwise.grammar.boxes import chunk_counts
from chunkwise.grammar.sizes import format_size
from chunkwise.mpi.filesystems import FileSystem
from chunkwise.words import counted

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


Check = Callable[[Settings], Iterator[Finding]]

_COMPRESSION = "https://support.hdfgroup.org/documentation/hdf5/latest/_par_compr.html"
_CHUNKING = "https://support.hdfgroup.org/HDF5/doc1.6/Chunking.html"
_TUNING = "https://www.hdfgroup.org/wp-content/uploads/2021/10/HUG_compression_21a.pdf"
_FILL = "https://support.hdfgroup.org/HDF5/doc_resource/H5Fill_Behavior.html"


def warnings_for(settings: Settings) -> tuple[Finding, ...]:
    """Say what is known against settings, the worst first."""
    found = [finding for check in CHECKS for finding in check(settings)]
    return tuple(sorted(found, key=lambda one: -SEVERITIES.index(one.severity)))


def _open_or(known: bool | None, worst: Severity) -> Severity | None:
    """Return the severity if something is so, a note if that is open, otherwise None."""
    if known is None:
        return "note"
    return worst if known else None


def _filtered(settings: Settings) -> bool:
    # Unfiltered for certain, or not parallel at all: nothing to say of parallel compression.
    return settings.filters != () and settings.chunks != () and settings.hdf5 is not None


def before_parallel_compression(settings: Settings) -> Iterator[Finding]:
    """A library before 1.10.2 writes no filtered dataset in parallel."""
    if _filtered(settings) and settings.hdf5 and settings.hdf5 < (1, 10, 2):
        yield Finding(
            "hdf5-too-old",
            "error" if settings.filters else "note",
            "This HDF5 cannot write datasets with filters in parallel; it came with 1.10.2.",
            f"HDF5 {said(settings.hdf5)}",
            "use HDF5 1.10.2 or later, or write with chunkwise, which needs no parallel HDF5",
            (_COMPRESSION,),
        )


def independent_filtered(settings: Settings) -> Iterator[Finding]:
    """Independent writes to a filtered dataset fail."""
    independent = None if settings.collective is None else not settings.collective
    severity = _open_or(independent, "error")
    if _filtered(settings) and severity:
        yield Finding(
            "independent-filtered",
            severity if settings.filters else "note",
            "H5Dwrite fails on datasets with filters unless it is collective, also with one rank: "
            "'Can't perform independent write with filters in pipeline'.",
            "independent data transfers" if independent else "depends on the program",
            "write collectively: `with dset.collective:` in h5py, "
            "H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE) in C, nc_var_par_access in netCDF",
            (_COMPRESSION, "https://github.com/h5py/h5py/issues/1159"),
        )


def idle_ranks(settings: Settings) -> Iterator[Finding]:
    """A rank that leaves a collective write out hangs the others."""
    idle = None if settings.idle_ranks is None else settings.idle_ranks > 0
    severity = _open_or(idle, "error" if settings.h5py else "warning")
    if not _filtered(settings) or settings.collective is False or severity is None:
        return
    skips = (
        " h5py makes no call where the selection is empty, and so hangs." if settings.h5py else ""
    )
    yield Finding(
        "idle-ranks",
        severity,
        "Each rank must call each collective write, also with nothing to write; if one does not, "
        f"the others wait for ever.{skips}",
        f"{counted(settings.idle_ranks or 0, 'rank')} without data"
        if idle
        else "depends on the program",
        "let each rank write something, or, where it has nothing, select nothing: "
        "`space.select_none(); dset.id.write(space, space, data, dxpl=dxpl)` in h5py",
        (_COMPRESSION, "https://github.com/h5py/h5py/issues/965"),
    )


def broadcast_scalar(settings: Settings) -> Iterator[Finding]:
    """A value that h5py broadcasts may be written in a different number of calls on each rank."""
    if settings.h5py and settings.collective is None and settings.n_ranks > 1:
        yield Finding(
            "broadcast",
            "note",
            "h5py writes a value that it broadcasts in several calls, as many as the part has "
            "rows; collective writes hang where ranks make different numbers of them.",
            "depends on the program",
            "assign arrays of the full shape of the part",
            ("https://github.com/h5py/h5py/issues/1108",),
        )


def conversion_filtered(settings: Settings) -> Iterator[Finding]:
    """A conversion breaks the collective write that filters need."""
    severity = _open_or(settings.converts, "error")
    if _filtered(settings) and settings.collective is not False and severity:
        yield Finding(
            "conversion-filtered",
            severity if settings.filters else "note",
            "Where HDF5 must convert types, a collective write becomes independent, and fails on "
            "datasets with filters: 'datatype conversions were required'.",
            "the type in memory is not the dataset's"
            if settings.converts
            else "depends on the program",
            "convert in memory first: `data.astype(dset.dtype)`",
            (f"{_HDF5}/pull/2823", f"{_HDF5}/issues/886"),
        )


def _allocates_early(settings: Settings) -> bool:
    if settings.allocation == "early" or settings.filters == ():
        return True
    version = settings.hdf5 or ()
    return not (version >= (1, 13, 1) or (1, 10, 10) <= version < (1, 11))


def fill_at_creation(settings: Settings) -> Iterator[Finding]:
    """Early allocation writes the fill value to all chunks as the dataset is created."""
    if settings.hdf5 is None or settings.fill == "never" or not _allocates_early(settings):
        return
    size = ""
    if settings.shape is not None and settings.itemsize is not None:
        nbytes = math.prod(settings.shape) * settings.itemsize
        size = f", {format_size(nbytes)} of data"
    yield Finding(
        "fill-at-creation",
        "note" if settings.fill is None else "warning",
        "Parallel HDF5 allocates all chunks as a dataset is created, and writes the fill value to "
        "each: everything is written twice, and filters run twice.",
        f"HDF5 {said(settings.hdf5)}, fill time {settings.fill or 'not known'}{size}",
        "never fill what will be written: `fill_time='never'` in h5py, "
        "H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER) in C, nc_def_var_fill in netCDF",
        (_COMPRESSION, _FILL),
    )


def chunk_over_cache(settings: Settings) -> Iterator[Finding]:
    """Parts of a filtered chunk that no cache holds are read and compressed again each time."""
    nbytes = settings.chunk_nbytes
    if not settings.filters or nbytes is None or nbytes <= settings.cache_nbytes:
        return
    whole: bool | None = None
    if settings.tile is not None and settings.chunks:
        whole = all(
            t % c == 0 or t >= n
            for t, c, n in zip(
                settings.tile, settings.chunks, settings.shape or settings.tile, strict=True
            )
        )
    if whole:
        return
    yield Finding(
        "chunk-over-cache",
        "note" if whole is None else "warning",
        "A chunk larger than the chunk cache is not kept: each write of a part of it reads, "
        "decodes, encodes and writes all of it again.",
        f"{settings.path or 'chunks'}: {format_size(nbytes)} a chunk, "
        f"{format_size(settings.cache_nbytes)} of cache",
        "write whole chunks, choose smaller chunks, or give rdcc_nbytes the size of all chunks of "
        "one write",
        (_CHUNKING, _COMPRESSION),
    )


def shared_chunks(settings: Settings) -> Iterator[Finding]:
    """A chunk that several ranks write is sent to one of them."""
    if settings.n_ranks < 2 or not settings.tile or not settings.chunks:
        return
    pairs = zip(settings.tile, settings.chunks, settings.shape or settings.tile, strict=True)
    uneven = [
        f"{tile} of {chunk}" for tile, chunk, extent in pairs if tile < extent and tile % chunk
    ]
    if uneven:
        yield Finding(
            "shared-chunks",
            "warning" if settings.filters else "note",
            "The ranks' parts do not end where chunks end, so that ranks share chunks: the parts "
            "are sent to one rank, or written twice.",
            f"{settings.path or 'dataset'}: parts of {'x'.join(map(str, settings.tile))}, chunks "
            f"of {'x'.join(map(str, settings.chunks))}, {counted(settings.n_ranks, 'rank')}",
            "choose chunks that divide the part of a rank, or parts of whole chunks",
            (_COMPRESSION,),
        )


def tiny_chunks(settings: Settings) -> Iterator[Finding]:
    """Very many chunks make their index the limit."""
    n_chunks, nbytes = settings.n_chunks, settings.chunk_nbytes
    if n_chunks is None or nbytes is None or n_chunks < 100_000 or nbytes >= 256 << 10:
        return
    yield Finding(
        "tiny-chunks",
        "warning",
        "Each chunk is an entry of the index, which one process at a time changes: with this "
        "many, metadata takes longer than data.",
        f"{settings.path or 'dataset'}: {n_chunks:,} chunks of {format_size(nbytes)}",
        "choose chunks of 1 MiB or more",
        (_COMPRESSION, _TUNING),
    )


def chunk_of_4_gib(settings: Settings) -> Iterator[Finding]:
    """HDF5 stores the size of a chunk in 32 bits."""
    nbytes = settings.chunk_nbytes
    if nbytes is not None and nbytes >= 1 << 32 and (settings.hdf5 or (0,)) < (2,):
        yield Finding(
            "chunk-4-gib",
            "error",
            "A chunk must be smaller than 4 GiB.",
            f"{settings.path or 'chunks'}: {format_size(nbytes)} a chunk",
            "choose smaller chunks",
            (_TUNING,),
        )


def collective_metadata(settings: Settings) -> Iterator[Finding]:
    """Collective reads of metadata hang, or are silently independent, in some versions."""
    version = settings.hdf5
    if version is None or settings.collective_metadata is False:
        return
    severity = _open_or(settings.collective_metadata, "warning")
    if (1, 10, 1) <= version < (1, 10, 4):
        yield Finding(
            "collective-metadata",
            "error" if settings.collective_metadata else "note",
            "Collective reads of metadata can hang where some ranks have nothing to read or "
            "write.",
            f"HDF5 {said(version)}",
            "use HDF5 1.10.4 or later, or leave H5Pset_all_coll_metadata_ops out",
            ("https://github.com/Unidata/netcdf-c/issues/1016",),
        )
    elif severity and ((1, 10, 5) <= version < (1, 10, 9) or (1, 12) <= version < (1, 12, 2)):
        yield Finding(
            "collective-metadata",
            severity,
            "Collective reads of metadata are broken in this version: each rank reads for itself, "
            "whatever was asked for.",
            f"HDF5 {said(version)}",
            "use HDF5 1.10.9, 1.12.2 or later",
            (f"{_HDF5}/pull/1206", f"{_OPENPMD}/pull/1250"),
        )


def order_of_metadata(settings: Settings) -> Iterator[Finding]:
    """HDF5 2.0 hangs if ranks create objects in different orders."""
    if settings.hdf5 and settings.hdf5 >= (2,) and settings.n_ranks > 1:
        yield Finding(
            "order-of-metadata",
            "note",
            "From HDF5 2.0 on, closing a file hangs where ranks made its groups and datasets in "
            "different orders, which earlier versions let pass.",
            f"HDF5 {said(settings.hdf5)}; it depends on the program",
            "let all ranks make all objects and attributes, in the same order",
            ("https://github.com/cp2k/cp2k/pull/4942",),
        )


def many_ranks(settings: Settings) -> Iterator[Finding]:
    """Without collective metadata, parallel compression does not scale to thousands of ranks."""
    if settings.n_ranks >= 4000 and _filtered(settings) and not settings.collective_metadata:
        yield Finding(
            "metadata-of-many-ranks",
            "warning",
            "HDF5's parallel compression was found not to scale at about 8,000 ranks, as each of "
            "them reads and writes metadata for itself.",
            counted(settings.n_ranks, "rank"),
            "H5Pset_all_coll_metadata_ops and H5Pset_coll_metadata_write, or fewer ranks",
            (_COMPRESSION,),
        )


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


CHECKS: Final[tuple[Check, ...]] = (
    before_parallel_compression,
    independent_filtered,
    idle_ranks,
    broadcast_scalar,
    conversion_filtered,
    fill_at_creation,
    chunk_over_cache,
    shared_chunks,
    tiny_chunks,
    chunk_of_4_gib,
    collective_metadata,
    order_of_metadata,
    many_ranks,
    mpi_io_faults,
    oversubscribed,
    incoherent_filesystem,
)
