"""How long does it take to write an array into a new file, until it is on storage?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

import chunkwise
from chunkwise.grammar import Pipeline
from chunkwise_lab.peers.task import Task, imported, made_anew

NAME: Final = "x"
Values = npt.NDArray[Any]


def lines(
    writer: str,
    file: str,
    dataset: str,
    target: str,
    chunk: tuple[int, ...],
    filters: str,
    count: int,
    cache_nbytes: int,
    keep: bool = False,
) -> Task:
    """Make a file, write `count` lines of its second dimension at a time, close and sync it."""
    with chunkwise.open(file) as opened:
        found: Any = opened[dataset]
        data = found.read()
    write: Callable[..., str | None] = {"libhdf5": _libhdf5, "chunkwise": _chunkwise}[writer]

    def made() -> dict[str, str | None]:
        return {"encoder": write(target, data, tuple(chunk), filters, count, cache_nbytes)}

    yield lambda: made_anew(Path(target), NAME, made, keep)


def _libhdf5(
    target: str, data: Values, chunk: tuple[int, ...], filters: str, count: int, nbytes: int
) -> None:
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk(chunk)
    Pipeline.parse(filters).apply(dcpl)
    # Paper 000, section 4: a cache of 8.7 MB, 521 slots, and fully written chunks leave first.
    with h5py.File(target, "w", rdcc_nbytes=nbytes, rdcc_nslots=521, rdcc_w0=1.0) as file:
        made = file.create_dataset(NAME, data.shape, data.dtype, dcpl=dcpl)
        _slabs(made, data, count)


def _chunkwise(
    target: str, data: Values, chunk: tuple[int, ...], filters: str, count: int, _nbytes: int
) -> str | None:
    with chunkwise.open(target, "w") as file:
        made = file.create_dataset(NAME, data.shape, data.dtype, chunks=chunk, filters=filters)
        _slabs(made, data, count)
        # In words, once there was a chunk to choose it by.
        return made.explain_write()["encoder"]


def _slabs(dataset: Any, data: Values, count: int) -> None:
    for first in range(0, data.shape[1], count):
        part = np.s_[:, first : first + count]
        dataset[part] = data[part]


WORKERS: Final = 2


def to_netcdf(
    writer: str,
    file: str,
    dataset: str,
    target: str,
    chunk: tuple[int, ...],
    steps: int,
    effort: str = "as-stated",
) -> Task:
    """Write with shuffle and deflate 4, as ``xarray`` does or as ``chunkwise`` does."""
    da, xr, distributed = map(imported, ("dask.array", "xarray", "distributed"))
    import chunkwise.xarray

    chunk = tuple(chunk)
    with (
        distributed.LocalCluster(
            processes=True, n_workers=WORKERS, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        h5py.File(file) as opened,
    ):
        shape, dtype = opened[dataset].shape, opened[dataset].dtype
        lengths = tuple(min(steps, shape[0] - at) for at in range(0, shape[0], steps))

        def block(block_info: Any = None) -> Any:
            (begin, end), *_ = block_info[None]["array-location"]
            with h5py.File(file) as source:
                return source[dataset][begin:end]

        values = da.map_blocks(block, chunks=(lengths, *shape[1:]), dtype=dtype)
        data = xr.Dataset({NAME: (("time", "y", "x"), values)})
        stored = {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": chunk}
        encoding = {NAME: stored}

        def write() -> None:
            if writer == "xarray":
                data.to_netcdf(target, engine="netcdf4", encoding=encoding)
            else:
                how: Any = effort
                chunkwise.xarray.to_netcdf(
                    data, target, engine="netcdf4", encoding=encoding, effort=how, client=client
                )

        yield lambda: made_anew(Path(target), NAME, write)
