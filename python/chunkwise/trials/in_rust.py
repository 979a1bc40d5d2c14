"""How do the readers work whose loops are compiled?"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chunkwise import _native
from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline
from chunkwise.model.readers import NETCDF_C
from chunkwise.trials.readers import Cache, Look, Opened, library_of, netcdf_library
from chunkwise.trials.trial import Trial

if TYPE_CHECKING:
    from chunkwise._native import EngineWalkResult, WalkResult


def open_libhdf5(trial: Trial) -> AbstractContextManager[Opened]:
    """Time H5Dread alone, called in a loop in Rust."""
    return _open(trial, by_engine=False)


def open_chunkwise(trial: Trial) -> AbstractContextManager[Opened]:
    """Time chunkwise's engine, called in a loop in Rust."""
    return _open(trial, by_engine=True)


@contextmanager
def _open(trial: Trial, *, by_engine: bool) -> Iterator[Opened]:
    library = library_of(trial)
    if trial.reopen:
        yield _reopened(trial, library, by_engine=by_engine)
        return
    dataset, open_s = _opened(trial, library)

    def walk(selections: _native.Walk, look: Look | None) -> WalkResult:
        loop = dataset.engine_walk if by_engine else dataset.walk
        return loop(selections, selections.operations, trial.max_seconds, look)

    def cache() -> Cache:
        return (None, None, None) if by_engine else dataset.chunk_cache

    yield Opened(walk, cache, library, dataset.id, not by_engine, open_s=open_s)


def _opened(trial: Trial, library: _native.Library) -> tuple[_native.OpenDataset, float]:
    """Open a trial's dataset, and say how many seconds that took."""
    begun = time.perf_counter()
    dataset = _native.OpenDataset(library, trial.file, trial.dataset, trial.properties)
    return dataset, time.perf_counter() - begun


def _reopened(trial: Trial, library: _native.Library, *, by_engine: bool) -> Opened:
    """Open the file for each read, in a loop in Rust."""

    def walk(selections: _native.Walk, look: Look | None) -> EngineWalkResult:
        return _native.walk_reopened(
            library,
            trial.file,
            trial.dataset,
            trial.properties,
            selections,
            trial.max_seconds,
            by_engine,
            look,
        )

    def cache() -> Cache:
        return (None, None, None) if by_engine else _opened(trial, library)[0].chunk_cache

    return Opened(walk, cache, library, watched=not by_engine)


def write_libhdf5(
    trial: Trial, walk: _native.Walk, path: str
) -> tuple[_native.WriteResult, Cache]:
    """Time H5Dwrite alone, called in a loop in Rust, to a dataset like the trial's."""
    library = library_of(trial)
    like = _native.OpenDataset(library, trial.file, trial.dataset, trial.properties)
    result = like.write_walk(
        path, trial.dataset, elements(trial), walk, walk.operations, trial.max_seconds
    )
    return result, result["chunk_cache"]


def write_chunkwise(
    trial: Trial, walk: _native.Walk, path: str
) -> tuple[_native.EngineWriteResult, Cache]:
    """Time chunkwise's engine, called in a loop in Rust, to a dataset like the trial's."""
    library = library_of(trial)
    like = _native.OpenDataset(library, trial.file, trial.dataset, trial.properties)
    operations, seconds = walk.operations, trial.max_seconds
    effort = Pipeline.parse(trial.filters).effort
    result = like.engine_write_walk(
        path, trial.dataset, elements(trial), walk, operations, seconds, effort=effort
    )
    # Where libhdf5 wrote in its place.
    return result, result.get("chunk_cache", (None, None, None))


@contextmanager
def open_netcdf4(trial: Trial) -> Iterator[Opened]:
    """Time nc_get_vara alone, called in a loop in Rust through the netCDF-C found here."""
    _check_numbers(trial)
    library = _native.NetCdf(netcdf_library())
    cache = netcdf_cache(trial)
    below = _native.Library.from_path(library.path)
    variable = library.open(trial.file, trial.dataset, cache)

    def walk(selections: _native.Walk, look: Look | None) -> WalkResult:
        if look is not None:
            raise UsageError(
                "the netcdf4 reader's reads are compared by their checksums, not element by "
                "element; leave it out"
            )
        return variable.walk(selections, selections.operations, trial.max_seconds)

    def in_force() -> Cache:
        # None for netCDF-3.
        return variable.chunk_cache or (None, None, None)

    yield Opened(walk, in_force, below, versions={"netcdf": library.version})


def write_netcdf4(
    trial: Trial, walk: _native.Walk, path: str
) -> tuple[_native.WriteResult, Cache]:
    """Time nc_put_vara alone, called in a loop in Rust, to a variable like the trial's."""
    _check_numbers(trial)
    pipeline = Pipeline.parse(trial.filters)
    result = _native.NetCdf(netcdf_library()).write_walk(
        path,
        trial.dataset,
        *netcdf_type(trial.dtype),
        trial.shape,
        trial.chunks,
        [(one.filter_id, one.cd_values) for one in pipeline.filters],
        netcdf_cache(trial),
        elements(trial, native=True),
        walk,
        walk.operations,
        trial.max_seconds,
        format=trial.format,
    )
    return result, result["chunk_cache"] or (None, None, None)


def netcdf_type(dtype: str) -> tuple[str, bool]:
    """Return a type as `_native.NetCdf` takes it: without byte order, and if it is big-endian."""
    found = np.dtype(dtype)
    big = found.byteorder == ">" if found.itemsize > 1 else sys.byteorder == "big"
    return found.str[1:], big


def _check_numbers(trial: Trial) -> None:
    """Raise UsageError for elements that netCDF-C does not know as numbers."""
    try:
        dtype = np.dtype(trial.dtype)
    except TypeError:
        dtype = np.dtype("V1")  # a compound, or another type that NumPy has no name for
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise UsageError(
            f"netCDF-C reads and writes numbers of up to 64 bits, and {trial.dataset} holds "
            f"{trial.dtype}; leave the netcdf4 reader out"
        )


def netcdf_cache(trial: Trial) -> tuple[int, int, float] | None:
    """Complete the cache that a trial asks for by netCDF-C's own; None if it asks not."""
    asked = (trial.cache_nslots, trial.cache_nbytes, trial.cache_w0)
    if all(value is None for value in asked):
        return None
    nslots, nbytes, w0 = asked
    return (
        int(NETCDF_C.nslots or 0) if nslots is None else nslots,
        NETCDF_C.cache_nbytes if nbytes is None else nbytes,
        float(NETCDF_C.w0 or 0.0) if w0 is None else w0,
    )


def elements(trial: Trial, native: bool = False) -> npt.NDArray[np.uint8]:
    """Return the bytes of all elements that a trial writes, or is checked against, in C order."""
    if trial.data is None:
        raise UsageError(f"{trial.dataset}: its elements are not known")
    if native and not trial.native_order:
        return as_numbers(trial.data, trial.dtype)
    return np.memmap(trial.data, np.uint8, "r")


def as_numbers(data: str, dtype: str) -> npt.NDArray[np.uint8]:
    """Return the bytes of all elements of a file, in this machine's byte order."""
    stored = np.memmap(data, np.dtype(dtype), "r")
    return stored.astype(stored.dtype.newbyteorder("="), copy=False).view(np.uint8)
