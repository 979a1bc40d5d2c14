"""Which bytes go into the checksum of values?

Those that say what the values are, and nothing about how they are stored.  Numbers are
little-endian.  The fields of a compound follow each other.  A value of variable length follows its
length.  References become the paths to which they lead.
"""

from __future__ import annotations

from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise.files.references import Paths
from chunkwise.names import encode_name

Array = npt.NDArray[Any]

# Elements whose bytes are of different lengths count as if they had this many.
VARIABLE_NBYTES: Final = 16


def is_exact(dtype: np.dtype[Any]) -> bool:
    """Return whether NumPy holds all bits of such an element, and no others."""
    # A long double has bytes that mean nothing.
    if dtype.subdtype is not None:
        return is_exact(dtype.subdtype[0])
    if dtype.names is not None:
        return all(is_exact(dtype[name]) for name in dtype.names)
    return not (dtype.kind == "f" and dtype.itemsize > 8) and not (
        dtype.kind == "c" and dtype.itemsize > 16
    )


def packed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Give the type without room between fields, its numbers little-endian."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((packed(base), shape))
    if dtype.names is not None:
        return np.dtype([(name, packed(dtype[name])) for name in dtype.names])
    return dtype.newbyteorder("<")


def element_nbytes(dtype: np.dtype[Any]) -> int:
    """Return the bytes of an element for cutting values into tiles."""
    return VARIABLE_NBYTES if dtype.hasobject else packed(dtype).itemsize


def canonical(values: Array, paths: Paths) -> bytes | memoryview:
    """Give the bytes of some values, in row-major order."""
    if not values.dtype.hasobject:
        made = np.ascontiguousarray(values, packed(values.dtype))
        # Also of an array without elements, and of types that have no buffer.
        return made.reshape(-1).view(np.uint8).data if made.nbytes else b""
    parts: list[bytes] = []
    for value in values.reshape(-1):
        _append(value, values.dtype, parts, paths)
    return b"".join(parts)


def _append(value: Any, dtype: np.dtype[Any], parts: list[bytes], paths: Paths) -> None:
    """Add one element's bytes."""
    if dtype.subdtype is not None:
        base, _ = dtype.subdtype
        for one in np.asarray(value, base).reshape(-1):
            _append(one, base, parts, paths)
    elif dtype.names is not None:
        for name in dtype.names:
            _append(value[name], dtype[name], parts, paths)
    elif not dtype.hasobject:
        parts.append(bytes(canonical(np.asarray(value, dtype), paths)))
    elif isinstance(value, h5py.Reference | h5py.RegionReference):
        # A path; for a region, with its selection.
        meaning = paths.meaning(value)
        said = meaning if isinstance(meaning, str) else "" if meaning is None else repr(meaning)
        _sized(encode_name(said), parts)
    elif isinstance(value, np.ndarray):
        parts.append(len(value).to_bytes(8, "little"))
        parts.append(bytes(canonical(value, paths)))
    else:
        # A null string is read as an empty one, and an unset sequence as 0.
        raw = value if isinstance(value, bytes) else encode_name(value or "")
        _sized(raw, parts)


def _sized(raw: bytes, parts: list[bytes]) -> None:
    parts.append(len(raw).to_bytes(8, "little"))
    parts.append(raw)
