"""How does HDF5 get a combination?  As property lists, made once for each."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import h5py
from h5py import h5d, h5f, h5p, h5s

from chunkwise.errors import LibraryError
from chunkwise.grammar import Pipeline
from chunkwise_lab.studies.iotest.pattern import Geometry
from chunkwise_lab.studies.iotest.walk import Combination

if TYPE_CHECKING:
    from mpi4py import MPI

_CORE_INCREMENT = 64 << 20
# H5FD_MPIO_CHUNK_ONE_IO and H5D_MPIO_LINK_CHUNK.
_ONE_IO = 1
_LINK_CHUNK = 1


@dataclass(frozen=True)
class Lists:
    """What HDF5 gets for one combination."""

    access: Any  # Of the file
    transfer: Any
    links: Any
    creation: Any  # Of each dataset
    filters: Pipeline  # That they have


def lists(geometry: Geometry, filters: Pipeline, comm: MPI.Comm | None) -> Lists:
    """Make the property lists of a combination."""
    one = geometry.combination
    used = filters if takes_filters(one) else Pipeline()
    return Lists(access(one, comm), transfer(one, used), _links(), creation(geometry, used), used)


def takes_filters(one: Combination) -> bool:
    """Whether the library can write compressed chunks so: not of independent ranks."""
    return one.layout == "chunked" and one.io != "independent"


def uses_mpi(one: Combination) -> bool:
    """Whether the file is opened by MPI-IO."""
    return one.io not in ("posix", "core")


def access(one: Combination, comm: MPI.Comm | None) -> Any:
    """Return how the file is opened."""
    made = h5p.create(h5p.FILE_ACCESS)
    # As in h5py: a file is closed when the program says so.
    made.set_fclose_degree(h5f.CLOSE_STRONG)
    if one.io == "core":
        made.set_fapl_core(_CORE_INCREMENT, True)
    elif one.io == "posix":
        made.set_fapl_sec2()
    else:
        from mpi4py import MPI

        made.set_fapl_mpio(comm, MPI.INFO_NULL)
        collective_metadata(made)
    made.set_alignment(one.alignment_threshold, one.alignment_increment)
    made.set_meta_block_size(one.meta_block_size)
    low = h5f.LIBVER_EARLIEST if one.format == "earliest" else h5f.LIBVER_LATEST
    made.set_libver_bounds(low, h5f.LIBVER_LATEST)
    return made


def collective_metadata(plist: Any) -> None:
    """Make all ranks read and write metadata together."""
    for name in ("H5Pset_all_coll_metadata_ops", "H5Pset_coll_metadata_write"):
        call = getattr(_library(), name)
        call.argtypes, call.restype = (ctypes.c_int64, ctypes.c_bool), ctypes.c_int
        if call(plist.id, True) < 0:
            raise LibraryError(f"{name} failed: metadata cannot be written collectively here")


def linked(plist: Any) -> None:
    """Ask for all chunks of a call in one operation of MPI-IO (linked-chunk I/O)."""
    if _library().H5Pset_dxpl_mpio_chunk_opt(ctypes.c_int64(plist.id), _ONE_IO) < 0:
        raise LibraryError("H5Pset_dxpl_mpio_chunk_opt failed: linked chunks cannot be asked for")


def is_linked(plist: Any) -> bool:
    """Whether the last collective operation with this list was done so."""
    mode = ctypes.c_int(-1)
    call = _library().H5Pget_mpio_actual_chunk_opt_mode
    if call(ctypes.c_int64(plist.id), ctypes.byref(mode)) < 0:
        raise LibraryError(
            "H5Pget_mpio_actual_chunk_opt_mode failed: it is not known what was done"
        )
    return mode.value == _LINK_CHUNK


@cache
def _library() -> ctypes.CDLL:
    # A symbol is looked for in an extension module of h5py's, and then in what it is linked with.
    found = ctypes.CDLL(h5p.__file__)
    if not hasattr(found, "H5Pset_all_coll_metadata_ops"):
        raise LibraryError(
            f"h5py's HDF5 {h5py.version.hdf5_version} has no collective metadata: it needs 1.10"
        )
    return found


def transfer(one: Combination, filters: Pipeline) -> Any:
    """Return how data is written and read."""
    made = h5p.create(h5p.DATASET_XFER)
    if one.io == "collective" or (one.io == "mpi-io-uni" and filters.filters):
        made.set_dxpl_mpio(h5py.h5fd.MPIO_COLLECTIVE)
    elif uses_mpi(one):
        made.set_dxpl_mpio(h5py.h5fd.MPIO_INDEPENDENT)
    return made


def _links() -> Any:
    made = h5p.create(h5p.LINK_CREATE)
    made.set_create_intermediate_group(True)
    return made


def creation(geometry: Geometry, filters: Pipeline) -> Any:
    """Return how datasets are made."""
    fills = geometry.combination.fill == "true"
    fill = h5d.FILL_TIME_ALLOC if fills else h5d.FILL_TIME_NEVER
    if geometry.chunk is not None:
        return chunked(geometry.chunk, filters, fill)
    made = h5p.create(h5p.DATASET_CREATE)
    made.set_layout(h5d.CONTIGUOUS)
    made.set_fill_time(fill)
    return made


def chunked(
    chunk: tuple[int, ...], filters: Pipeline, fill: int | None = None, space: int | None = None
) -> Any:
    """Return how a dataset of chunks is made: when it is filled, and when it gets its space.

    By HDF5's own rule where that is None.
    """
    made = h5p.create(h5p.DATASET_CREATE)
    made.set_chunk(chunk)
    filters.apply(made)
    if fill is not None:
        made.set_fill_time(fill)
    if space is not None:
        made.set_alloc_time(space)
    return made


def space(geometry: Geometry) -> Any:
    """Return the dataspace of each dataset."""
    unlimited = geometry.unlimited
    most = tuple(h5s.UNLIMITED if n == unlimited else d for n, d in enumerate(geometry.shape))
    return h5s.create_simple(geometry.shape, most)
