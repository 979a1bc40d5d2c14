"""What is a type called in a manifest?

The name has everything that decides the values, in words that stay: a manifest is read years
later.  It leaves out a number's byte order and room between the fields of a compound, because
values are summed without either.
"""

from __future__ import annotations

from typing import Any

from h5py import h5t

from chunkwise.files.objects import decode_name

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
