"""May HDF5 be asked for a fill value, and what is it?

h5py frees memory twice that a fill value of variable length leads to, unless it is a string by
itself: the process ends, then or later.
"""

from __future__ import annotations

from typing import Any

from h5py import h5d, h5p, h5t

from chunkwise.files.opening import has_variable_length


def can_be_had(dcpl: h5p.PropDCID, datatype: h5t.TypeID) -> bool:
    """Tell whether h5py gives the fill value without harm to the process."""
    if dcpl.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
        return True
    return isinstance(datatype, h5t.TypeStringID) or not has_variable_length(datatype)


def read_fill(dcpl: h5p.PropDCID, datatype: h5t.TypeID, value: Any) -> None:
    """Fill an array with the fill value (H5Pget_fill_value)."""
    if not can_be_had(dcpl, datatype):
        raise TypeError("a fill value that holds what is of variable length cannot be had")
    dcpl.get_fill_value(value)
