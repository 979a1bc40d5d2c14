"""How is a dataset made whose partial chunks are stored without filters?  h5py cannot."""

from __future__ import annotations

import ctypes
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

DONT_FILTER_PARTIAL_CHUNKS = 2


def create(
    file: h5py.File,
    name: str,
    shape: tuple[int, ...],
    maxshape: tuple[int | None, ...],
    chunks: tuple[int, ...],
    dtype: np.dtype[Any],
    filters: tuple[str, ...],
) -> h5py.Dataset:
    """Make one with filters of `shuffle`, `deflate`, `lzf` and `fletcher32`."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(chunks)
    libhdf5 = ctypes.CDLL(h5py.h5p.__file__)
    libhdf5.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
    assert libhdf5.H5Pset_chunk_opts(dcpl.id, DONT_FILTER_PARTIAL_CHUNKS) >= 0
    for one in filters:
        {
            "shuffle": dcpl.set_shuffle,
            "deflate": lambda: dcpl.set_deflate(1),
            "fletcher32": dcpl.set_fletcher32,
            "lzf": lambda: dcpl.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL),
        }[one]()
    most = tuple(h5s.UNLIMITED if size is None else size for size in maxshape)
    space = h5s.create_simple(shape, most)
    made = h5d.create(file.id, name.encode(), h5t.py_create(dtype), space, dcpl)
    return h5py.Dataset(made)
