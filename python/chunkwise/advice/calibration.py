"""What do reading and writing cost on this machine?

Small walks over a scratch file are measured, once, and the rates of the model are fitted to them
(`chunkwise.model.seconds`).  If anything is wrong with a kept file, they are measured again.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from io import FileIO
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import LibraryError
from chunkwise.files.answers import cache_file
from chunkwise.files.durable import write_whole
from chunkwise.measure.process import finished, python
from chunkwise.memory import free_nbytes
from chunkwise.model.cost import Shape, Stored
from chunkwise.model.fitting import fitted
from chunkwise.model.readers import CHUNKWISE, UNCACHED, Reader, reader, this_process
from chunkwise.model.seconds import PAGE_NBYTES, Machine, Rates, Storage, terms
from chunkwise.model.traffic import HUGE_NBYTES, Pattern, traffic
from chunkwise.patterns.stated import hyperslabs
from chunkwise.trials import pagecache

VERSION: Final = 11
LIBHDF5: Final = "libhdf5"
# Size of the scratch dataset: walks over it are whole, and short.
_SHAPE: Final = (128, 2048)
_CHUNKS: Final = ((128, 2048), (32, 512), (8, 128), (1, 2048), (128, 8), (4, 16))
_BLOCKS: Final = ((1, 2048), (128, 1), (16, 64), (8, 128))
# A dataset larger than any processor's cache: it shows what bytes cost.
_LARGE_SHAPE: Final = (2048, 16384)
_LARGE_CHUNKS: Final = ((512, 512), (64, 16384))
_LARGE_BLOCKS: Final = ((64, 16384), (1024, 16384), (2048, 512), _LARGE_SHAPE)
# Random places of it show what distant memory costs.
_LARGE_RANDOM: Final = (((2048, 1), 20), ((64, 64), 100))
# chunkwise is so much faster there; fewer reads would also be in the processor's cache.
_MORE: Final = 16
# Few walks that say all about bytes, among many that say all about calls.
_LARGE_WEIGHT: Final = 5
_POINTS: Final = 2_000
_REPEATS: Final = 3
# A longer walk is not repeated: disturbances are small beside it.
_LONG_S: Final = 0.1
# No walk is repeated after this time: others use the machine.
_PATIENCE_S: Final = 10.0
# Of a file that is read from storage.
_COLD_NBYTES: Final = 32 << 20
_COLD_REQUESTS: Final = 24
_COLD_PIECE: Final = 16 << 10
# The filter of the calibrated chunks does nothing to one byte.
_FILTERED: Final = {"shuffle": True}
_WORK: Final = """
import sys
from chunkwise.advice.calibration import main
main(sys.argv[1], int(sys.argv[2]))
"""


# One measured walk: its counts, and its seconds.
_Row = tuple[tuple[float, ...], float]


def machine(*, again: bool = False, say: Callable[[str], None] = lambda _: None) -> Machine:
    """Return what this machine's readers cost, from the user's cache or by measuring."""
    path = cache_path()
    kept = None if again else _kept(path)
    if kept is not None:
        return kept
    say("measuring this machine, once")
    found = measured()
    record = {"version": VERSION, **key(), "busy": _is_busy(), "machine": found.as_dict()}
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(record, indent=1).encode())
    return found


def storage_of(nbytes: float, known: Machine) -> Storage | None:
    """Return the storage from which this many bytes are read, over and over; None for memory."""
    return known.cold if nbytes > free_nbytes() // 2 else None


def cache_path() -> Path:
    """Return the file in which this machine's figures are kept."""
    return cache_file("machine")


def key() -> dict[str, Any]:
    """Say for what the figures hold: other libraries and processors cost something else."""
    return {
        "chunkwise": _native.__version__,
        "hdf5": h5py.version.hdf5_version,
        "cpu_count": os.cpu_count(),
        "threads": _native.thread_count(),
        "processor": platform.machine(),
    }


def _is_busy() -> bool:
    """Return whether other programs use the processors: measurements hold only meanwhile."""
    try:
        waiting, _, _ = os.getloadavg()
    except (OSError, AttributeError):
        return False
    return waiting > (os.cpu_count() or 1)


