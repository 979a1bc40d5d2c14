"""Opening: what a file costs before the first value is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chunkwise_lab.peers.comparisons.xarrays import ENGINES
from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison, Target, alike

# Variables of a file, and files that are opened one after another.
FILES: Final = ((31, 20), (1200, 2))
MANY: Final = 200


def opening(store: Store) -> Iterator[Comparison]:
    """Files of many variables, each opened by xarray; and many files at once."""
    for variables, files in FILES:
        count = 2 if store.small else files
        folder = str(store.variables(min(variables, 40) if store.small else variables, count))
        yield Comparison(
            f"opening-{variables}",
            "opening",
            f"a file of {variables:,} variables, each with attributes, opened by xarray "
            "(seconds a file)",
            alike("xarrays:opening", ENGINES, {"folder": folder, "count": count}, "engine"),
            (Target(2, "netcdf4"),),
            repeat=3,
        )
    count = 3 if store.small else MANY
    yield Comparison(
        "opening-many",
        "opening",
        f"open_mfdataset of {count} files of 31 variables, nested, coords minimal",
        alike("xarrays:nested", ENGINES, {"folder": str(store.variables(31, count))}, "engine"),
        (Target(2, "netcdf4"),),
        repeat=3,
    )
