"""What is known to fail, hang or crawl in a parallel program, by its settings?

Each check looks at one known fault of parallel HDF5, of MPI or of a file system, and
yields a finding with its evidence, its source and its remedy.  If a setting is not known
(None), the finding is a note: it depends on the program.  Nothing here opens a file or asks MPI.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

from chunkwise.grammar.sizes import format_size
from chunkwise.words import counted
from chunkwise_lab.mpi_check.known import SEVERITIES as SEVERITIES
from chunkwise_lab.mpi_check.known import Finding as Finding
from chunkwise_lab.mpi_check.known import Settings as Settings
from chunkwise_lab.mpi_check.known import Severity, mpi_io_faults, said
from chunkwise_lab.mpi_check.known import Version as Version

Check = Callable[[Settings], Iterator[Finding]]

_COMPRESSION = "https://support.hdfgroup.org/documentation/hdf5/latest/_par_compr.html"
_CHUNKING = "https://support.hdfgroup.org/HDF5/doc1.6/Chunking.html"
_TUNING = "https://www.hdfgroup.org/wp-content/uploads/2021/10/HUG_compression_21a.pdf"
_FILL = "https://support.hdfgroup.org/HDF5/doc_resource/H5Fill_Behavior.html"
_HDF5 = "https://github.com/HDFGroup/hdf5"
_OPENPMD = "https://github.com/openPMD/openPMD-api"


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
