"""How long do xarray's users wait for an engine: when they open, and when they read?"""

from __future__ import annotations

import json
import tempfile
import time
import warnings
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from chunkwise_lab.peers.task import CannotReadError, Sample, Task, imported, timed


def _xarray(engine: str) -> Any:
    # Something of a file that netCDF-C wrote is no matter of an engine's.
    warnings.simplefilter("ignore")
    xr = imported("xarray", "dask.array")
    if engine not in xr.backends.list_engines():
        raise CannotReadError(f"xarray has no engine {engine!r} here")
    return xr


def mean(engine: str, file: str, dataset: str, steps: int) -> Task:
    """Open, and take the mean over the first dimension by Dask, with this many steps a task."""
    xr = _xarray(engine)
    import dask

    def read() -> Any:
        with dask.config.set(scheduler="threads"), xr.open_dataset(file, engine=engine) as opened:
            field = opened[dataset]
            field = field.chunk({field.dims[0]: steps})
            return field.mean(field.dims[0]).values

    yield lambda: timed(read)


def here_and_there(engine: str, file: str, dataset: str, neighbours: int) -> Task:
    """Open, read three time series, then this many neighbouring points of one map, each alone."""
    xr = _xarray(engine)

    def read() -> Any:
        with xr.open_dataset(file, engine=engine) as opened:
            field = opened[dataset]
            steps, rows, columns = field.shape
            series = [field[:, rows // n, columns // n].values for n in (2, 3, 4)]
            values = [
                field[steps // 2, at // 40 % rows, at % 40 % columns].values
                for at in range(min(neighbours, rows * columns))
            ]
        return np.concatenate([*series, np.array(values)])

    yield lambda: timed(read)


def opening(engine: str, folder: str, count: int) -> Task:
    """Open files one after another, each with a few coordinates and fields; seconds for each."""
    xr = _xarray(engine)
    paths = sorted(Path(folder).glob("*.nc"))[:count]

    def open_all() -> int:
        found = []
        for path in paths:
            with xr.open_dataset(path, engine=engine) as opened:
                found.append(str(sorted(opened.sizes.items())))
        return zlib.crc32("".join(found).encode())

    yield lambda: timed(open_all, len(paths))


def many(engine: str, folder: str, nested: bool = False) -> Task:
    """Open all files of a folder as one dataset of Dask arrays; `nested`, as they are given."""
    xr = _xarray(engine)
    paths = sorted(Path(folder).glob("*.nc"))
    how: dict[str, Any] = {}
    if nested:
        how = {"combine": "nested", "concat_dim": "time", "compat": "override"}
        how |= {"coords": "minimal", "data_vars": "minimal"}

    def measure() -> Sample:
        sample = timed(lambda: xr.open_mfdataset(paths, engine=engine, **how))
        opened: Any = sample.data
        with opened:
            return replace(sample, data=opened["time"].values.astype("i8"))

    yield measure


def _chunkwise(file: str, target: Path) -> None:
    import chunkwise

    chunkwise.index(file, target)


def _kerchunk(file: str, target: Path) -> None:
    from kerchunk.hdf import SingleHdf5ToZarr

    # As the others do, without chunks' bytes.
    references = SingleHdf5ToZarr(file, inline_threshold=0).translate()
    if target.suffix == ".json":
        target.write_text(json.dumps(references))
    else:
        from kerchunk.df import refs_to_dataframe

        refs_to_dataframe(references, str(target))


def _virtualizarr(file: str, target: Path) -> None:
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_dataset
    from virtualizarr.parsers import HDFParser

    store = ObjectStoreRegistry({"file://": LocalStore()})
    dataset = open_virtual_dataset(
        Path(file).as_uri(), registry=store, parser=HDFParser(), loadable_variables=[]
    )
    form = "json" if target.suffix == ".json" else "parquet"
    dataset.vz.to_kerchunk(str(target), format=form)


_WRITERS = {"chunkwise": _chunkwise, "kerchunk": _kerchunk, "virtualizarr": _virtualizarr}


def references(writer: str, file: str, dataset: str, form: str) -> Task:
    """Write Kerchunk's references of a file, as one JSON file or as a folder of Parquet."""
    warnings.simplefilter("ignore")
    imported(writer, *(["fastparquet"] if form == "parquet" else []))
    with tempfile.TemporaryDirectory() as folder:

        def measure() -> Sample:
            target = Path(folder) / f"{time.monotonic_ns()}.{form}"
            took = timed(lambda: _WRITERS[writer](file, target)).value
            return Sample(took, _sum(target, dataset.strip("/")))

        yield measure


def _sum(target: Path, dataset: str) -> int:
    """Sum up where the chunks of the dataset are said to be, and how long they are."""
    found: Any
    if target.is_dir():
        import pandas as pd

        parts = [pd.read_parquet(part) for part in (target / dataset).glob("refs.*.parq")]
        return int(sum((7 * part["offset"] + part["size"]).sum() for part in parts))
    found = json.loads(target.read_bytes())
    found = found.get("refs", found)
    places = [
        place for key, place in found.items() if key.startswith(f"{dataset}/") and len(place) == 3
    ]
    return sum(7 * address + nbytes for _, address, nbytes in places)
