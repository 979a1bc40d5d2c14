"""What does a program call to repack a file?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from chunkwise.errors import UsageError
from chunkwise.files.netcdf3 import as_netcdf4
from chunkwise.grammar import parse_size
from chunkwise.mpi.machine import share
from chunkwise.mpi.ranks import ALONE
from chunkwise.newfile.target import choose
from chunkwise.notebook import in_notebook
from chunkwise.patterns import read
from chunkwise.repacking.crew import by_all
from chunkwise.repacking.options import Bound, Options, Verify
from chunkwise.repacking.plan import Plan
from chunkwise.repacking.progress import Watch, by_bar
from chunkwise.repacking.records import Summary
from chunkwise.repacking.rules import ChunkRules, FilterRules, Rules
from chunkwise.repacking.run import Job, planned, run
from chunkwise.repacking.work import Executor
from chunkwise.settings import settings

Size = int | str


def repack(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    chunk: ChunkRules = None,
    filters: FilterRules = None,
    min_size: Size = 0,
    access: Sequence[str] = (),
    in_place: bool = False,
    unchanged: Literal["skip", "copy"] = "skip",
    force: bool = False,
    memory: Size | None = None,
    threads: int | None = None,
    verify: Verify = "proof",
    merge: bool = False,
    salvage: bool = False,
    low: Bound | None = None,
    high: Bound | None = None,
    alignment: Size | None = None,
    page_size: Size | None = None,
    metadata_block: Size | None = None,
    readers: Sequence[str] = (),
    resume: bool = False,
    progress: Watch | None = None,
    comm: Any = None,
) -> Summary:
    """Copy a file with other chunks, filters or layout, and everything else unchanged.

    Parameters
    ----------
    source : path
        An HDF5 or netCDF file; it is only read.  A netCDF-3 file becomes netCDF-4.
    target : path, optional
        The new file.  It appears when it is complete and verified, or not at all.
    chunk : optional
        Chunk shapes: ``"365x20x20"``, ``(365, 20, 20)``, ``"auto"`` or ``"contiguous"`` for
        all datasets; a mapping of names or patterns to shapes; a list of
        ``"PATTERN:SHAPE"``.  If several match a dataset, the last wins.
    filters : optional
        In the same way, filter pipelines such as ``"shuffle+zstd:3"``, ``"none"``, ``"stored"``.
    min_size : int or str, default 0
        Datasets of fewer bytes stay as they are, unless a rule names them.
    access : sequence of str, optional
        Patterns that will be read, for ``auto``: ``["line:0", "1x600x600"]``.
    in_place : bool, default False
        Replace the source; its old content stays until the new file is verified.
    unchanged : {"skip", "copy"}, default "skip"
        In place, for a file that needs no change: leave it, or write it again, which frees
        unused space in it.
    force : bool, default False
        Replace an existing target; in place, a file that has several names.
    memory : int or str, optional
        Most bytes for data, as in ``"2GiB"``.  By default a quarter of what is free.
    threads : int, optional
        Threads that decode and encode; by default `chunkwise.settings().threads`.
    verify : {"proof", "none"}
        Read the finished result and the source again, and compare them as a reader sees them:
        objects, attributes, references and all values.  What differs is an error, and there
        is no result.
    merge : bool, default False
        Make virtual and external datasets the file's own data.
    salvage : bool, default False
        Continue if chunks cannot be read: they become fill values, and are listed.
    low, high : optional
        Format bounds (``earliest``, ``v108``, ``v110``, ..., ``latest``); by default as in the
        source.
    alignment, page_size, metadata_block : int or str, optional
        Alignment of objects, pages of paged file space, blocks of metadata, in bytes.
    readers : sequence of str, optional
        Programs that must read the result, such as ``"netcdf-java"`` (`docs/readers.md` lists
        them); if one cannot, nothing is written.
    resume : bool, default False
        Continue a run that was stopped, if source and rules are the same; and keep the work of
        this run if an exception stops it.
    progress : callable, optional
        Called with a `Moment` about ten times a second, on rank 0; may raise to end the run.
        By default, a notebook shows a bar.
    comm : mpi4py.MPI.Comm, optional
        Ranks that repack the file together: each calls this with the same arguments.  Each takes
        `memory` and `threads`, by default its share of its machine.

    Returns
    -------
    Summary
        What was done to each dataset.

    Raises
    ------
    ChunkwiseError
        For every failure: the message names file, dataset or rule, and what to do.  The source
        did not change, and there is no target, unless a note (``__notes__``) says that the new
        file is in place.
    """
    if unchanged not in ("skip", "copy"):
        raise UsageError(f"unchanged {unchanged!r}: write skip or copy")
    ranks = ALONE if comm is None else comm
    memory_nbytes, threads = share(ranks, as_nbytes(memory), threads)
    job = Job(
        rules=Rules.of(chunk, filters, as_nbytes(min_size) or 0),
        options=Options(
            memory_nbytes=memory_nbytes,
            verify=verify,
            merge=merge,
            salvage=salvage,
            low=low,
            high=high,
            alignment_nbytes=as_nbytes(alignment),
            page_nbytes=as_nbytes(page_size),
            metadata_block_nbytes=as_nbytes(metadata_block),
            readers=tuple(readers),
        ),
        access=read(access),
        resume=resume,
        anew=unchanged == "copy",
    )
    with using_threads(threads):

        def work(executor: Executor) -> Summary:
            place = choose(source, target, in_place=in_place, force=force, salvage=salvage)
            with in_notebook(unless=progress) as show:
                return run(job, place, progress or by_bar(show), executor)

        return by_all(ranks, work)


def plan_repack(
    source: str | os.PathLike[str],
    *,
    chunk: ChunkRules = None,
    filters: FilterRules = None,
    min_size: Size = 0,
    access: Sequence[str] = (),
    memory: Size | None = None,
    merge: bool = False,
) -> Plan:
    """Say what `repack` would do to each dataset, without writing anything.

    Parameters are those of `repack`.

    Raises
    ------
    ChunkwiseError
        The file cannot be read, or a rule cannot be followed.
    """
    options = Options(memory_nbytes=as_nbytes(memory), merge=merge)
    job = Job(Rules.of(chunk, filters, as_nbytes(min_size) or 0), options, read(access))
    with as_netcdf4(Path(source)) as readable, planned(job, readable) as (_, plan):
        return plan


@contextmanager
def using_threads(threads: int | None) -> Iterator[None]:
    """Set the threads that decode and encode while the block runs; None changes nothing."""
    if threads is None:
        yield
        return
    if threads < 1:
        raise UsageError(f"threads {threads}: at least one is needed")
    with settings(threads=threads):
        yield


def as_nbytes(size: Size | None) -> int | None:
    """Return a size in bytes, however it is given."""
    return parse_size(size) if isinstance(size, str) else size
