"""What is an HDF5 datatype called in a word or two, and which byte order has it?"""

from __future__ import annotations

from typing import Literal

from h5py import h5t

from chunkwise.names import decode_name
from chunkwise.words import counted

ByteOrder = Literal["little", "big", "vax", "mixed"]

# Sign, exponent and mantissa positions and sizes (H5Tget_fields) of IEEE 754, by size.
_IEEE_FIELDS = {
    2: (15, 10, 5, 0, 10),
    4: (31, 23, 8, 0, 23),
    8: (63, 52, 11, 0, 52),
    16: (127, 112, 15, 0, 112),
}
_ORDERS: dict[int, ByteOrder] = {h5t.ORDER_LE: "little", h5t.ORDER_BE: "big", h5t.ORDER_VAX: "vax"}
# H5T_COMPLEX, which h5py names from HDF5 2.0 on.
_COMPLEX = getattr(h5t, "COMPLEX", None)


def describe(datatype: h5t.TypeID) -> str:
    """Name a datatype as it is stored, without its byte order."""
    size = datatype.get_size()
    if isinstance(datatype, h5t.TypeEnumID):
        return _enum(datatype)
    if isinstance(datatype, h5t.TypeIntegerID):
        sign = "u" if datatype.get_sign() == h5t.SGN_NONE else ""
        return f"{sign}int{8 * size}{_bits_used(datatype)}"
    if isinstance(datatype, h5t.TypeFloatID):
        return _float(datatype)
    if isinstance(datatype, h5t.TypeBitfieldID):
        return f"bitfield{8 * size}"
    if isinstance(datatype, h5t.TypeStringID):
        return "string of variable length" if datatype.is_variable_str() else f"string({size})"
    if isinstance(datatype, h5t.TypeCompoundID):
        return _compound(datatype)
    if isinstance(datatype, h5t.TypeArrayID):
        shape = "x".join(map(str, datatype.get_array_dims()))
        return f"array({shape}) of {describe(datatype.get_super())}"
    if isinstance(datatype, h5t.TypeVlenID):
        return f"variable-length {describe(datatype.get_super())}"
    if isinstance(datatype, h5t.TypeOpaqueID):
        return f"opaque({size})"
    if isinstance(datatype, h5t.TypeReferenceID):
        return _reference(datatype)
    if datatype.get_class() == h5t.TIME:
        return f"time{8 * size}"
    if datatype.get_class() == _COMPLEX:
        return f"complex{8 * size}"
    return f"unknown type of {counted(size, 'byte')}"


def byte_order(datatype: h5t.TypeID) -> ByteOrder | None:
    """Return the order of the bytes in each number."""
    if isinstance(datatype, h5t.TypeCompoundID):
        members = range(datatype.get_nmembers())
        orders = {byte_order(datatype.get_member_type(i)) for i in members} - {None}
        return orders.pop() if len(orders) == 1 else ("mixed" if orders else None)
    if isinstance(datatype, h5t.TypeEnumID | h5t.TypeArrayID | h5t.TypeVlenID):
        return byte_order(datatype.get_super())
    if datatype.get_class() == _COMPLEX:
        return byte_order(datatype.get_super())
    numeric = h5t.TypeIntegerID | h5t.TypeFloatID | h5t.TypeBitfieldID
    if not isinstance(datatype, numeric) or datatype.get_size() == 1:
        return None
    return _ORDERS.get(datatype.get_order())


def _bits_used(datatype: h5t.TypeID) -> str:
    precision = datatype.get_precision()
    return "" if precision == 8 * datatype.get_size() else f" ({precision} bits used)"


def _float(datatype: h5t.TypeFloatID) -> str:
    size = datatype.get_size()
    fields = datatype.get_fields()
    name = f"float{8 * size}"
    if fields == _IEEE_FIELDS.get(size):
        return name
    # bfloat16, the 80-bit long double of x86, and the like.
    return f"{name} ({fields[2]}-bit exponent, {fields[4]}-bit mantissa)"


def _enum(datatype: h5t.TypeEnumID) -> str:
    base = describe(datatype.get_super())
    count = datatype.get_nmembers()
    names = {datatype.get_member_name(i) for i in range(count)}
    if names == {b"FALSE", b"TRUE"}:
        return "bool"
    return f"enum {base} of {counted(count, 'name')}"


def _compound(datatype: h5t.TypeCompoundID) -> str:
    members = [
        (decode_name(datatype.get_member_name(i)), datatype.get_member_type(i))
        for i in range(datatype.get_nmembers())
    ]
    names = [name for name, _ in members]
    kinds = [kind for _, kind in members]
    # How h5py and most others write complex numbers.
    if names == ["r", "i"] and isinstance(kinds[0], h5t.TypeFloatID) and kinds[0].equal(kinds[1]):
        return f"complex{8 * datatype.get_size()}"
    return "compound{" + ", ".join(f"{name}: {describe(kind)}" for name, kind in members) + "}"


def _reference(datatype: h5t.TypeReferenceID) -> str:
    if datatype.equal(h5t.STD_REF_OBJ):
        return "object reference"
    if datatype.equal(h5t.STD_REF_DSETREG):
        return "region reference"
    return "reference"
