"""How do zarr and xarray get the attributes of an object?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5a

from chunkwise.files.objects import HDF5_ERRORS, decode_name

# What HDF5's dimension scales and netCDF-4 keep for themselves.
_OWN: Final = frozenset(
    (
        *("CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST"),
        *("_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"),
    )
)
FILL: Final = "_FillValue"
DIMENSIONS: Final = "_ARRAY_DIMENSIONS"


def attributes_of(identifier: Any) -> tuple[dict[str, Any], list[str]]:
    """Give an object's attributes as JSON takes them, and the names of those that are left out.

    Left out are references, compounds, complex numbers and what HDF5 cannot read.  What netCDF-4
    and dimension scales keep for themselves is in neither.
    """
    found: dict[str, Any] = {}
    lost: list[str] = []
    attributes = h5py.AttributeManager(_Holder(identifier))
    for name in _names(identifier):
        if name in _OWN:
            continue
        try:
            name.encode("utf-8")
            found[name] = _plain(attributes[name])
        except (*HDF5_ERRORS, UnicodeError):
            lost.append(name)
    return found, lost


class _Holder:
    """What h5py asks for attributes."""

    def __init__(self, identifier: Any) -> None:
        self.id = identifier


def _names(identifier: Any) -> Iterator[str]:
    for number in range(h5a.get_num_attrs(identifier)):
        yield decode_name(h5a.open(identifier, index=number).name)


def _plain(value: Any) -> Any:
    """Return an attribute's value in the types of JSON."""
    if isinstance(value, h5py.Empty):
        return ""
    array = np.asarray(value)
    if array.dtype.names is not None or array.dtype.kind in "cV":
        raise TypeError(f"an attribute of type {array.dtype}")
    values = [_scalar(one) for one in array.reshape(-1).tolist()]
    if array.ndim == 0 or array.size == 1:
        return values[0]
    if array.ndim == 1:
        return values
    return np.array(values, object).reshape(array.shape).tolist()


def _scalar(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, bool | int | float):
        return value
    raise TypeError(f"an attribute of type {type(value).__name__}")
