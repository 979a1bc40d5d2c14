"""How do the workers of a cluster repack a file?

This process plans, and copies all but datasets that need a new encoding: workers do these.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np

import chunkwise
from chunkwise import _native
from chunkwise._lib import library
from chunkwise.dask.pieces import Piece, WrittenDataset
from chunkwise.dask.tasks import Encoded, Flat, Form, encode
from chunkwise.dask.writing import require_dask, run_tasks, scheduler_of, target_of, write_pieces
from chunkwise.errors import CorruptDataError, UsageError
from chunkwise.grammar.boxes import Box, boxes, chunk_counts
from chunkwise.memory import default_budget
from chunkwise.mpi.encoding import Likeness
from chunkwise.names import decode_name, encode_name, printable
from chunkwise.newfile.claim import Claim
from chunkwise.newfile.index import open_index
from chunkwise.newfile.target import choose
from chunkwise.patterns import read
from chunkwise.proof.compare import Comparison, Sharing
from chunkwise.repacking.api import Size, as_nbytes
from chunkwise.repacking.creation import access_list
from chunkwise.repacking.options import Bound, Options, Verify
from chunkwise.repacking.plan import Step
from chunkwise.repacking.progress import Moment, Watch
from chunkwise.repacking.records import DatasetResult, Summary, result_of
from chunkwise.repacking.rules import ChunkRules, FilterRules, Rules
from chunkwise.repacking.run import Job, run
from chunkwise.repacking.work import Executor

if TYPE_CHECKING:
    from chunkwise.dask.writing import Scheduler

# Smaller datasets take less time here than on the way to workers.
_SMALL_NBYTES: Final = 4 << 20
# Memory of a task, if a worker's limit allows it.
_TASK_NBYTES: Final = 256 << 20
_LEAST_NBYTES: Final = 16 << 20


def repack(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    chunk: ChunkRules = None,
    filters: FilterRules = None,
    min_size: Size = 0,
    access: Sequence[str] = (),
    force: bool = False,
    memory: Size | None = None,
    verify: Verify = "proof",
    merge: bool = False,
    low: Bound | None = None,
    high: Bound | None = None,
    alignment: Size | None = None,
    page_size: Size | None = None,
    metadata_block: Size | None = None,
    client: Any = None,
    in_flight: int | None = None,
    progress: Watch | None = None,
) -> Summary:
    """Repack a file, as `chunkwise.repack` does, by all workers of a cluster.

    Datasets of 4 MiB and more that get other chunks or filters are read, encoded, written and
    verified by workers.  Everything else is done by this process, while they wait.

    Parameters
    ----------
    source, target : path
        The file, and the new one; all workers must see both, and run as the same user.
    memory : int or str, optional
        What one task may take.  By default 256 MiB, or a quarter of a worker's limit, shared by
        its threads, if that is less.
    client : distributed.Client, "threads" or "sync", optional
        Who computes; by default whom Dask would take.
    in_flight : int, optional
        Boxes in work at a time; by default one more for each worker than it has threads.
    chunk, filters, min_size, access, force, verify, merge, low, high, alignment, page_size, \
