"""Measure, explain and fix slow HDF5 and netCDF-4 input and output.

>>> import chunkwise
>>> with chunkwise.open("file.nc") as f:          # doctest: +SKIP
...     field = f["group/temperature"][0]
"""

from chunkwise._native import __version__, cache_stats, thread_count
from chunkwise.dataset import Dataset, wrap
from chunkwise.errors import ChunkwiseError
from chunkwise.file import File, Group, open
from chunkwise.selection import Selection, Union, hyperslab, union

__all__ = [
    "ChunkwiseError",
    "Dataset",
    "File",
    "Group",
    "Selection",
    "Union",
    "__version__",
    "cache_stats",
    "hyperslab",
    "open",
    "thread_count",
    "union",
    "wrap",
]
