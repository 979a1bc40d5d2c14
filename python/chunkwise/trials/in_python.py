"""How do the readers work that loop in Python, as a user's program does?"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5d, h5f, h5p

import chunkwise
from chunkwise import _native
from chunkwise.files.filters import missing_filter
from chunkwise.grammar import Pipeline
from chunkwise.names import encode_name
from chunkwise.system import sync
from chunkwise.trials import unions
from chunkwise.trials.in_rust import elements
from chunkwise.trials.readers import NATIVE, Cache, Look, Opened, library_of
from chunkwise.trials.trial import Trial

if TYPE_CHECKING:
    from chunkwise._native import EngineWalkResult, EngineWriteResult, WalkResult, WriteResult

Write = Callable[[unions.Index, npt.NDArray[Any]], None]

Read = Callable[[unions.Index, unions.Laps], npt.NDArray[Any]]
# Latencies kept for each trial; the contract of `_native.WalkResult`.
KEPT_LATENCIES = 100_000
# Reads of a Python loop, the first of which fills caches, unless they take PATIENCE times more.
FEWEST_OPERATIONS = 3
PATIENCE = 4.0


@contextmanager
def read(trial: Trial) -> Iterator[Opened]:
    """Time ``d[slices]`` of h5py or of chunkwise, called in a loop in Python."""
    ours = trial.reader in NATIVE
    if trial.reopen:
        yield _reopened(trial, ours=ours)
        return
    with _dataset(trial) as (library, dataset, open_s):
        by, wrapped = _reading(dataset, ours=ours)

        def walk(selections: _native.Walk, look: Look | None) -> WalkResult:
            result = walk_in_python(by, selections, trial.max_seconds, look=look)
            # Looked up now: the answer needs the chunk index, which is the first read's to load.
            return _explained(result, wrapped)

        cache = dataset.id.get_access_plist().get_chunk_cache
        yield Opened(
            walk,
            _no_cache if ours else cache,
            library,
            dataset.id.id,
            watched=not ours,
            open_s=open_s,
        )


def _no_cache() -> Cache:
    return None, None, None


def _reading(dataset: h5py.Dataset, *, ours: bool) -> tuple[Read, chunkwise.Dataset | None]:
    """Give what reads, and the dataset of chunkwise that it reads from."""
    if not ours:
        return partial(unions.read_by_h5py, dataset), None
    wrapped = chunkwise.wrap(dataset)
    return partial(unions.read_by_chunkwise, wrapped), wrapped


def _explained(result: WalkResult, read: chunkwise.Dataset | None) -> WalkResult:
    """Add why libhdf5 read in the place of chunkwise's engine, if it did."""
    reason = None if read is None else read.explain()["reason"]
    if reason is None:
        return result
    explained: EngineWalkResult = {**result, "fallback": str(reason)}
    return explained


def _reopened(trial: Trial, *, ours: bool) -> Opened:
    """Open the file for each read; closing it is not timed."""

    def each(index: unions.Index, laps: unions.Laps) -> npt.NDArray[Any]:
        with _dataset(trial) as (_, dataset, _):
            by, _ = _reading(dataset, ours=ours)
            laps.opened()
            array = by(index, laps)
            laps.done()
        return array

    def walk(selections: _native.Walk, look: Look | None) -> WalkResult:
        result = walk_in_python(each, selections, trial.max_seconds, look=look)
        with _dataset(trial) as (_, dataset, _):
            return _explained(result, _reading(dataset, ours=ours)[1])

    def cache() -> Cache:
        with _dataset(trial) as (_, dataset, _):
            found: Cache = dataset.id.get_access_plist().get_chunk_cache()
        return found

    return Opened(walk, _no_cache if ours else cache, library_of(trial), watched=not ours)


def write(trial: Trial, walk: _native.Walk, path: str) -> tuple[WriteResult, Cache]:
    """Time ``d[slices] = array`` of h5py or of chunkwise, called in a loop in Python."""
    with _made(trial, path) as made:
        dataset, ours = made.dataset, trial.reader in NATIVE
        put, plan = partial(unions.write_by_h5py, dataset), None
        if ours:
            wrapped = chunkwise.wrap(dataset)
            wrapped._set_effort(Pipeline.parse(trial.filters).effort)
            put = partial(unions.write_by_chunkwise, wrapped)
        result = _written(trial, walk, dataset.dtype, put)
        made.flush()
        if ours:
            plan = wrapped.explain_write()
        cache = dataset.id.get_access_plist().get_chunk_cache()
    written: WriteResult = {**result, **made.phases}
    if plan is None:
        return written, cache
    if plan["reason"] is not None:
        return cast("EngineWriteResult", {**written, "fallback": plan["reason"]}), cache
    counts = {
        "encoded_chunks": plan["committed_chunks"],
        "read_back_chunks": plan["read_chunks"],
        "encoder": plan["encoder"],
    }
    return cast("EngineWriteResult", {**written, **counts}), _no_cache()


@dataclass
class _Made:
    """A dataset like a trial's in a new file, and what its phases took."""

    # Open until the block of `_made` ends.
    file: h5py.File
    dataset: h5py.Dataset
    phases: _native.WritePhases  # Seconds, of what has been done so far

    def flush(self) -> None:
        """Flush the file; chunkwise commits what waits before h5py does."""
        begun = time.perf_counter()
        self.file.flush()
        self.phases["flush_s"] = time.perf_counter() - begun


