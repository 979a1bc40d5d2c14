"""How do the readers work whose loops are compiled?"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from chunkwise import _native
from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline
from chunkwise.model.readers import NETCDF_C
from chunkwise.trials.readers import NATIVE, Cache, Look, Opened, library_of, netcdf_library
from chunkwise.trials.trial import Trial

if TYPE_CHECKING:
    from chunkwise._native import EngineWalkResult, WalkResult, WriteResult


_NO_CACHE: Final[Cache] = (None, None, None)


def read(trial: Trial) -> AbstractContextManager[Opened]:
    """Time H5Dread, nc_get_vara or chunkwise's engine alone, called in a loop in Rust."""
    return _netcdf(trial) if trial.reader == "netcdf4" else _open(trial)


@contextmanager
def _open(trial: Trial) -> Iterator[Opened]:
    library, by_engine = library_of(trial), trial.reader in NATIVE

    def opened() -> _native.OpenDataset:
        return _native.OpenDataset(library, trial.file, trial.dataset, trial.properties)

    if trial.reopen:

        def reopening(selections: _native.Walk, look: Look | None) -> EngineWalkResult:
            """Open the file for each read, in a loop in Rust."""
            file = (trial.file, trial.dataset, trial.properties)
            return _native.walk_reopened(
                library, *file, selections, trial.max_seconds, by_engine, look
            )

        yield Opened(
            reopening,
            lambda: _NO_CACHE if by_engine else opened().chunk_cache,
            library,
            watched=not by_engine,
        )
        return
    begun = time.perf_counter()
    dataset = opened()
    open_s = time.perf_counter() - begun

    def walk(selections: _native.Walk, look: Look | None) -> WalkResult:
        loop = dataset.engine_walk if by_engine else dataset.walk
        return loop(selections, selections.operations, trial.max_seconds, look)

    yield Opened(
        walk,
        lambda: _NO_CACHE if by_engine else dataset.chunk_cache,
        library,
        dataset.id,
        not by_engine,
        open_s=open_s,
    )


@contextmanager
def _netcdf(trial: Trial) -> Iterator[Opened]:
    _check_numbers(trial)
    library = _native.NetCdf(netcdf_library())
    below = _native.Library.from_path(library.path)
    variable = library.open(trial.file, trial.dataset, netcdf_cache(trial))

    def walk(selections: _native.Walk, look: Look | None) -> WalkResult:
        if look is not None:
            raise UsageError(
                "the netcdf4 reader's reads are compared by their checksums, not element by "
                "element; leave it out"
            )
        return variable.walk(selections, selections.operations, trial.max_seconds)

    # Of netCDF-3 there is no cache.
    cache = lambda: variable.chunk_cache or _NO_CACHE  # noqa: E731
    yield Opened(walk, cache, below, versions={"netcdf": library.version})


def write(trial: Trial, walk: _native.Walk, path: str) -> tuple[WriteResult, Cache]:
    """Time writing alone, called in a loop in Rust, to a dataset like the trial's."""
    pipeline, seconds = Pipeline.parse(trial.filters), trial.max_seconds
    result: WriteResult
    if trial.reader == "netcdf4":
        _check_numbers(trial)
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
            seconds,
            format=trial.format,
        )
        return result, result["chunk_cache"] or _NO_CACHE
    like = _native.OpenDataset(library_of(trial), trial.file, trial.dataset, trial.properties)
    given = (path, trial.dataset, elements(trial), walk, walk.operations, seconds)
    if trial.reader not in NATIVE:
        result = like.write_walk(*given)
        return result, result["chunk_cache"]
    result = like.engine_write_walk(*given, effort=pipeline.effort)
    # Where libhdf5 wrote in its place.
    return result, result.get("chunk_cache", _NO_CACHE)


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
    given = (trial.cache_nslots, trial.cache_nbytes, trial.cache_w0)
    if all(value is None for value in given):
        return None
    nslots, nbytes, w0 = given
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
