"""Which attributes of netCDF-4 are a user's, and how is their text decoded?"""

from __future__ import annotations

import warnings
from typing import Any, Final

# Those that say how netCDF is kept in HDF5.
HIDDEN: Final = frozenset(
    {
        *("REFERENCE_LIST", "CLASS", "DIMENSION_LIST", "NAME"),
        *("_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"),
    }
)


def decoded(value: Any, name: str, where: str) -> Any:
    """The value of an attribute for xarray: bytes are text, but for those that stand for data."""
    if not isinstance(value, bytes) or name in ("_FillValue", "missing_value"):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        warnings.warn(
            f"'utf-8' codec can't decode bytes for attribute {name!r} of h5netcdf "
            f"object {where!r}, returning bytes undecoded.",
            UnicodeWarning,
            stacklevel=2,
        )
        return value
