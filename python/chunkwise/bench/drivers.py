"""Who does the reading, and what exactly is timed?

A driver walks blocks over an open dataset and times each read, and nothing else.
``libhdf5``, ``netcdf4`` and ``chunkwise`` loop in Rust around H5Dread, netCDF-C's
nc_get_vara and this project's engine: compare these with each other.  ``h5py`` and
``chunkwise-py`` loop in Python around ``d[...]``, as a user's program does:
compare these two with each other.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import numpy.typing as npt

import chunkwise
from chunkwise import _lib, _native
from chunkwise.advise.readers import NETCDF_C
from chunkwise.bench.trial import Trial
from chunkwise.bench.unions import read_by_chunkwise, read_by_h5py, union_of
from chunkwise.errors import UsageError

if TYPE_CHECKING:
    from chunkwise._native import WalkResult

Reader = Callable[[Any], npt.NDArray[Any]]
Driver = Callable[[h5py.Dataset, _native.Walk, Trial], "WalkResult"]

# Latencies kept for each trial; the contract of `_native.WalkResult`.
KEPT_LATENCIES = 100_000
# A loop in Python always does so many, because the first read pays for chunks that
# the next may find cached, unless they take this many times what was allowed.
FEWEST_OPERATIONS = 3
PATIENCE = 4.0


def libhdf5(dataset: h5py.Dataset, walk: _native.Walk, trial: Trial) -> WalkResult:
    """Time H5Dread alone, called in a loop in Rust through the libhdf5 that h5py uses."""
    datatype = dataset.id.get_type()
    return _native.walk_libhdf5(
        _lib.library(),
        dataset.id.id,
        datatype.id,
        datatype.get_size(),
        walk,
        walk.operations,
        trial.max_seconds,
    )


def netcdf4(dataset: h5py.Dataset, walk: _native.Walk, trial: Trial) -> WalkResult:
    """Time nc_get_vara alone, called in a loop in Rust through the netCDF-C found here.

    It has a libhdf5 of its own; h5py's has the file open, but reads nothing of it.

    Raises
    ------
    UsageError
        netCDF-C is not installed, or the elements are not numbers, which netCDF-C may
        crash on.
    """
    if dataset.dtype.kind not in "iuf" or dataset.dtype.itemsize > 8:
        raise UsageError(
            f"netCDF-C reads numbers of up to 64 bits, and {dataset.name} holds {dataset.dtype}; "
            "leave the netcdf4 driver out"
        )
    asked = (trial.cache_nslots, trial.cache_nbytes, trial.cache_w0)
    cache = None
    if any(value is not None for value in asked):
        usual = (NETCDF_C.nslots, NETCDF_C.cache_nbytes, NETCDF_C.w0)
        nslots, nbytes, w0 = (
            default if value is None else value
            for value, default in zip(asked, usual, strict=True)
        )
        cache = (int(nslots or 0), int(nbytes or 0), float(w0 or 0.0))
    library = _native.NetCdf(netcdf_library())
    return library.walk(
        dataset.file.filename, dataset.name, cache, walk, walk.operations, trial.max_seconds
    )


def netcdf_library() -> str:
    """Find netCDF-C: netCDF4-python's, or the system's.

    Raises
    ------
    UsageError
        There is none.
    """
    package = importlib.util.find_spec("netCDF4")
    if package is not None and package.origin is not None:
        beside = Path(package.origin).parents[1] / "netcdf4.libs"
        found = sorted(beside.glob("libnetcdf-*.so*"))
        if found:
            return str(found[0])
    name = ctypes.util.find_library("netcdf")
    if name is None:
        raise UsageError("the netcdf4 driver needs netCDF-C: pip install netCDF4")
    return name


def rust_loop(dataset: h5py.Dataset, walk: _native.Walk, trial: Trial) -> WalkResult:
    """Time chunkwise's engine, called in a loop in Rust."""
    wrapped = chunkwise.wrap(dataset)
    # Binding libhdf5 happens once a process, as importing does; the chunk index is loaded
    # for each dataset, and by the other drivers within their first read.
    _lib.library()
    begun = time.perf_counter()
    wrapped.prepare()
    index_s = time.perf_counter() - begun
    result: WalkResult = wrapped.walk(walk, walk.operations, trial.max_seconds)
    result["latencies_s"][0] += index_s
    result["elapsed_s"] += index_s
    return result


def h5py_loop(dataset: h5py.Dataset, walk: _native.Walk, trial: Trial) -> WalkResult:
    """Time ``d[slices]`` of h5py, called in a loop in Python."""
    return walk_in_python(partial(read_by_h5py, dataset), walk, trial.max_seconds)


def python_loop(dataset: h5py.Dataset, walk: _native.Walk, trial: Trial) -> WalkResult:
    """Time ``d[slices]`` of chunkwise, called in a loop in Python."""
    wrapped = chunkwise.wrap(dataset)
    return walk_in_python(partial(read_by_chunkwise, wrapped), walk, trial.max_seconds)


DRIVERS: dict[str, Driver] = {
    "libhdf5": libhdf5,
    "netcdf4": netcdf4,
    "h5py": h5py_loop,
    "chunkwise": rust_loop,
    "chunkwise-py": python_loop,
}
# The drivers that libhdf5's chunk cache concerns.
WITH_LIBRARY_CACHE = frozenset({"libhdf5", "h5py", "netcdf4"})
# The drivers whose loop is compiled, with no Python inside the timed region.
COMPILED = frozenset({"libhdf5", "netcdf4", "chunkwise"})


def slices(hyperslab: _native.Hyperslab) -> tuple[slice, ...]:
    """Write a hyperslab as NumPy's index: single blocks, or single elements with a stride."""
    return tuple(
        slice(start, start + block) if count == 1 else slice(start, start + count * stride, stride)
        for start, stride, count, block in zip(*hyperslab, strict=True)
    )


def check_driver(name: str) -> str:
    """Return the driver's name, or raise UsageError with the names there are."""
    if name not in DRIVERS:
        raise UsageError(f"unknown driver '{name}': choose from {', '.join(DRIVERS)}")
    return name


def walk_in_python(
    read: Reader,
    walk: _native.Walk,
    max_seconds: float,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> WalkResult:
    """Read an array selection by selection from Python, timing each read alone.

    Parameters
    ----------
    read : callable
        Takes a tuple of slices, or a union, returns the array.
    walk : chunkwise._native.Walk
        What is read, in which order.
    max_seconds : float
        Stop when the timed reads reach this, or the loop as a whole three times
        this: slicing and checksums, which are not timed, must end as well.
    clock : callable
        Nanoseconds since some moment.

    Returns
    -------
    WalkResult
        As a walk in Rust gives it.
    """
    latencies: list[float] = []
    checksums: dict[int, int] = {}
    crc = nbytes = spent_ns = operations = 0
    limit_ns = int(max_seconds * 1e9)
    begun_ns = clock()
    for number in range(walk.operations):
        one = walk[number]
        selection = slices(one) if isinstance(one, tuple) else union_of(one)
        start = clock()
        array = read(selection)
        lap = clock() - start
        spent_ns += lap
        operations += 1
        if len(latencies) < KEPT_LATENCIES:
            latencies.append(lap / 1e9)
        nbytes += array.nbytes
        crc = _native.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8), crc)
        if operations & (operations - 1) == 0:
            checksums[operations] = crc
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
        "checksums": checksums,
    }
