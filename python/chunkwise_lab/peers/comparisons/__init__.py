"""What is compared: a group of comparisons a module.

Each gives its comparisons one after another, and makes the files of one before it gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from chunkwise_lab.peers.comparisons import (
    columns,
    dasks,
    filters,
    indexes,
    memory,
    opening,
    patched,
    remotes,
    repacking,
    roi,
    running,
    selections,
    small,
    unions,
    virtuals,
    whole,
    writing,
    xarrays,
)
from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison

Group = Callable[[Store], Iterator[Comparison]]

GROUPS: Final[dict[str, Group]] = {
    "cube": whole.cube,
    "cris": whole.cris,
    "unions": unions.unions,
    "columns": columns.columns,
    "rows": columns.rows,
    "selections": selections.selections,
    "points": selections.single_points,
    "filters": filters.filters,
    "roi": roi.roi,
    "virtual": virtuals.virtual,
    "small": small.small,
    "memory": memory.memory,
    "write": writing.writing,
    "repack": repacking.repacking,
    "dask": dasks.dask,
    "patched": patched.patched,
    "xarray": xarrays.xarray,
    "opening": opening.opening,
    "run": running.run,
    "index": indexes.indexes,
    "remote": remotes.remote,
}
