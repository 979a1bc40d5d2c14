"""Which bytes go into the checksum of values?  What the values are, not how they are stored.

Numbers are little-endian, fields follow each other, a value of variable length follows its
length, and references become the paths to which they lead.
"""

from __future__ import annotations

from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5t

from chunkwise.files.references import Paths
from chunkwise.names import decode_name, encode_name

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


_COMPLEX = getattr(h5t, "COMPLEX", None)
_CHARACTERS = {h5t.CSET_ASCII: "ASCII", h5t.CSET_UTF8: "UTF-8"}
_PADDING = {
    h5t.STR_NULLTERM: "null-terminated",
    h5t.STR_NULLPAD: "null-padded",
    h5t.STR_SPACEPAD: "space-padded",
}
# Sign, exponent and mantissa positions and sizes (H5Tget_fields) of IEEE 754, by bytes.
_IEEE = {2: (15, 10, 5, 0, 10), 4: (31, 23, 8, 0, 23), 8: (63, 52, 11, 0, 52)}


def type_text(datatype: Any) -> str:
    """Say what a type is: ``float32``, ``compound{time: int64, flag: uint8}``."""
    bits = 8 * datatype.get_size()
    if isinstance(datatype, h5t.TypeEnumID):
        members = (
            f"{decode_name(datatype.get_member_name(i))}={datatype.get_member_value(i)}"
            for i in range(datatype.get_nmembers())
        )
        return f"enum({type_text(datatype.get_super())}){{{', '.join(members)}}}"
    if isinstance(datatype, h5t.TypeIntegerID):
        sign = "u" if datatype.get_sign() == h5t.SGN_NONE else ""
        return f"{sign}int{bits}{_bits_used(datatype, bits)}"
    if isinstance(datatype, h5t.TypeFloatID):
        layout = tuple(map(int, datatype.get_fields()))
        stated = "" if _IEEE.get(bits // 8) == layout else f"{layout}".replace(" ", "")
        return f"float{bits}{stated}"
    if isinstance(datatype, h5t.TypeBitfieldID):
        return f"bitfield{bits}{_bits_used(datatype, bits)}"
    if isinstance(datatype, h5t.TypeStringID):
        characters = _CHARACTERS.get(datatype.get_cset(), "another character set")
        if datatype.is_variable_str():
            return f"string({characters})"
        padding = _PADDING.get(datatype.get_strpad(), "otherwise padded")
        return f"string({bits // 8} bytes, {characters}, {padding})"
    if isinstance(datatype, h5t.TypeCompoundID):
        fields = (
            f"{decode_name(datatype.get_member_name(i))}: {type_text(datatype.get_member_type(i))}"
            for i in range(datatype.get_nmembers())
        )
        return f"compound{{{', '.join(fields)}}}"
    if isinstance(datatype, h5t.TypeArrayID):
        lengths = ", ".join(map(str, datatype.get_array_dims()))
        return f"array({lengths}) of {type_text(datatype.get_super())}"
    if isinstance(datatype, h5t.TypeVlenID):
        return f"sequence of {type_text(datatype.get_super())}"
    if isinstance(datatype, h5t.TypeOpaqueID):
        return f"opaque({bits // 8} bytes, {decode_name(datatype.get_tag())})"
    if isinstance(datatype, h5t.TypeReferenceID):
        return f"reference{'' if datatype.equal(h5t.STD_REF_OBJ) else ' to a region'}"
    if _COMPLEX is not None and datatype.get_class() == _COMPLEX:
        return f"complex{bits}"
    return f"type of class {datatype.get_class()}, {bits // 8} bytes"


def _bits_used(datatype: Any, bits: int) -> str:
    if not hasattr(datatype, "get_precision"):
        # h5py does not ask it of bit fields.
        return ""
    used, at = datatype.get_precision(), datatype.get_offset()
    return "" if (used, at) == (bits, 0) else f"(bits {at} to {at + used - 1})"
