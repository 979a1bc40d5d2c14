"""Opening: what a file costs before the first value is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chunkwise_lab.peers.comparisons.xarrays import ENGINES
from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.objects import write_cells, write_groups, write_small
from chunkwise_lab.peers.spec import Comparison, Reader, Target, alike

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
    yield from _objects(store)


def _objects(store: Store) -> Iterator[Comparison]:
    """Objects of files, found all, by reference, or each once; and a row of a small file."""
    few = store.small
    groups = store.once("groups-30000.h5", lambda at: write_groups(at, 50 if few else 30_000, 0))
    yield Comparison(
        "opening-inspect-groups",
        "opening",
        "`inspect` of a file of 30,000 groups (processor time)",
        (Reader("chunkwise", "objects:command", {"words": ["inspect", "--quiet", str(groups)]}),),
        (Target(1),),
        repeat=3,
    )
    folder = store.once("small-2700", lambda at: write_small(at, 5 if few else 2_700))
    yield Comparison(
        "opening-inspect-folder",
        "opening",
        "`inspect` of 2,700 small files, beside `verify`, which reads everything (processor time)",
        tuple(
            Reader(name, "objects:command", {"words": [command, str(folder)]})
            for name, command in (("chunkwise", "inspect"), ("verify", "verify"))
        ),
        (Target(1, "verify"),),
        repeat=3,
    )
    cells = store.once("cells-5000.h5", lambda at: write_cells(at, 20 if few else 5_000))
    pairs = store.once("groups-4000.h5", lambda at: write_groups(at, 20 if few else 4_000, 2))
    for name, title, task, path in (
        ("reference", "`f[reference][()]` of 5,000 cells", "by_reference", cells),
        ("once", "4,000 groups of two small arrays, each read once", "once", pairs),
        (
            "row",
            "a small file opened, and a row read (seconds a file)",
            "row",
            folder / "00000.h5",
        ),
    ):
        yield Comparison(
            f"opening-{name}",
            "opening",
            title,
            alike(f"objects:{task}", ("h5py", "chunkwise"), {"file": str(path)}),
            (Target(1, "h5py"),),
        )
