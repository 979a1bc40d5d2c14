"""How long does it take to write a dataset of Dask arrays, by a cluster of two workers?"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import h5py

from chunkwise_lab.peers.task import Task, imported, made_anew

WORKERS: Final = 2
NAME: Final = "t"


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
