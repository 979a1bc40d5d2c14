"""Which line opens a dataset with a chunk cache that holds the chunks that a walk needs again?"""

from __future__ import annotations

from typing import Final

from chunkwise.measure.target import Target
from chunkwise.model import in_c
from chunkwise.model.chunk_cache import hash_slots
from chunkwise.model.remedies import larger_cache
from chunkwise.names import python_text

_MIB: Final = 1 << 20


def cache_line(target: Target, held: int, reader: str) -> str:
    """Return the line for a cache for so many chunks, in the language of a reader."""
    nbytes = cache_nbytes(target, held)
    if reader == "netcdf4":
        return netcdf_with(target, nbytes, hash_slots(held))
    return open_with(target.file, nbytes, held)


def cache_in_c(target: Target, held: int) -> str:
    """Return the lines of C for a cache for so many chunks."""
    nbytes = cache_nbytes(target, held)
    return in_c.with_cache(target.file, target.dataset, nbytes, hash_slots(held))


def cache_nbytes(target: Target, held: int) -> int:
    """Return the bytes of so many chunks, in whole MiB."""
    return whole_mib(held * target.chunk_nbytes)


def netcdf_with(target: Target, nbytes: int, nslots: int) -> str:
    """Return the line for netCDF4-python, or C if netCDF has no such name."""
    fixes = larger_cache(target.file, target.dataset, nbytes, nslots)
    return next(fix.text for fix in fixes if fix.tool in ("netCDF4", "C"))


def open_with(file: str, nbytes: int, held: int | None = None) -> str:
    """Return the line for h5py, with slots if the number of held chunks is known."""
    # libhdf5 keeps one chunk for each slot of its hash table.
    slots = "" if held is None else f", rdcc_nslots={hash_slots(held)}"
    return f"h5py.File({python_text(file)}, rdcc_nbytes={nbytes >> 20} * 2**20{slots})"


def whole_mib(nbytes: int) -> int:
    """Round bytes up to whole MiB."""
    return -(-nbytes // _MIB) * _MIB
