"""Programs that nobody can change: as they are, and under `chunkwise run`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target

OTHER: Final = "alone"
SHAPE, CHUNK = (365, 600, 600), (1, 600, 600)
# A program, the work, and how many times as fast it has to be.
WORK: Final = (
    ("c", "a C program reads all of it", 3.5),
    ("c_as_doubles", "a C program reads all of it as doubles", None),
    ("netcdf4", "netCDF4-python reads all of it, without masks", 3.5),
    ("netcdf4_masked", "netCDF4-python reads all of it, with masks", None),
    ("timmean", "cdo timmean", 1.7),
    ("tenth_rows", "ncks, every tenth row", None),
    ("to_netcdf", "xarray's to_netcdf by netCDF4-python, shuffle + deflate 4", 3.5),
)


def run(store: Store) -> Iterator[Comparison]:
    """The same program, alone and with chunkwise under its HDF5."""
    data = store.netcdf(store.sampled("cube", SHAPE, CHUNK, "shuffle+deflate:4"))
    for program, what, wanted in WORK:
        arguments: dict[str, Any] = {"program": program, **data.arguments}
        readers = tuple(
            Reader(
                name,
                "foreign:ran",
                {
                    **arguments,
                    "under": name != OTHER,
                    "target": str(store.folder / f"run-{program}-{name}.nc"),
                },
            )
            for name in (OTHER, "chunkwise")
        )
        yield Comparison(
            f"run-{program.replace('_', '-')}",
            "run",
            f"cube 365x600x600, {what}",
            readers,
            () if wanted is None else (Target(wanted, OTHER),),
        )
