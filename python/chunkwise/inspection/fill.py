"""Which fill value does a dataset have, and when is it written?"""

from __future__ import annotations

from typing import Any, Final

import h5py
import numpy as np
from h5py import h5d, h5p, h5t

from chunkwise.files.stored import read_fill
from chunkwise.names import HDF5_ERRORS, decode_name

# A value longer than this tells a reader nothing more: compounds may have a thousand members.
_LONGEST: Final = 100
# A fill value lies in the object header, whose messages have a 16-bit size.
_LARGEST_NBYTES: Final = 1 << 16
_FILL_TIMES: Final = {
    h5d.FILL_TIME_ALLOC: "alloc",
    h5d.FILL_TIME_NEVER: "never",
    h5d.FILL_TIME_IFSET: "if set",
}
_ALLOCATION_TIMES: Final = {
    h5d.ALLOC_TIME_DEFAULT: "default",
    h5d.ALLOC_TIME_EARLY: "early",
    h5d.ALLOC_TIME_LATE: "late",
    h5d.ALLOC_TIME_INCR: "incremental",
}


def fill_value(dcpl: h5p.PropDCID, datatype: h5t.TypeID) -> str:
    """Say the fill value (H5Pfill_value_defined, H5Pget_fill_value)."""
    try:
        defined = dcpl.fill_value_defined()
        if defined == h5d.FILL_VALUE_UNDEFINED:
            return "undefined"
        if defined == h5d.FILL_VALUE_DEFAULT:
            return "default"
        dtype = datatype.dtype
        if dtype.subdtype is not None or dtype.itemsize > _LARGEST_NBYTES:
            # NumPy merges an array type into the array's own shape, and h5py loses it.
            return "set"
        value = np.zeros(1, dtype)
        read_fill(dcpl, datatype, value)
    except HDF5_ERRORS:
        return "set"
    return in_words(value[0], dtype)


def in_words(value: Any, dtype: np.dtype[Any]) -> str:
    """Say a fill value that is set."""
    words = _words(value, dtype)
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."


def fill_time(dcpl: h5p.PropDCID) -> str:
    """Say when the fill value is written (H5Pget_fill_time): ``never``, ``alloc``, ``if set``."""
    return _FILL_TIMES[dcpl.get_fill_time()]


def allocation_time(dcpl: h5p.PropDCID) -> str:
    """Say when space is allocated (H5Pget_alloc_time): ``early``, ``late``, ``incremental``."""
    return _ALLOCATION_TIMES[dcpl.get_alloc_time()]


def _words(value: Any, dtype: np.dtype[Any]) -> str:
    if dtype.names is not None:
        members = (f"{name}: {_words(value[name], dtype[name])}" for name in dtype.names)
        return "{" + ", ".join(members) + "}"
    if dtype.subdtype is not None:
        return (
            "["
            + ", ".join(_words(each, dtype.subdtype[0]) for each in value.flat[:_LONGEST])
            + "]"
        )
    if isinstance(value, bytes):
        return f"'{decode_name(bytes(value))}'"
    if dtype.kind == "V":
        return f"0x{value.tobytes().hex()}"
    if dtype.kind == "O":
        return "set"
    names = h5py.check_enum_dtype(dtype) or {}
    return next((name for name, number in names.items() if number == value), str(value))
