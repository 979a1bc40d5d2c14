"""How do zarr and xarray get the attributes of an object?"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5a

from chunkwise.files.dimensions import HIDDEN
from chunkwise.files.objects import attribute_names
from chunkwise.names import HDF5_ERRORS, decode_name, hdf5_reason

NO_JSON: Final = "an attribute of a type that JSON has not"
FILL: Final = "_FillValue"
DIMENSIONS: Final = "_ARRAY_DIMENSIONS"


def attributes_of(identifier: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Give an object's attributes as JSON takes them, and why others are left out."""
    # Left out: references, compounds, complex numbers, unreadable ones, and netCDF-4's own.
    found: dict[str, Any] = {}
    lost: dict[str, str] = {}
    attributes = h5py.AttributeManager(SimpleNamespace(id=identifier))
    # Opening them by number sorts all of them, each time.
    for name in map(decode_name, attribute_names(identifier)):
        try:
            value = attributes[name]
        except HDF5_ERRORS as error:
            # A type that NumPy lacks is no damage.
            lacks = isinstance(error, TypeError | NotImplementedError)
            lost[name] = NO_JSON if lacks else f"HDF5 cannot read it ({hdf5_reason(error)})"
            continue
        if name in HIDDEN:
            continue
        try:
            name.encode("utf-8")
            found[name] = _plain(value)
        except (TypeError, ValueError):
            lost[name] = NO_JSON
    return found, lost


def wider(identifier: Any) -> str | None:
    """Say where xarray unpacks a variable to a wider type than of the file, or None."""
    # JSON keeps no number types, and xarray takes that of unpacked values from the attributes.
    try:
        stored = h5py.Dataset(identifier).dtype
        scale, offset = (_number_type(identifier, name) for name in ("scale_factor", "add_offset"))
    except HDF5_ERRORS:
        return None
    in_json = (
        None if one is None else np.dtype("f8" if one.kind == "f" else "i8")
        for one in (scale, offset)
    )
    file, references = _unpacked(stored, scale, offset), _unpacked(stored, *in_json)
    if file == references:
        return None
    return f"xarray unpacks it to {references}, and of the file itself to {file}"


def _number_type(identifier: Any, name: str) -> np.dtype[Any] | None:
    if not h5a.exists(identifier, name.encode()):
        return None
    dtype = np.asarray(h5py.AttributeManager(SimpleNamespace(id=identifier))[name]).dtype
    return dtype if dtype.kind in "iuf" else None


def _unpacked(
    stored: np.dtype[Any], scale: np.dtype[Any] | None, offset: np.dtype[Any] | None
) -> np.dtype[Any] | None:
    """Choose a type as xarray does (``_choose_float_dtype``)."""
    if offset is None:
        return scale
    packed_long = stored.kind in "iu" and stored.itemsize == 4
    if scale is None or scale != offset or scale.kind != "f" or packed_long:
        return np.dtype("f8")
    return scale


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
