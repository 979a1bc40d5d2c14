"""Who reads the file, and what does that reader's chunk cache hold by default?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from chunkwise import _native
from chunkwise.model.readability import program


@dataclass(frozen=True, slots=True)
class Reader:
    """A program that reads HDF5, by the chunk cache that it gives each dataset."""

    name: str  # As in ``--for``; ``this process`` for the library loaded here
    title: str  # In words, for sentences
    cache_nbytes: int  # Bytes of unfiltered chunks that the cache holds
    # Slots of its hash table, each for one chunk; None if there is no such table.
    nslots: int | None
    # Preemption policy ``w0`` (H5Pset_cache); None if there is none.
    w0: float | None


# libhdf5's default preemption policy (H5Pset_cache), in every version.
DEFAULT_W0: Final = 0.75
LIBHDF5_1: Final = Reader("libhdf5-1.10", "libhdf5 before 2.0", 1 << 20, 521, DEFAULT_W0)
LIBHDF5_2: Final = Reader("libhdf5-2", "libhdf5 from 2.0", 8 << 20, 8191, DEFAULT_W0)
NETCDF_C: Final = Reader("netcdf-c", "netCDF-C", 64 << 20, 1000, DEFAULT_W0)
# Who keeps no chunk.
UNCACHED: Final = Reader("uncached", "a reader without a chunk cache", 0, 0, None)
# The readers that a file must serve well if nobody knows its readers.
LIBRARIES: Final = (LIBHDF5_1, LIBHDF5_2, NETCDF_C)
CHUNKWISE: Final = "chunkwise"


def reader(name: str) -> Reader:
    """Return the chunk cache of a program of `readability.PROGRAM_NAMES`."""
    # ``chunkwise`` has one cache without slots.  Undocumented programs have the libhdf5 here.
    if name == CHUNKWISE:
        budget = _native.cache_stats()["budget_nbytes"]
        return Reader(CHUNKWISE, CHUNKWISE, budget, None, None)
    for known in LIBRARIES:
        if known.name == name:
            return known
    title = program(name).title
    if name.startswith("libhdf5-1."):
        return replace(LIBHDF5_1, name=name, title=title.partition(",")[0])
    here = this_process()
    return replace(here, name=name, title=f"{title}, with the chunk cache of {here.title}")


def everyone() -> tuple[Reader, ...]:
    """Return each reader that a file may meet, this process's own library last."""
    # It is left out where it has the defaults of one that is there.
    here = this_process()
    defaults = {(each.cache_nbytes, each.nslots, each.w0) for each in LIBRARIES}
    own = () if (here.cache_nbytes, here.nslots, here.w0) in defaults else (here,)
    return LIBRARIES + own


@cache
def this_process() -> Reader:
    """Return h5py's libhdf5 with the defaults that it has itself (H5Pget_cache)."""
    import h5py
    from h5py import h5p

    _, nslots, nbytes, w0 = h5p.create(h5p.FILE_ACCESS).get_cache()
    return Reader("this process", f"HDF5 {h5py.version.hdf5_version} here", nbytes, nslots, w0)
