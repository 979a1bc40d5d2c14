"""Which file formats does netCDF-C write, and what can each of them hold?"""

from __future__ import annotations

from typing import Final

import numpy as np

# HDF5, as all other readers write it.
NETCDF4: Final = "netcdf4"
# Names in netCDF-C, and names in a table.
FORMATS: Final = {
    NETCDF4: "netCDF-4",
    "classic": "netCDF classic",
    "64bit-offset": "netCDF 64-bit offset",
    "64bit-data": "netCDF CDF-5",
}
# Types of netCDF-3 before CDF-5.
_FEW_TYPES: Final = frozenset({"i1", "i2", "i4", "f4", "f8"})
_ALL_TYPES: Final = _FEW_TYPES | {"i8", "u1", "u2", "u4", "u8"}


def is_netcdf3(format: str) -> bool:
    """Whether a format has neither groups nor chunks nor filters, and is big-endian."""
    return format != NETCDF4


def holds(format: str, dtype: str) -> bool:
    """Whether a format has numbers of this type (NumPy's name of it)."""
    try:
        name = np.dtype(dtype).str[1:]
    except TypeError:
        return False  # a compound, or another type that NumPy has no name for
    return name in (_ALL_TYPES if format in (NETCDF4, "64bit-data") else _FEW_TYPES)


def name_in(format: str, dataset: str) -> str:
    """Return what a dataset is called in a file of this format."""
    return "/" + dataset.rpartition("/")[2] if is_netcdf3(format) else dataset
