"""How long do xarray's users wait for an engine: when they open, and when they read?"""

from __future__ import annotations

import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from chunkwise_lab.peers.task import CannotReadError, Sample, Task


def _xarray(engine: str) -> Any:
    # Something of a file that netCDF-C wrote is no matter of an engine's.
    warnings.simplefilter("ignore")
    try:
        import dask.array  # noqa: F401
        import xarray as xr
    except ImportError as wrong:
        raise CannotReadError(f"not installed: {wrong.name}") from None
    if engine not in xr.backends.list_engines():
        raise CannotReadError(f"xarray has no engine {engine!r} here")
    return xr


def mean(engine: str, file: str, dataset: str, steps: int) -> Task:
    """Open, and take the mean over the first dimension by Dask's threads, so many steps a task."""
    xr = _xarray(engine)
    import dask

    def measure() -> Sample:
        begun = time.perf_counter()
        with (
            dask.config.set(scheduler="threads"),
            xr.open_dataset(file, engine=engine) as opened,
        ):
            field = opened[dataset]
            field = field.chunk({field.dims[0]: steps})
            means = field.mean(field.dims[0]).values
            elapsed = time.perf_counter() - begun
            return Sample(elapsed, means)

    yield measure


def here_and_there(engine: str, file: str, dataset: str, neighbours: int) -> Task:
    """Open, read three time series, then so many neighbouring points of one map, each alone."""
    xr = _xarray(engine)

    def measure() -> Sample:
        begun = time.perf_counter()
        with xr.open_dataset(file, engine=engine) as opened:
            field = opened[dataset]
            steps, rows, columns = field.shape
            series = [field[:, rows // n, columns // n].values for n in (2, 3, 4)]
            values = [
                field[steps // 2, at // 40 % rows, at % 40 % columns].values
                for at in range(min(neighbours, rows * columns))
            ]
        elapsed = time.perf_counter() - begun
        return Sample(elapsed, np.concatenate([*series, np.array(values)]))

    yield measure


def opening(engine: str, folder: str, count: int) -> Task:
    """Open files one after another, each with a few coordinates and fields; seconds for each."""
    xr = _xarray(engine)
    paths = sorted(Path(folder).glob("*.nc"))[:count]

    def measure() -> Sample:
        found = []
        begun = time.perf_counter()
        for path in paths:
            with xr.open_dataset(path, engine=engine) as opened:
                found.append(str(sorted(opened.sizes.items())))
        elapsed = time.perf_counter() - begun
        return Sample(elapsed / len(paths), zlib.crc32("".join(found).encode()))

    yield measure


def many(engine: str, folder: str, nested: bool = False) -> Task:
    """Open all files of a folder as one dataset of Dask arrays; `nested`, as they are given."""
    xr = _xarray(engine)
    paths = sorted(Path(folder).glob("*.nc"))
    how: dict[str, Any] = {}
    if nested:
        how = {"combine": "nested", "concat_dim": "time", "compat": "override"}
        how |= {"coords": "minimal", "data_vars": "minimal"}

    def measure() -> Sample:
        begun = time.perf_counter()
        with xr.open_mfdataset(paths, engine=engine, **how) as opened:
            elapsed = time.perf_counter() - begun
            return Sample(elapsed, opened["time"].values.astype("i8"))

    yield measure
