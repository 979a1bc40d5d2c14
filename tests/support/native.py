"""Functions of libhdf5 that h5py lacks, called in h5py's own libhdf5."""

import ctypes
import sys
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5f, h5p


def library() -> ctypes.CDLL:
    """H5py's own libhdf5."""
    # Windows looks only in the module itself, and knows the one that h5py has loaded by its name.
    return ctypes.CDLL("hdf5.dll" if sys.platform == "win32" else h5d.__file__)


def call(name: str, *arguments: Any) -> None:
    """Call one with arguments of ctypes."""
    function = getattr(library(), name)
    function.argtypes = [type(each) for each in arguments]
    assert function(*arguments) >= 0, name


def leave_partial_chunks_unfiltered(dcpl: Any) -> None:
    """Store chunks that reach beyond the dataset without filters."""
    dont_filter_partial_chunks = 2
    call("H5Pset_chunk_opts", ctypes.c_int64(dcpl.id), ctypes.c_uint(dont_filter_partial_chunks))


def undefine_fill(dcpl: Any, kind: Any) -> None:
    """Set no fill value at all."""
    call(
        "H5Pset_fill_value",
        ctypes.c_int64(dcpl.id),
        ctypes.c_int64(kind.id),
        ctypes.c_void_p(None),
    )


def keep_without_links(*objects: Any) -> None:
    """Count a link that is not there, so that an object outlives its last one."""
    for one in objects:
        call("H5Oincr_refcount", ctypes.c_int64(one.id.id))


def write_with_small_nodes(path: Any) -> None:
    """Write a dataset ``d``, whose index may have six chunks in a node: the superblock says so."""
    fcpl, fapl = h5p.create(h5p.FILE_CREATE), h5p.create(h5p.FILE_ACCESS)
    call("H5Pset_istore_k", ctypes.c_int64(fcpl.id), ctypes.c_uint(3))
    fapl.set_libver_bounds(h5f.LIBVER_EARLIEST, h5f.LIBVER_V110)
    with h5py.File(h5f.create(bytes(path), h5f.ACC_TRUNC, fcpl=fcpl, fapl=fapl)) as file:
        file.create_dataset("d", data=np.arange(40.0), chunks=(10,))
