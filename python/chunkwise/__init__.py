"""Measure, explain and fix slow HDF5 and netCDF-4 input and output.

>>> import chunkwise
>>> with chunkwise.open("file.nc") as f:          # doctest: +SKIP
...     field = f["group/temperature"][0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunkwise._lazy import attach
from chunkwise._native import __version__, cache_clear, cache_stats
from chunkwise.errors import ChunkwiseError

# Imported now, because the module of the same name would otherwise replace it.
from chunkwise.settings import Settings, read_environment, settings
from chunkwise.workers import watch

if TYPE_CHECKING:
    from chunkwise import dask as dask
    from chunkwise import errors as errors
    from chunkwise import parallel as parallel
    from chunkwise import xarray as xarray
    from chunkwise.advice.api import advise
    from chunkwise.card import view
    from chunkwise.dataset import Dataset
    from chunkwise.file import File, open, wrap
    from chunkwise.fixing.api import fix
    from chunkwise.group import Group
    from chunkwise.indexing.api import index
    from chunkwise.inspection.inspection import inspect
    from chunkwise.inspection.many import list_many
    from chunkwise.joined import Joined, open_many
    from chunkwise.measure.api import bench
    from chunkwise.patching import patch_h5py, patch_stats, unpatch_h5py
    from chunkwise.repacking import plan_repack, repack
    from chunkwise.selection import Hyperslab, Points, Selection, Union, hyperslab, points, union
    from chunkwise.verifying.api import verify

__all__ = [
    "ChunkwiseError",
    "Dataset",
    "File",
    "Group",
    "Hyperslab",
    "Joined",
    "Points",
    "Selection",
    "Settings",
    "Union",
    "__version__",
    "advise",
    "bench",
    "cache_clear",
    "cache_stats",
    "fix",
    "hyperslab",
    "index",
    "inspect",
    "list_many",
    "open",
    "open_many",
    "patch_h5py",
    "patch_stats",
    "plan_repack",
    "points",
    "repack",
    "settings",
    "union",
    "unpatch_h5py",
    "verify",
    "view",
    "wrap",
]

# Names are imported when first used: a worker of `bench` may load another libhdf5 than h5py's.
_LATER = {
    name: f"chunkwise.{module}"
    for module, names in {
        "advice.api": ("advise",),
        "card": ("view",),
        "measure.api": ("bench",),
        # The module of files, which says to datasets and groups how theirs is made.
        "file": ("Dataset", "File", "Group", "open", "wrap"),
        "fixing.api": ("fix",),
        "indexing.api": ("index",),
        "inspection.inspection": ("inspect",),
        "inspection.many": ("list_many",),
        "joined": ("Joined", "open_many"),
        "patching": ("patch_h5py", "patch_stats", "unpatch_h5py"),
        "repacking": ("plan_repack", "repack"),
        "selection": ("Hyperslab", "Points", "Selection", "Union", "hyperslab", "points", "union"),
        "verifying.api": ("verify",),
    }.items()
    for name in names
}


read_environment()
watch()

__getattr__, __dir__ = attach(__name__, _LATER, ("dask", "errors", "parallel", "xarray"))
