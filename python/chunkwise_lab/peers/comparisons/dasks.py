"""Writing by a Dask cluster: a dataset of 526 MB, as xarray does it and as chunkwise does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target

FAST: Final = "chunkwise, effort fast"
OTHER: Final = "xarray"
# A chunk a step, as netCDF chooses it where time is unlimited.
SHAPE, CHUNK, STEPS = (365, 600, 600), (1, 600, 600), 15


def dask(store: Store) -> Iterator[Comparison]:
    """A year of a field, in 25 blocks."""
    data = store.sampled("cube", SHAPE, None, "none")
    chunk = tuple(map(min, CHUNK, data.shape))
    efforts = {OTHER: "as-stated", "chunkwise": "as-stated", FAST: "fast"}
    readers = tuple(
        Reader(
            name,
            "clusters:to_netcdf",
            {
                "writer": "xarray" if name == OTHER else "chunkwise",
                **data.arguments,
                "target": str(store.folder / f"dask-{name.replace(' ', '-')}.nc"),
                "chunk": chunk,
                "steps": STEPS,
                "effort": effort,
            },
        )
        for name, effort in efforts.items()
    )
    yield Comparison(
        "dask-to-netcdf",
        "dask",
        "cube 365x600x600, to_netcdf, shuffle + deflate 4, 2 workers of Dask",
        readers,
        (Target(3.5, OTHER), Target(6, OTHER, by=FAST)),
        repeat=5,
    )
