"""How do values get into the index itself that zarr cannot read in the file?"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5d

from chunkwise.errors import ChunkwiseError
from chunkwise.file import wrap
from chunkwise.files.leading import External
from chunkwise.indexing.arrays import (
    UnfitError,
    Variable,
    array_of,
    as_json,
    dtype_of,
    stated_fill,
)
from chunkwise.inspection.collect import extent_of
from chunkwise.names import HDF5_ERRORS

# Less than this is not worth a codec.
_COMPRESSED_FROM: Final = 1024
_LEVEL: Final = 4


def inlined(
    path: str,
    dataset: h5d.DatasetID,
    stated: Any,  # The attribute ``_FillValue``; None without
    most_nbytes: int,
    shown: tuple[int, ...],  # Its shape in netCDF, which may be longer than its own
    reason: str,
    external: External = "folder",
) -> Variable:
    """Read a dataset, and give an array that has its values in the index."""
    shape, _ = extent_of(dataset.get_space())
    if shape is None:
        raise UnfitError(reason)
    text = h5py.check_string_dtype(dataset.dtype)
    dtype = dtype_of(dataset)
    varies = text is not None and text.length is None
    if dtype is None and not varies:
        raise UnfitError(reason)
    elements = int(np.prod(shown, dtype=object))
    nbytes = elements * (1 if dtype is None else dtype.itemsize)
    if nbytes > most_nbytes:
        raise UnfitError(_too_large(reason, nbytes))
    try:
        found = np.asarray(wrap(h5py.Dataset(dataset), external=external)[()])
    except (ChunkwiseError, *HDF5_ERRORS) as error:
        raise UnfitError(f"it cannot be read ({error})") from None
    if shown != shape:
        found = _longer(found, dataset, stated, shown)
    chunk = [max(length, 1) for length in shown]
    if dtype is None:
        content = _texts(found)
        if len(content) > most_nbytes:
            raise UnfitError(_too_large(reason, len(content)))
        array = array_of(shown, chunk, "|O", [{"id": "vlen-utf8"}], None)
    else:
        content = found.astype(dtype, copy=False).tobytes()
        fill = stated_fill(dtype, stated)
        array = array_of(shown, chunk, dtype, [], None if fill is None else as_json(fill))
    if not elements:
        return Variable(path, array)
    if len(content) >= _COMPRESSED_FROM:
        content = zlib.compress(content, _LEVEL)
        array["compressor"] = {"id": "zlib", "level": _LEVEL}
    return Variable(path, array, inlined={".".join("0" * len(shown)) or "0": content})


def _longer(found: Any, dataset: h5d.DatasetID, stated: Any, shown: tuple[int, ...]) -> Any:
    """Give what netCDF shows of a dataset whose unlimited dimensions others have made longer."""
    fill = stated_fill(found.dtype, stated)
    made = np.zeros(shown, found.dtype)
    if fill is not None:
        made[...] = fill
    elif found.dtype.kind != "O":
        value = np.zeros((), found.dtype)
        dataset.get_create_plist().get_fill_value(value)
        made[...] = value
    else:
        made[...] = ""
    made[tuple(map(slice, found.shape))] = found
    return made


def _texts(found: Any) -> bytes:
    """Encode texts as numcodecs' ``vlen-utf8`` does."""
    parts = [struct.pack("<I", found.size)]
    for one in found.reshape(-1).tolist():
        raw = one.encode("utf-8", "surrogateescape") if isinstance(one, str) else bytes(one or b"")
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            raise UnfitError("it has texts that are no UTF-8, which zarr cannot read") from None
        parts += [struct.pack("<I", len(raw)), raw]
    return b"".join(parts)


def _too_large(reason: str, nbytes: int) -> str:
    return f"{reason}; --inline {nbytes} puts its values into the index"
