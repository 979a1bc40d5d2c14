"""Which datasets does the engine read, and why does libhdf5 read the others?  `Left` says why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5f, h5i

# For h5py's own datasets: binding a smaller one costs as much as h5py's read of it.
SMALLEST_NBYTES = 64 << 10

SMALL: Final = f"it is smaller than {SMALLEST_NBYTES >> 10} KiB"
WRITABLE: Final = "the file is open for writing"
CLOSED: Final = "its file is closed"
UNPATCHED: Final = "h5py is not patched any more"
# Conversions sort them, in the type that all who have the dataset open share.
REORDERED: Final = "libhdf5 may change the order of its members"


@dataclass(slots=True)
class Left:
    """A read that is left to libhdf5, and why."""

    why: str


OTHER_INDEX: Final = Left("an index that does not fit, or of another kind")
OTHER_TYPE: Final = Left("a conversion, a destination or an index that libhdf5 alone handles")
UNDECODED: Final = Left("a chunk that is left to libhdf5")


def why_not_bound(dataset: h5py.Dataset) -> str | None:
    """Return, cheaply, why a dataset of h5py's own is not worth binding, or cannot be."""
    if not dataset._readonly and h5i.get_file_id(dataset._id).get_intent() & h5f.ACC_RDWR:
        return WRITABLE
    shape = dataset.shape
    if shape is None or math.prod(shape) * dataset._id.get_type().get_size() < SMALLEST_NBYTES:
        return SMALL
    return None


def why_not_of_type(dtype: np.dtype[Any]) -> str | None:
    """Return why no dataset of this type is read by the engine."""
    return REORDERED if _is_reordered(dtype) else None


def _is_reordered(dtype: np.dtype[Any]) -> bool:
    """Whether a compound type, or one in it, names its members in another order than they lie."""
    members = list((dtype.base.fields or {}).values())
    offsets = [member[1] for member in members]
    return offsets != sorted(offsets) or any(_is_reordered(member[0]) for member in members)