@contextmanager
def _made(trial: Trial, path: str) -> Iterator[_Made]:
    """Make a dataset like the trial's in a new file; closed and synced with the block."""
    with _dataset(trial) as (library, like, _):
        dcpl = like.id.get_create_plist()
        datatype, space = like.id.get_type().copy(), like.id.get_space()
    fcpl, fapl, dapl = (
        h5p.create(kind) for kind in (h5p.FILE_CREATE, h5p.FILE_ACCESS, h5p.DATASET_ACCESS)
    )
    lists = {
        "file_creation": fcpl.id,
        "file_access": fapl.id,
        "dataset_access": dapl.id,
        "dataset_creation": dcpl.id,
    }
    _native.set_properties(library, trial.properties, lists)
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_create_intermediate_group(True)
    begun = time.perf_counter()
    file_id = h5f.create(os.fsencode(path), h5f.ACC_EXCL, fcpl, fapl)
    try:
        with contextlib.closing(h5py.File(file_id)) as file:
            name = encode_name("/" + trial.dataset.strip("/"))
            dataset_id = h5d.create(file_id, name, datatype, space, dcpl, lcpl, dapl)
            phases: _native.WritePhases = {
                "create_s": time.perf_counter() - begun,
                "flush_s": 0.0,
                "close_s": 0.0,
                "sync_s": 0.0,
            }
            yield _Made(file, h5py.Dataset(dataset_id), phases)
            begun = time.perf_counter()
            dataset_id.close()
        phases["close_s"] = time.perf_counter() - begun
        begun = time.perf_counter()
        sync(path)
        phases["sync_s"] = time.perf_counter() - begun
    except BaseException:
        with contextlib.suppress(OSError):
            Path(path).unlink()
        raise


def _written(trial: Trial, walk: _native.Walk, dtype: np.dtype[Any], write: Write) -> WalkResult:
    """Time the writes of a walk alone; `dtype` is the dataset's."""
    # NumPy turns elements that are arrays into further dimensions.
    array = elements(trial).view(dtype.base).reshape((*trial.shape, *dtype.shape))

    def prepare(index: unions.Index) -> Callable[[unions.Laps], npt.NDArray[Any]]:
        block = unions.gathered(array, index)

        def timed(_: unions.Laps) -> npt.NDArray[Any]:
            write(index, block)
            return block

        return timed

    return _walk(prepare, walk, trial.max_seconds)


@contextmanager
def _dataset(trial: Trial) -> Iterator[tuple[_native.Library, h5py.Dataset, float]]:
    """Open the trial's dataset with exactly the properties that it asks for."""
    # Gives the library, the dataset, and the seconds that opening file and dataset took.
    # HDF5 gives all handles of an object the cache of the first, so the dataset must not be open
    # already.
    library = library_of(trial)
    fapl, dapl = h5p.create(h5p.FILE_ACCESS), h5p.create(h5p.DATASET_ACCESS)
    # As h5py.File has it, so that objects left open do not keep the file open.
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    lists = {"file_access": fapl.id, "dataset_access": dapl.id}
    _native.set_properties(library, trial.properties, lists)
    begun = time.perf_counter()
    file_id = h5f.open(os.fsencode(trial.file), h5f.ACC_RDONLY, fapl)
    with contextlib.closing(h5py.File(file_id)):
        # Read-only, as `file[name]` is: h5py then remembers shape and type.
        found = h5d.open(file_id, encode_name(trial.dataset), dapl)
        open_s = time.perf_counter() - begun
        missing_filter(found.get_create_plist())  # loads plugins; the target was checked
        yield library, h5py.Dataset(found, readonly=True), open_s


def walk_in_python(
    read: Read,
    walk: _native.Walk,  # What is read, in which order
    max_seconds: float,
    clock: unions.Clock = time.perf_counter_ns,
    look: Look | None = None,  # Looks at the bytes that each operation read
) -> WalkResult:
    """Read an array selection by selection from Python, timing each read alone."""
    return _walk(lambda index: partial(read, index), walk, max_seconds, clock, look)


def _walk(
    prepare: Callable[[unions.Index], Callable[[unions.Laps], npt.NDArray[Any]]],
    walk: _native.Walk,
    max_seconds: float,
    clock: unions.Clock = time.perf_counter_ns,
    look: Look | None = None,
) -> WalkResult:
    """Time what `prepare` gives for each selection; it returns the elements."""
    latencies: list[float] = []
    laps = unions.Laps(clock)
    parts_s: dict[str, float] = {}
    checksums: dict[int, int] = {}
    crc = nbytes = spent_ns = operations = 0
    limit_ns = int(max_seconds * 1e9)
    begun_ns = clock()
    for number in range(walk.operations):
        timed = prepare(unions.index_of(walk[number]))
        start = clock()
        array = timed(laps)
        lap, opened_ns, select_ns = laps.finish(start, clock())
        for part, took in (("open_s", opened_ns), ("select_s", select_ns)):
            if took is not None:
                parts_s[part] = parts_s.get(part, 0.0) + took / 1e9
        spent_ns += lap
        operations += 1
        if len(latencies) < KEPT_LATENCIES:
            latencies.append(lap / 1e9)
        nbytes += array.nbytes
        elements_read = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        crc = _native.crc32(elements_read, crc)
        if operations & (operations - 1) == 0:
            checksums[operations] = crc
        if look is not None:
            look(number, elements_read)
        over = spent_ns >= limit_ns or clock() - begun_ns >= 3 * limit_ns
        if over and (operations >= FEWEST_OPERATIONS or spent_ns >= PATIENCE * limit_ns):
            break
    checksums[operations] = crc
    return {
        "operations": operations,
        "total_operations": walk.operations,
        "elapsed_s": spent_ns / 1e9,
        "selected_nbytes": nbytes,
        "latencies_s": latencies,
        "open_s": parts_s.get("open_s"),
        "select_s": parts_s.get("select_s"),
        "checksums": checksums,
    }
