"""Measure one trial in this process: JSON spec on stdin, JSON record on stdout."""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from chunkwise import _native, system
from chunkwise._startup import measure_h5py_as_it_is
from chunkwise.errors import ChunkwiseError, CorruptDataError, UsageError, WrongValueError
from chunkwise.model.geometry import Walk
from chunkwise.names import hdf5_reason
from chunkwise.settings import settings
from chunkwise.trials import environment, pagecache, readers
from chunkwise.trials.breakdown import Watch, taken_apart
from chunkwise.trials.formats import is_netcdf3
from chunkwise.trials.in_rust import elements
from chunkwise.trials.trial import Trial
from chunkwise.trials.zlibs import check_in_force
from chunkwise.words import counted

if TYPE_CHECKING:
    from chunkwise import _native
    from chunkwise._native import WalkResult
    from chunkwise.trials.trial import Trial


def total_seconds(
    latencies_s: Sequence[float],
    operations: int,
    elapsed_s: float,
    total_operations: int,
    walk: Walk | None,
) -> float:
    """Estimate the seconds of all `total_operations` reads from the first ones."""
    if operations >= total_operations:
        return elapsed_s
    if walk is None or len(latencies_s) < operations:
        return elapsed_s * total_operations / operations
    latencies = np.asarray(latencies_s, dtype=np.float64)
    fresh, same = walk.kinds(len(latencies))
    census = walk.census()
    fresh_s = _mean(latencies[fresh], 0.0)
    back_s = _mean(latencies[~fresh & ~same], fresh_s)
    same_s = _mean(latencies[same & ~fresh], back_s)
    return fresh_s * census.fresh + back_s * census.back + same_s * census.same


def put_off_scale(
    operations: int,
    total_operations: int,
    written_nbytes: int,
    cache_nbytes: int | None,  # The chunk cache; None if nobody knows it
    chunk_nbytes: int,
) -> float:
    """Say how many times as much the flush has to do when all is written."""
    # A library puts off what its chunk cache holds; the rest of the flush stays the same.
    whole = total_operations / max(1, operations)
    if not chunk_nbytes:
        return 1.0
    if cache_nbytes is None:
        return whole
    # A chunk larger than the cache is written at once, but for what describes it.
    held = max(cache_nbytes, chunk_nbytes)
    return max(1.0, min(whole, held / max(1, written_nbytes)))


def _mean(values: npt.NDArray[np.float64], otherwise: float) -> float:
    return float(values.mean()) if values.size else otherwise


# Rows are compared in pieces of this many elements of the array.
_PIECE: Final = 1 << 22


