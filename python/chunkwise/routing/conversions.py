"""Which types does NumPy convert exactly as libhdf5 does?

Where both only copy, swap bytes, widen, or let the processor convert, they agree bit for
bit; libhdf5 clips where NumPy wraps around, and its own routines for foreign floats treat
NaNs in their own way, so that the rest is left to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
DType = np.dtype[Any]

_FLOAT32_MAX = float(np.finfo(np.float32).max)


def identical(one: DType, other: DType) -> bool:
    """Whether two types are the same to h5py, which keeps enums and encodings in metadata."""
    if one is other:
        return True
    if one != other or (one.metadata or {}) != (other.metadata or {}):
        return False
    if one.subdtype is not None and other.subdtype is not None:
        return identical(one.base, other.base)
    if one.fields is not None and other.fields is not None:
        fields = other.fields
        return all(identical(field[0], fields[name][0]) for name, field in one.fields.items())
    return True


def exact(stored: DType, wanted: DType) -> bool:
    """Whether `convert` gives what libhdf5 gives: between numbers, or of some fields."""
    if stored.fields is not None:
        fields = stored.fields
        # h5py refuses a type without any.
        return (
            wanted.fields is not None
            and len(wanted.fields) > 0
            and all(
                name in fields and identical(fields[name][0], field[0])
                for name, field in wanted.fields.items()
            )
        )
    if not (_plain(stored) and _plain(wanted)):
        return False
    if stored == wanted.newbyteorder(stored.byteorder):
        return True
    if wanted.kind in "iu":
        return stored.kind in "iu" and np.can_cast(stored, wanted, "safe")
    # Of foreign byte order libhdf5 converts by its own routines, else by the processor.
    return stored.isnative and wanted.isnative


def convert(elements: Array, into: Array) -> bool:
    """Convert elements, of types that are `exact`.

    Parameters
    ----------
    elements : ndarray
        As they are stored.
    into : ndarray
        Of the same shape and the wanted type.

    Returns
    -------
    bool
        False, and nothing is converted, where a number beyond the largest float32, which
        libhdf5 makes infinite, might be rounded to that.
    """
    if into.dtype.names is not None:
        for name in into.dtype.names:
            into[name] = elements[name]
        return True
    if elements.dtype.kind == "f" and into.itemsize < elements.itemsize:
        beyond = elements[np.abs(elements) > _FLOAT32_MAX]
        if np.isfinite(beyond).any():
            return False
    # NaNs that signal set the flag, here as in libhdf5.
    with np.errstate(all="ignore"):
        np.copyto(into, elements, casting="unsafe")
    return True


def _plain(dtype: DType) -> bool:
    """Whether these are the processor's numbers, without the meaning that h5py may add."""
    if dtype.metadata:
        return False
    return dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize in (4, 8))