def _kept(path: Path) -> Machine | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["version"] != VERSION or any(record[k] != v for k, v in key().items()):
            return None
        if record["busy"] and not _is_busy():
            return None
        return Machine.from_dict(record["machine"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def measured() -> Machine:
    """Measure this machine, in a process of its own; takes a few seconds."""
    threads = str(_native.thread_count())
    with tempfile.TemporaryDirectory(prefix="chunkwise-") as folder:
        ended = finished([*python(_WORK), folder, threads])
    if ended.returncode:
        raise LibraryError(f"this machine cannot be measured: the process {ended.how}")
    return Machine.from_dict(json.loads(ended.out))


def main(folder: str, threads: int) -> None:
    """Measure in this process, and print what was found as JSON."""
    _native.set_threads(threads)
    path = Path(folder) / "calibration.h5"
    _write(path)
    readers = {LIBHDF5: this_process(), CHUNKWISE: reader(CHUNKWISE)}
    reads: dict[str, Rates] = {}
    writes: dict[str, Rates] = {}
    patience = time.monotonic() + _PATIENCE_S
    with one_thread():
        for name, who in readers.items():
            reads[name] = _fit(_reading(path, name, who, patience), name)
            writes[name] = _fit(_writing(path, folder, name, who), name, writing=True)
    found = Machine(reads, writes, threads, _scaling(path, threads), _cold(folder))
    print(json.dumps(found.as_dict()))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let the engine use one thread, for as long as the block lasts."""
    before = _native.thread_count()
    _native.set_threads(1)
    try:
        yield
    finally:
        _native.set_threads(before)


def _fit(rows: Sequence[_Row], name: str, *, writing: bool = False) -> Rates:
    counts, seconds = map(np.array, zip(*rows, strict=True))
    return fitted(counts, seconds, name, writing=writing)


# --- the scratch file --------------------------------------------------------------------


def _name(chunks: Shape | None, filtered: bool = False, large: bool = False) -> str:
    before = "large-" if large else ""
    if chunks is None:
        return f"{before}contiguous"
    return f"{before}{'x'.join(map(str, chunks))}-{'f' if filtered else 'p'}"


def _write(path: Path) -> None:
    """Write a dataset for each chunk shape, with a filter that does nothing, and without."""
    data = np.random.default_rng(0).integers(0, 256, _SHAPE, np.uint8)
    with h5py.File(path, "w") as file:
        for chunks in _CHUNKS:
            for filtered in (False, True):
                options: dict[str, Any] = _FILTERED if filtered else {}
                file.create_dataset(_name(chunks, filtered), data=data, chunks=chunks, **options)
        file.create_dataset(_name(None), data=data)
        # More than once the same: what the bytes are does not matter.
        many = np.tile(data, (_LARGE_SHAPE[0] // _SHAPE[0], _LARGE_SHAPE[1] // _SHAPE[1]))
        for chunks in _LARGE_CHUNKS:
            file.create_dataset(_name(chunks, large=True), data=many, chunks=chunks)
        file.create_dataset(_name(None, large=True), data=many)
        # For threads to decode: chunks that take a millisecond each.
        smooth = np.cumsum(np.random.default_rng(1).integers(-3, 4, (24, 1 << 18)), axis=1)
        file.create_dataset(
            "deflated", data=smooth.astype("<i2"), chunks=(1, 1 << 18), compression=4, shuffle=True
        )
    pagecache.warm(str(path))


def _patterns() -> Iterator[tuple[Pattern, _native.Walk]]:
    for block in _BLOCKS:
        yield Pattern("", block), _native.Walk(_SHAPE, block)
    points = Pattern("", (1, 1), scattered=True, operations=_POINTS)
    yield points, _native.Walk(_SHAPE, (1, 1), None, 0, _POINTS)


def _reading(path: Path, name: str, who: Reader, patience: float) -> list[_Row]:
    rows = []

    def add(
        pattern: Pattern,
        walk: _native.Walk,
        chunks: Shape | None,
        *,
        filtered: bool = False,
        large: bool = False,
        by: Reader = who,
        **cache: int,
    ) -> None:
        shape = _LARGE_SHAPE if large else _SHAPE
        # Without chunks, or with chunks that no cache holds, piece by piece.
        stored = Stored.of(shape, chunks, 1, filtered=filtered)
        nbytes = stored.chunk_nbytes if stored.chunked else 0
        counts = terms(traffic(stored, pattern, by), nbytes)
        dataset = _name(chunks, filtered, large)
        times: list[float] = []
        while not times or (
            len(times) < _REPEATS and sum(times) < _LONG_S and time.monotonic() < patience
        ):
            times.append(_read_s(path, dataset, name, walk, **cache))
        rows.append((counts, min(times)))

    for pattern, walk in _patterns():
        for chunks in _CHUNKS:
            # Samples show what a filter costs libhdf5.
            for filtered in (False, True) if name == CHUNKWISE else (False,):
                add(pattern, walk, chunks, filtered=filtered)
        add(pattern, walk, None)
        if name == LIBHDF5:
            for chunks in _CHUNKS[:2]:
                add(pattern, walk, chunks, by=UNCACHED, cache_nbytes=0)
    walk = _native.Walk.cells(_SHAPE, 6, 20, 0)
    parts = tuple(hyperslabs(walk[i]) for i in range(20))
    union = Pattern("", _SHAPE, operations=20, selections=parts, flat=True)
    for chunks in _CHUNKS[:3]:
        add(union, walk, chunks, filtered=name == CHUNKWISE)
    for place in (*_LARGE_CHUNKS, None):
        for block in _LARGE_BLOCKS:
            add(Pattern("", block), _native.Walk(_LARGE_SHAPE, block), place, large=True)
            rows += rows[-1:] * (_LARGE_WEIGHT - 1)
    for block, few in _LARGE_RANDOM:
        number = few * _MORE if name == CHUNKWISE else few
        pattern = Pattern("", block, scattered=True, operations=number)
        walk = _native.Walk(_LARGE_SHAPE, block, None, 0, number)
        for place in (*_LARGE_CHUNKS, None):
            add(pattern, walk, place, large=True)
    # chunkwise has memory touched ahead, by several threads.
    return rows if name == CHUNKWISE else rows + [_fresh_pages(path)] * _LARGE_WEIGHT


def _fresh_pages(path: Path) -> _Row:
    """Measure what it costs to fill small pages of memory for the first time."""
    times = []
    with path.open("rb", buffering=0) as file:
        for _ in range(_REPEATS):
            memory = mmap.mmap(-1, HUGE_NBYTES, access=mmap.ACCESS_COPY)
            first, again = (_filled_s(file, memory) for _ in range(2))
            times.append(first - again)
    counts = Rates(fresh_s=HUGE_NBYTES, page_s=HUGE_NBYTES / PAGE_NBYTES)
    return astuple(counts), max(1e-7, min(times))


def _filled_s(file: FileIO, memory: mmap.mmap) -> float:
    file.seek(0)
    begun = time.perf_counter()
    file.readinto(memory)
    return time.perf_counter() - begun


def _read_s(path: Path, dataset: str, name: str, walk: _native.Walk, **cache: int) -> float:
    """Time a whole walk that finds nothing in any chunk cache."""
    _native.cache_clear()
    opened = _native.OpenDataset(library(), str(path), dataset, cache)
    read = opened.engine_walk if name == CHUNKWISE else opened.walk
    return max(1e-7, read(walk, walk.operations, 10.0)["elapsed_s"])


def _writing(path: Path, folder: str, name: str, who: Reader) -> list[_Row]:
    target = Path(folder) / "written.h5"

    def row(dataset: str, stored: Stored, block: Shape, data: Any) -> _Row:
        like = _native.OpenDataset(library(), str(path), dataset, {})
        write = like.engine_write_walk if name == CHUNKWISE else like.write_walk
        found = traffic(stored, Pattern("", block, writes=True), who)
        walk = _native.Walk(stored.shape, block)
        done = write(str(target), "x", data, walk, walk.operations, 10.0)
        target.unlink(missing_ok=True)
        spent = sum(done[part] for part in ("create_s", "flush_s", "close_s", "elapsed_s"))
        return terms(found, stored.chunk_nbytes), max(1e-7, spent)

    rows = []
    data = np.zeros(_SHAPE, np.uint8).reshape(-1)
    for chunks in _CHUNKS:
        for filtered in (False, True) if name == CHUNKWISE else (False,):
            stored = Stored(_SHAPE, chunks, 1, filtered)
            for block in (_SHAPE, (1, _SHAPE[1]), (16, 64)):
                rows.append(row(_name(chunks, filtered), stored, block, data))
    for chunks in _LARGE_CHUNKS:
        stored = Stored(_LARGE_SHAPE, chunks, 1, filtered=False)
        many = np.zeros(_LARGE_SHAPE, np.uint8).reshape(-1)
        large = row(_name(chunks, large=True), stored, (64, 16384), many)
        rows += [large] * _LARGE_WEIGHT
    return rows


def _scaling(path: Path, threads: int) -> float:
    """Return how many times as fast all threads decode as one."""
    if threads < 2:
        return 1.0
    walk = _native.Walk((24, 1 << 18), (24, 1 << 18))

    def best() -> float:
        return min(_read_s(path, "deflated", CHUNKWISE, walk) for _ in range(3))

    together = best()
    with one_thread():
        alone = best()
    return float(np.clip(alone / together, 1.0, threads))


def _cold(folder: str) -> Storage | None:
    """Measure the storage under the folder for scratch files; None if it cannot be measured."""
    # Memory is no storage: if the system does not let go of the file, nothing is said.
    path = Path(folder) / "cold"
    noise = np.random.default_rng(2).integers(0, 256, _COLD_NBYTES, np.uint8)
    path.write_bytes(noise.tobytes())
    try:
        pagecache.drop(str(path))
        before = pagecache.storage_nbytes()
        places = np.random.default_rng(3).permutation(_COLD_NBYTES // _COLD_PIECE)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
            begun = time.perf_counter()
            for place in places[:_COLD_REQUESTS]:
                os.pread(descriptor, _COLD_PIECE, int(place) * _COLD_PIECE)
            request_s = (time.perf_counter() - begun) / _COLD_REQUESTS
            pagecache.drop(str(path))
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
            begun = time.perf_counter()
            while os.read(descriptor, 4 << 20):
                pass
            rate = _COLD_NBYTES / (time.perf_counter() - begun)
        finally:
            os.close(descriptor)
        after = pagecache.storage_nbytes()
    except OSError:
        return None
    if before is None or after is None or after - before < _COLD_NBYTES // 2:
        return None
    return Storage(max(1e-6, request_s - _COLD_PIECE / rate), rate)
