"""Reading through xarray: engine="chunkwise" beside the engines that netCDF-4 files have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target, alike

ENGINES: Final = ("netcdf4", "h5netcdf", "chunkwise")
SHAPE, CHUNK = (365, 600, 600), (1, 600, 600)
FILES, NEIGHBOURS = 200, 1000


def xarray(store: Store) -> Iterator[Comparison]:
    """A large field by Dask and by indices; many small files."""
    data = store.netcdf(store.sampled("cube", SHAPE, CHUNK, "shuffle+deflate:4"))
    for steps, title in ((1, "a map"), (8, "eight maps")):
        yield Comparison(
            f"xarray-mean-{steps}",
            "xarray",
            f"cube 365x600x600, mean over time by threads of Dask, {title} a task",
            _readers("mean", {**data.arguments, "steps": steps}),
            (Target(3, "netcdf4"), Target(3, "h5netcdf")),
            note="with a map a task, most of the time is Dask's and NumPy's" if steps == 1 else "",
        )
    count = 20 if store.small else NEIGHBOURS
    yield Comparison(
        "xarray-here-and-there",
        "xarray",
        f"cube, three time series, then {count:,} neighbours of one map, an index each",
        _readers("here_and_there", {**data.arguments, "neighbours": count}),
        (Target(4, "netcdf4"), Target(4, "h5netcdf")),
        repeat=3,
    )
    files = 4 if store.small else FILES
    folder = str(store.series(files))
    yield Comparison(
        "xarray-open",
        "xarray",
        "a file of three coordinates and four fields opened (seconds a file)",
        _readers("opening", {"folder": folder, "count": min(files, 20)}),
        (Target(1, "h5netcdf"),),
    )
    yield Comparison(
        "xarray-open-many",
        "xarray",
        f"open_mfdataset of {files} such files",
        _readers("many", {"folder": folder}),
        (Target(1.5, "h5netcdf"),),
        repeat=3,
    )


def _readers(task: str, arguments: dict[str, Any]) -> tuple[Reader, ...]:
    return alike(f"xarrays:{task}", ENGINES, arguments, "engine")
