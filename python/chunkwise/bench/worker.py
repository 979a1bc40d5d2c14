"""Measure one trial in this process: JSON spec on stdin, JSON record on stdout.

Run by `chunkwise.bench.run`.  A process of its own gives every
trial a clean chunk cache and its own peak memory, and keeps a crash away from
the other trials.
"""

from __future__ import annotations

import json
import math
import resource
import signal
import statistics
import sys
from typing import TYPE_CHECKING, Any, cast

import h5py
from h5py import h5d, h5p

from chunkwise import _native
from chunkwise.advise.geometry import Walk
from chunkwise.bench import drivers, environment, pagecache
from chunkwise.bench.extrapolate import total_seconds
from chunkwise.bench.target import missing_filter
from chunkwise.bench.trial import Trial
from chunkwise.errors import ChunkwiseError
from chunkwise.objects import encode_name, hdf5_reason
from chunkwise.opening import open_h5

if TYPE_CHECKING:
    from chunkwise._native import NetCdfWalkResult


def open_with_cache(file: h5py.File, trial: Trial) -> h5py.Dataset:
    """Open the trial's dataset with exactly the chunk cache that it asks for.

    HDF5 gives all handles of an object the cache of the first, so the dataset
    must not be open already.
    """
    properties = h5p.create(h5p.DATASET_ACCESS)
    asked = (trial.cache_nslots, trial.cache_nbytes, trial.cache_w0)
    if any(value is not None for value in asked):
        defaults = file.id.get_access_plist().get_cache()[1:]
        nslots, nbytes, w0 = (
            default if value is None else value
            for value, default in zip(asked, defaults, strict=True)
        )
        properties.set_chunk_cache(nslots, nbytes, w0)
    # Read-only, as `file[name]` is: h5py then remembers shape and type, and a small read
    # takes a fraction of the time.
    return h5py.Dataset(h5d.open(file.id, encode_name(trial.dataset), properties), readonly=True)


def measure(trial: Trial) -> dict[str, Any]:
    """Run the trial's driver over its dataset and return the figures as JSON values.

    Raises
    ------
    ChunkwiseError, OSError
        If the file cannot be opened, or a read fails.
    """
    drive = drivers.DRIVERS[drivers.check_driver(trial.driver)]
    if trial.page_cache == "cold":
        pagecache.drop(trial.file)
    with open_h5(trial.file) as file:
        dataset = open_with_cache(file, trial)
        # An external link may have led to another file.
        storage = str(dataset.file.filename)
        if trial.page_cache == "cold":
            pagecache.drop(storage)
        elif trial.warm_first:
            pagecache.warm(storage)
        stored_nbytes = dataset.id.get_storage_size()
        elements = dataset.size
        missing_filter(dataset.id.get_create_plist())  # loads plugins; the target was checked
        nslots, nbytes, w0 = dataset.id.get_access_plist().get_chunk_cache()
        versions: dict[str, str] = {}
        comparable = trial.comparable
        pattern = trial.pattern
        before = _spent()
        result = drive(dataset, pattern.walk(dataset.shape), trial)
        if trial.driver == "netcdf4":
            # The cache in force is netCDF-C's own, and its values are in the machine's order.
            found = cast("NetCdfWalkResult", result)["chunk_cache"]
            nslots, nbytes, w0 = found or (None, None, None)
            versions = {"netcdf": _native.NetCdf(drivers.netcdf_library()).version}
            comparable = comparable and bool(dataset.dtype.isnative)
        spent = [now - then for now, then in zip(_spent(), before, strict=True)]
        itemsize = dataset.id.get_type().get_size()
        # How often blocks come back to a chunk is known for walks in C order.
        ordered = dataset.chunks and pattern.in_c_order
        walk = Walk(dataset.shape, trial.block, dataset.chunks) if ordered else None
    cpu_s, storage_nbytes, decoded = spent
    told = pagecache.storage_nbytes() is not None
    # What was read, at the dataset's own ratio, is what had to come from storage at least.
    share = min(1.0, result["selected_nbytes"] / max(1, elements * itemsize))
    latencies = sorted(result["latencies_s"])
    elapsed_s, operations = result["elapsed_s"], result["operations"]
    return {
        "status": "ok",
        "operations": operations,
        "total_operations": result["total_operations"],
        "elapsed_s": elapsed_s,
        "extrapolated": operations < result["total_operations"],
        "total_s": total_seconds(
            result["latencies_s"], operations, elapsed_s, result["total_operations"], walk
        ),
        "selected_nbytes": result["selected_nbytes"],
        "mb_per_s": result["selected_nbytes"] / 1e6 / elapsed_s if elapsed_s else None,
        "first_s": result["latencies_s"][0],
        "median_s": statistics.median(latencies),
        "p95_s": latencies[math.ceil(0.95 * len(latencies)) - 1],
        "p99_s": latencies[math.ceil(0.99 * len(latencies)) - 1],
        "storage_nbytes": int(storage_nbytes) if told else None,
        "cpu_s": cpu_s,
        "stored_nbytes": stored_nbytes,
        "decoded_chunks": int(decoded) if trial.driver.startswith("chunkwise") else None,
        "page_cache": pagecache.verdict(
            int(share * stored_nbytes), int(storage_nbytes) if told else None
        )
        if trial.page_cache == "cold"
        else "uncontrolled",
        "peak_rss_nbytes": environment.peak_rss_nbytes(),
        "actual_cache_nslots": nslots,
        "actual_cache_nbytes": nbytes,
        "actual_cache_w0": w0,
        "checksums": result["checksums"] if comparable else {},
        "environment": {**environment.describe(), **versions},
    }


def _spent() -> tuple[float, float, float]:
    """Processor seconds, bytes from storage and chunks decoded by this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    decoded = _native.cache_stats()["decoded"]
    return used.ru_utime + used.ru_stime, pagecache.storage_nbytes() or 0, decoded


def main() -> None:
    """Serve one trial."""
    trial = Trial.from_json(json.load(sys.stdin))
    # Should the parent be gone, nobody else ends a read that takes hours.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, trial.timeout_s + 5.0)
    try:
        values = measure(trial)
    except ChunkwiseError as wrong:
        values = {"status": "failed", "error": str(wrong)}
    except (OSError, MemoryError, KeyError, RuntimeError) as wrong:
        where = f"{trial.file}, {trial.dataset}"
        values = {"status": "failed", "error": f"{where}: {hdf5_reason(wrong)}"}
    json.dump(values, sys.stdout)


if __name__ == "__main__":
    main()
