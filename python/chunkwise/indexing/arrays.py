"""What does ``.zarray`` (zarr version 2) say about a dataset, its type and its fill value?"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5d, h5t

from chunkwise import _native
from chunkwise.files.stored import read_fill
from chunkwise.indexing.codecs import Codec

DType = np.dtype[Any]

_NUMBERS: Final = {"i": 8, "u": 8, "f": 8, "c": 16}


class UnfitError(Exception):
    """A dataset that zarr cannot read, with the reason."""


@dataclass(frozen=True)
class Variable:
    """One array of zarr's."""

    path: str  # Its path, without a slash at the beginning
    array: dict[str, Any]  # What ``.zarray`` says
    listing: _native.ChunkListing | None = None  # Where its chunks lie; None without chunks
    # Of a contiguous dataset: keys, addresses and bytes.
    pieces: tuple[tuple[str, int, int], ...] = ()
    # Chunks whose bytes are in the index itself, by their keys.
    inlined: dict[str, bytes] = field(default_factory=dict)
    # The shape that the listing numbers chunks of; the array's may be longer.
    written: tuple[int, ...] = ()

    @property
    def chunks(self) -> int:
        """How many chunks it refers to."""
        return len(self.pieces) if self.listing is None else self.listing.written


def dtype_of(dataset: h5d.DatasetID) -> DType | None:
    """Return the type by which zarr reads a dataset's bytes; None if it has none."""
    try:
        dtype = np.dtype(dataset.dtype)
    except (TypeError, ValueError):
        return None
    stored = dataset.get_type()
    if dtype.itemsize != stored.get_size() or dtype.hasobject or dtype.subdtype is not None:
        return None
    if dtype.kind in "Sb":
        return cast("DType", dtype)
    if dtype.kind not in _NUMBERS or dtype.itemsize > _NUMBERS[dtype.kind]:
        return None
    plain: DType = np.dtype(dtype.str)
    if isinstance(stored, h5t.TypeEnumID):
        stored = stored.get_super()
    return plain if h5t.py_create(plain).equal(stored) else None


def array_of(
    shape: Sequence[int],
    chunk: Sequence[int],
    dtype: DType | str,
    codecs: Sequence[Codec],
    fill_value: Any,
) -> dict[str, Any]:
    """Make what ``.zarray`` says.  `codecs` are in the order in which they were applied."""
    return {
        "zarr_format": 2,
        "shape": list(shape),
        "chunks": list(chunk),
        "dtype": dtype if isinstance(dtype, str) else dtype.str,
        "order": "C",
        "filters": list(codecs) or None,
        "compressor": None,
        "fill_value": fill_value,
    }


def fill_of(dataset: h5d.DatasetID, stated: Any, missing: bool) -> Any:
    """Return the fill value of an array, as ``.zarray`` states it."""
    # To xarray, a fill value is a missing value.  So it is stated where the attribute
    # ``_FillValue`` states it (`stated`), or where chunks are `missing` that have another value
    # than 0, which zarr takes if nothing is stated.
    dtype = np.dtype(dataset.dtype)
    known = stated_fill(dtype, stated)
    if not missing:
        return None if known is None else as_json(known)
    dcpl = dataset.get_create_plist()
    value = np.zeros((), dtype)
    if dcpl.fill_value_defined() == h5d.FILL_VALUE_UNDEFINED:
        return None if known is None else as_json(known)
    read_fill(dcpl, dataset.get_type(), value)
    if known is not None:
        if known.tobytes() != value.tobytes():
            raise UnfitError(
                "some of its chunks were never written, and are read as another value than "
                "its _FillValue"
            )
        return as_json(known)
    return None if value.tobytes().count(0) == value.nbytes else as_json(value)


def stated_fill(dtype: DType, stated: Any) -> npt.NDArray[Any] | None:
    """Return the attribute ``_FillValue`` as an element of an array; None if it is none."""
    if stated is None or isinstance(stated, h5py.Empty):
        return None
    try:
        value = np.asarray(stated).reshape(-1)
        if value.size != 1 or (value.dtype.kind in "OU") != (dtype.kind == "S"):
            if value.size != 1:
                return None
            made: npt.NDArray[Any] = value.astype(dtype, casting="same_kind")
        else:
            text = value[0].encode("utf-8") if isinstance(value[0], str) else value[0]
            made = np.array([text], dtype)
    except (TypeError, ValueError, UnicodeError):
        return None
    return made.reshape(())


def as_json(value: npt.NDArray[Any]) -> Any:
    """Write an element as zarr version 2 does."""
    if value.dtype.kind == "S":
        return base64.standard_b64encode(value.tobytes()).decode("ascii")
    if value.dtype.kind == "c":
        return [_number(float(value.real)), _number(float(value.imag))]
    return _number(value.item())


def _number(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