class Checker:
    """Compares what a trial reads, selection by selection."""

    def __init__(self, trial: Trial, walk: _native.Walk) -> None:
        if not trial.comparable:
            raise UsageError(
                f"'{trial.dataset}' in {trial.file}: its elements hold padding, which is no value "
                "that could be checked; name another dataset"
            )
        self._trial, self._walk = trial, walk
        # Bit for bit: a NaN is a value like another.
        self._dtype = np.dtype(f"u{trial.itemsize}" if trial.itemsize in (1, 2, 4, 8) else "u1")
        known = elements(trial).view(self._dtype)
        self._known = known.reshape(*trial.shape, -1)
        self.checked = 0  # Elements compared so far

    def __call__(self, number: int, read: bytes | npt.NDArray[np.uint8]) -> None:
        """Check one operation."""
        selected = self._walk[number]
        hyperslabs = [selected] if isinstance(selected, tuple) else selected
        found = np.frombuffer(read, self._dtype).reshape(-1, self._known.shape[-1])
        first = min(start[0] for start, _, _, _ in hyperslabs)
        last = max(s[0] + (n[0] - 1) * t[0] + b[0] for s, t, n, b in hyperslabs)
        rows = max(1, _PIECE // math.prod(self._trial.shape[1:]))
        done = 0
        for top in range(first, last, rows):
            bottom = min(top + rows, last)
            mask = np.zeros((bottom - top, *self._trial.shape[1:]), bool)
            for hyperslab in hyperslabs:
                _mark(mask, hyperslab, top)
            known = self._known[top:bottom][mask]
            got = found[done : done + len(known)]
            if len(got) < len(known):
                break
            wrong = (got != known).any(axis=1)
            if wrong.any():
                at = int(wrong.argmax())
                place = [int(c[at]) for c in mask.nonzero()]
                place[0] += top
                raise WrongValueError(self._words(number, place, got[at], known[at]))
            done += len(known)
        else:
            if done == len(found):
                self.checked += done
                return
        raise WrongValueError(
            f"{self._where(number)}: {counted(len(found), 'element')} came, and another number "
            "was asked for"
        )

    def _where(self, number: int) -> str:
        trial = self._trial
        seed = "" if trial.seed is None else f" of seed {trial.seed}"
        return (
            f"'{trial.dataset}' in {trial.file}: {trial.reader}, selection {number} of "
            f"'{trial.access}'{seed}"
        )

    def _words(
        self, number: int, place: list[int], got: npt.NDArray[Any], known: npt.NDArray[Any]
    ) -> str:
        index = ", ".join(map(str, place))
        return (
            f"{self._where(number)}: element [{index}] was read as {self._value(got)}, and is "
            f"{self._value(known)}"
        )

    def _value(self, one: npt.NDArray[Any]) -> str:
        """Write an element as a value, or as bytes where NumPy has no name for its type."""
        stored = one.tobytes()
        try:
            dtype = np.dtype(self._trial.dtype)
        except TypeError:
            return f"0x{stored.hex()}"
        return str(np.frombuffer(stored, dtype)[0])


def _mark(mask: npt.NDArray[np.bool_], hyperslab: _native.Hyperslab, top: int) -> None:
    """Set the elements of a hyperslab, in rows of an array from `top` on."""
    axes = list(zip(*hyperslab, strict=True))
    if all(count == 1 for _, _, count, _ in axes):
        box = [slice(start, start + block) for start, _, _, block in axes]
        box[0] = slice(max(0, box[0].start - top), max(0, box[0].stop - top))
        mask[tuple(box)] = True
        return
    places: list[npt.NDArray[Any]] = [
        (start + stride * np.arange(count)[:, None] + np.arange(block)).ravel()
        for start, stride, count, block in axes
    ]
    inside = places[0] - top
    inside = inside[(inside >= 0) & (inside < len(mask))]
    mask[np.ix_(inside, *places[1:])] = True


T = TypeVar("T")

# Written data is read back with a cache that holds all of it, if possible.
_READ_BACK_NBYTES = 1 << 30


def measure(trial: Trial) -> dict[str, Any]:
    """Run the trial's reader over its dataset and return the figures as JSON values."""
    readers.check_reader(trial.reader)
    if trial.zlib_path is not None:
        check_in_force(trial.zlib_path, readers.below(trial).path)
    if trial.threads is not None:
        # Before anything asks how many there may be.
        os.environ["CHUNKWISE_THREADS"] = str(trial.threads)
    if trial.engine_cache_nbytes is not None:
        settings(cache_nbytes=trial.engine_cache_nbytes)
    return _read(trial) if trial.operation == "read" else _write(trial)


def _read(trial: Trial) -> dict[str, Any]:
    """Measure reads."""
    if trial.warm_first and trial.page_cache != "cold":
        _each_file(trial, pagecache.warm)
    elif trial.page_cache == "cold":
        _each_file(trial, pagecache.drop)
    reader = readers.READERS[trial.reader]
    with reader.opener()(trial) as opened:
        walk = trial.pattern.walk(trial.shape)
        checker = Checker(trial, walk) if trial.check else None
        watch = Watch(opened.library if opened.watched else None, trial.filter_ids)
        if trial.page_cache == "cold":
            # Once more: with what is opened, systems read megabytes ahead.
            _each_file(trial, pagecache.drop)
        before = _spent()
        result = _timed(reader, lambda: opened.walk(walk, checker))
        cpu_s, storage_nbytes, decoded = _since(before)
        cache = opened.cache()
        versions = _versions(trial, opened.library, opened.versions)
        spent = watch.finish(
            _table(trial, opened),
            walk,
            result["operations"],
            result["elapsed_s"],
            trial.storage if trial.page_cache == "cold" else None,
        )
    known_nbytes = None if pagecache.storage_nbytes() is None else int(storage_nbytes)
    # At least the bytes read, by the dataset's own ratio, had to come from storage.
    nbytes = max(1, math.prod(trial.shape) * trial.itemsize)
    fetched = int(min(1.0, result["selected_nbytes"] / nbytes) * trial.stored_nbytes)
    return {
        **_figures(trial, result),
        **_parts(trial, opened, result),
        "checked_elements": checker and checker.checked,
        "storage_nbytes": known_nbytes,
        "cpu_s": cpu_s,
        "decoded_chunks": int(decoded) if trial.reader in readers.NATIVE else None,
        "fallback": result.get("fallback"),
        # A read that fell back was not observed.
        "breakdown": None if "fallback" in result else spent,
        "page_cache": pagecache.verdict(fetched, known_nbytes)
        if trial.page_cache == "cold"
        else "uncontrolled",
        **_cache(cache),
        "checksums": result["checksums"] if _comparable(trial) else {},
        "environment": versions,
    }


def _each_file(trial: Trial, work: Callable[[str], object]) -> None:
    """Do something with the file, and with the one that an external link may have led to."""
    for path in dict.fromkeys((trial.file, trial.storage or trial.file)):
        work(path)


def _parts(trial: Trial, opened: readers.Opened, result: WalkResult) -> dict[str, float | None]:
    """Separate opening, selecting and reading."""
    within = (result["open_s"] or 0.0) + (result["select_s"] or 0.0)
    return {
        "open_s": result["open_s"] if trial.reopen else opened.open_s,
        "select_s": result["select_s"],
        "read_s": result["elapsed_s"] - within,
    }


def _timed(reader: readers.Reader, loop: Callable[[], T]) -> T:
    """Let a compiled loop find the heap that a program has which was just started."""
    # Importing leaves the interpreter's heap full of holes, and `malloc` searches them: lines
    # across 45 chunks, for which libhdf5 allocates much, took 9% longer there than in a C program.
    # A new thread begins with a heap of its own (an arena, in glibc).
    if not reader.compiled:
        return loop()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(loop).result()


def _table(trial: Trial, opened: readers.Opened) -> _native.ChunkTable | None:
    """List the chunks; None if there are none, or libhdf5 cannot list them."""
    if trial.chunks is None or opened.library is None:
        return None
    try:
        if opened.dataset_id is None:
            return opened.library.chunk_table_of(trial.file, trial.dataset)
        return opened.library.chunk_table(opened.dataset_id)
    except ChunkwiseError:
        return None


def _write(trial: Trial) -> dict[str, Any]:
    """Measure writes to a file of this worker's own, and read back what was written."""
    if trial.scratch is None:
        raise ChunkwiseError(f"{trial.dataset}: there is no folder to write to")
    path = Path(trial.scratch) / f"written-{os.getpid()}.h5"
    walk = trial.pattern.walk(trial.shape)
    try:
        reader = readers.READERS[trial.reader]
        writer = reader.writer()
        library = None if trial.reader in readers.NATIVE else readers.below(trial)
        before = _spent()
        watch = Watch(library, trial.filter_ids)
        result, cache = _timed(reader, lambda: writer(trial, walk, str(path)))
        watch.stop()
        cpu_s, _, _ = _since(before)
        # Reading back takes memory, too.
        figures = _figures(trial, result)
        file_nbytes = path.stat().st_size
        stored_nbytes, table = _read_back(trial, result, path)
        spent = None
        # A write that fell back was not observed.
        if "fallback" not in result:
            spent = taken_apart(watch, result, walk, str(path), stored_nbytes, table)
    finally:
        path.unlink(missing_ok=True)
    written_s = figures["total_s"]
    scale = put_off_scale(
        result["operations"],
        result["total_operations"],
        result["selected_nbytes"],
        _held_nbytes(trial, result, cache),
        math.prod(trial.chunks or (0,)) * trial.itemsize,
    )
    put_off_s = scale * (result["flush_s"] + result["close_s"])
    figures["total_s"] = result["create_s"] + written_s + put_off_s
    phases = {name: result[name] for name in ("create_s", "flush_s", "close_s", "sync_s")}
    return {
        **figures,
        **phases,
        "written_s": written_s,
        "put_off_s": put_off_s,
        "file_nbytes": file_nbytes,
        "cpu_s": cpu_s,
        "fallback": result.get("fallback"),
        "breakdown": spent,
        **_cache(cache),
        "checksums": result["checksums"] if _comparable(trial) else {},
        "environment": _versions_of_writer(trial),
    }


def _held_nbytes(trial: Trial, written: WalkResult, cache: readers.Cache) -> int | None:
    """Return the bytes of chunks that the writer may have put off; None if unknown."""
    if trial.reader in readers.NATIVE and "fallback" not in written:
        return _native.setting("write_buffer_nbytes")
    return cache[1]


def _read_back(
    trial: Trial, written: WalkResult, path: Path
) -> tuple[int, _native.ChunkTable | None]:
    """Compare what is in the file with what was given to be written."""
    operations = written["operations"]
    walk = trial.pattern.walk(trial.shape)
    if is_netcdf3(trial.format):
        netcdf = _native.NetCdf(readers.netcdf_library())
        variable = netcdf.open(str(path), trial.dataset, None)
        _compare(trial, written, variable.walk(walk, operations, math.inf))
        return math.prod(trial.shape) * trial.itemsize, None
    cache = min(_READ_BACK_NBYTES, max(1, math.prod(trial.shape) * trial.itemsize))
    # As it was given: netCDF-C takes values in this machine's byte order.
    properties = {"cache_nbytes": cache, "native_type": trial.reader == "netcdf4"}
    library = readers.library_of(trial)
    dataset = _native.OpenDataset(library, str(path), trial.dataset, properties)
    _compare(trial, written, dataset.walk(walk, operations, math.inf))
    table = None
    if trial.chunks is not None:
        with contextlib.suppress(ChunkwiseError):
            table = library.chunk_table(dataset.id)
    return dataset.storage_nbytes, table


def _compare(trial: Trial, written: WalkResult, read: WalkResult) -> None:
    operations = written["operations"]
    if read["checksums"][operations] != written["checksums"][operations]:
        raise CorruptDataError(
            f"'{trial.dataset}' written by {trial.reader} reads as other bytes than were given"
        )


def _figures(trial: Trial, result: WalkResult) -> dict[str, Any]:
    """Return what is said of reads and writes alike."""
    in_order = result["latencies_s"]
    latencies = sorted(in_order)
    elapsed_s, operations = result["elapsed_s"], result["operations"]
    # How often blocks come back to a chunk is known for walks in C order.
    walk = None
    if trial.chunks is not None and trial.pattern.in_c_order:
        walk = Walk(trial.shape, trial.block, trial.chunks)
    return {
        "status": "ok",
        "operations": operations,
        "total_operations": result["total_operations"],
        "elapsed_s": elapsed_s,
        "extrapolated": operations < result["total_operations"],
        "total_s": total_seconds(
            in_order, operations, elapsed_s, result["total_operations"], walk
        ),
        "selected_nbytes": result["selected_nbytes"],
        "mb_per_s": result["selected_nbytes"] / 1e6 / elapsed_s if elapsed_s else None,
        "first_s": in_order[0],
        "later_s": statistics.fmean(in_order[len(in_order) // 2 :]),
        "median_s": statistics.median(latencies),
        "p95_s": latencies[math.ceil(0.95 * len(latencies)) - 1],
        "p99_s": latencies[math.ceil(0.99 * len(latencies)) - 1],
        "peak_rss_nbytes": environment.peak_rss_nbytes(),
    }


def _comparable(trial: Trial) -> bool:
    """Whether equal values give equal bytes in every reader."""
    return trial.comparable and (trial.native_order or trial.reader != "netcdf4")


def _versions(
    trial: Trial, library: _native.Library | None, others: dict[str, str]
) -> dict[str, str | int]:
    """Return the machine and the versions of what took part."""
    described = environment.describe(library and ".".join(map(str, library.version)))
    if trial.zlib_path is not None:
        # In place of libhdf5's own; it was checked.
        others = {**others, "zlib": check_in_force(trial.zlib_path, readers.below(trial).path)}
    return {**described, **others}


def _versions_of_writer(trial: Trial) -> dict[str, str | int]:
    """Return the machine and the versions of what wrote."""
    netcdf = trial.reader == "netcdf4"
    versions = {"netcdf": _native.NetCdf(readers.netcdf_library()).version} if netcdf else {}
    return _versions(trial, readers.below(trial), versions)


def _cache(cache: readers.Cache) -> dict[str, Any]:
    names = ("actual_cache_nslots", "actual_cache_nbytes", "actual_cache_w0")
    return dict(zip(names, cache, strict=True))


def _spent() -> tuple[float, float, float]:
    """Processor seconds, bytes from storage and chunks decoded by this process so far."""
    decoded = _native.cache_stats()["decoded"]
    return time.process_time(), pagecache.storage_nbytes() or 0, decoded


def _since(before: tuple[float, float, float]) -> tuple[float, float, float]:
    now = _spent()
    return now[0] - before[0], now[1] - before[1], now[2] - before[2]


def main() -> None:
    """Serve one trial."""
    measure_h5py_as_it_is()
    trial = Trial.from_json(json.load(sys.stdin))
    # Should the parent be gone, nobody else ends a read that takes hours.
    system.reset_alarm()
    system.alarm(trial.timeout_s + 5.0)
    try:
        _answer(measure(trial))
    except ChunkwiseError as wrong:
        found = isinstance(wrong, WrongValueError)
        _answer({"status": "failed", "error": str(wrong), "wrong": found})
    except (OSError, MemoryError, KeyError, RuntimeError, ValueError, OverflowError) as wrong:
        where = f"{trial.file}, {trial.dataset}"
        _answer({"status": "failed", "error": f"{where}: {hdf5_reason(wrong)}"})


def _answer(values: dict[str, Any]) -> NoReturn:
    """Give the record, and end at once."""
    # Nothing is closed: libhdf5 may crash on a file that it could not write, with the reason.
    json.dump(values, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