metadata_block, progress
        As in `chunkwise.repack`.

    Returns
    -------
    Summary
        What was done to each dataset.

    Raises
    ------
    ChunkwiseError
        Whatever is wrong; the source is untouched, and there is no target.
    """
    require_dask()
    scheduler = scheduler_of(client)
    place = choose(source, target, in_place=False, force=force)
    memory_nbytes = as_nbytes(memory)
    options = Options(
        memory_nbytes=memory_nbytes,
        verify=verify,
        merge=merge,
        low=low,
        high=high,
        alignment_nbytes=as_nbytes(alignment),
        page_nbytes=as_nbytes(page_size),
        metadata_block_nbytes=as_nbytes(metadata_block),
    )
    job = Job(Rules.of(chunk, filters, as_nbytes(min_size) or 0), options, read(access))
    watch = progress or (lambda _: None)
    task_nbytes = memory_nbytes or _task_nbytes(scheduler)
    return run(job, place, watch, _Workers(scheduler, options, task_nbytes, in_flight, watch))


@dataclass
class _Workers(Executor):
    """Writes datasets of a plan by workers."""

    scheduler: Scheduler
    options: Options
    task_nbytes: int
    in_flight: int | None
    watch: Watch
    _path: str = ""

    def takes(self, step: Step) -> bool:
        """Return whether workers can encode a dataset, and it is worth their while."""
        source, wanted = step.source, step.wanted
        if step.action != "rechunked" or wanted.chunk is None or source.nbytes < _SMALL_NBYTES:
            return False
        # Workers find datasets by their paths.
        if not source.linked:
            return False
        # This process looks for other files from the place of the source.
        if source.layout not in ("chunked", "contiguous") or source.identifier.dtype.subdtype:
            return False
        dcpl = source.identifier.get_create_plist() if step.dcpl is None else step.dcpl
        return bool(dcpl.get_alloc_time() != h5py.h5d.ALLOC_TIME_EARLY and _encodes(step, dcpl))

    def write(self, claim: Claim, source: h5py.File, steps: Sequence[Step]) -> list[DatasetResult]:
        """Write their data into the closed partial file."""
        self._path = str(source.filename)
        total = sum(step.source.nbytes for step in steps)
        done: dict[str, int] = {}

        def report(piece: Piece) -> None:
            name = piece.target.name
            done[name] = done.get(name, 0) + piece.nbytes
            of = piece.target.nbytes
            self.watch(Moment("copying", name, done[name], of, sum(done.values()), total))

        with open_index(claim, "r+", access_list(source, self.options)) as index:
            made = []
            for step in steps:
                dataset = h5py.Dataset(h5py.h5d.open(index.file.id, encode_name(step.source.path)))
                effort = step.wanted.pipeline.effort
                target = target_of(index, dataset, step.source.path, claim.place.said, effort)
                made.append((step, dataset, target))
            write_pieces(
                claim,
                (piece for step, _, target in made for piece in self._pieces(step, target)),
                self.scheduler,
                in_flight=self.in_flight,
                report=report,
            )
            return [
                replace(
                    result_of(step, dataset.id.get_storage_size()),
                    chunks=dataset.id.get_num_chunks(),
                )
                for step, dataset, _ in made
            ]

    def sharing(self, claim: Claim, memory_nbytes: int, report: Callable[[int], None]) -> Sharing:
        """Return what lets workers compare the result with the source, too."""
        del memory_nbytes

        def compare(what: Comparison) -> None:
            each = [what.part(number, len(what.pieces)).run for number in range(len(what.pieces))]
            done = run_tasks(self.scheduler, each, "chunkwise-verify", claim.place.said)
            for piece, _ in zip(what.pieces, done, strict=True):
                report(piece.nbytes)

        return Sharing(4 * self.tasks(), self.task_nbytes, compare)

    def _pieces(self, step: Step, target: WrittenDataset) -> Iterator[Piece]:
        source = step.source
        shape, chunk = source.shape or (), step.wanted.chunk or ()
        plan = _native.RechunkPlan(
            list(shape),
            None if source.chunk is None else list(source.chunk),
            list(chunk),
            source.itemsize,
            max(self.task_nbytes, 4 * math.prod(chunk) * source.itemsize),
            self.tasks(),
        )
        block = tuple(plan.super_block)
        name, form = encode_name(source.path), target.form
        count = math.prod(chunk_counts(shape, source.chunk or shape))
        is_sparse = source.chunk is not None and source.identifier.get_num_chunks() < count
        parts = chunk if is_sparse else None
        if isinstance(form, Flat):
            raise UsageError(f"'{printable(source.path)}': has no chunks")
        for box in boxes(shape, block, math.prod(block)):
            work = partial(_encode_box, self._path, name, form, box, parts)
            yield Piece(target, box.start, box.size * source.itemsize, dict, (work,))

    def tasks(self) -> int:
        """Return how many tasks workers do at a time."""
        if isinstance(self.scheduler, str):
            return int(_native.thread_count())
        threads: dict[str, int] = self.scheduler.nthreads()
        return max(1, sum(threads.values()))


def _encode_box(
    path: str, name: bytes, form: Form, box: Box, chunk: tuple[int, ...] | None
) -> Encoded:
    """Read a box of the source, and encode it."""
    # With `chunk`, chunks of the target that lie where the source has none are left out.
    with chunkwise.open(path) as file:
        dataset: Any = file[decode_name(name)]
        values = np.asarray(dataset[box.slices])
        if chunk is None:
            return encode(values, form, box.start)
        # By h5py `get_chunk_info_by_coord` goes through all chunks, and errs in some arrays.
        written = set(map(tuple, library().written_origins(dataset.id.id, sys.maxsize)))
        parts = [
            encode(values[part.slices], form, part.moved(box.start).start)
            for part in boxes(box.shape, chunk, math.prod(chunk))
            if not written.isdisjoint(_origins(part.moved(box.start), dataset.chunks))
        ]
    empty = np.empty((0, len(box.start) + 2), np.uint64)
    tables = [empty, *(part.table for part in parts)]
    return Encoded(np.concatenate(tables), tuple(one for part in parts for one in part.chunks))


def _origins(box: Box, chunk: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Give the origins of the chunks that a box touches."""
    sides = zip(box.start, box.end, chunk, strict=True)
    return product(*(range(a // side * side, b, side) for a, b, side in sides))


def _encodes(step: Step, dcpl: Any) -> bool:
    space = step.source.identifier.get_space()
    shape, most = space.get_simple_extent_dims(), space.get_simple_extent_dims(True)
    datatype = step.source.identifier.get_type()
    try:
        with closing(Likeness.made(datatype, shape, most, dcpl, "")) as like:
            return like.refusal() is None
    except (UsageError, CorruptDataError, TypeError):
        return False


def _task_nbytes(scheduler: Scheduler) -> int:
    if isinstance(scheduler, str):
        return max(_LEAST_NBYTES, min(_TASK_NBYTES, default_budget() // _native.thread_count()))
    workers = scheduler.scheduler_info()["workers"].values()
    limits: list[int] = [
        one["memory_limit"] // (4 * max(1, one["nthreads"]))
        for one in workers
        if one.get("memory_limit")
    ]
    return max(_LEAST_NBYTES, min([_TASK_NBYTES, *limits]))
