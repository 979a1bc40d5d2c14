"""Which types does the engine convert exactly as libhdf5 does?

Special values depend on libhdf5's version and on the processor.  So before the first conversion
between two types, both convert such numbers; if one bit differs, libhdf5 converts.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import h5py
import numpy as np
from h5py import h5t

from chunkwise import _native
from chunkwise.names import HDF5_ERRORS

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
DType = np.dtype[Any]
# Where bytes begin in an element and in the result; how many, or between which types.
Part: TypeAlias = tuple[int, int, int | tuple[str, str]]


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


def is_enum(dtype: DType) -> bool:
    """Whether elements are numbers with names."""
    return h5py.check_enum_dtype(dtype) is not None


def memory_type(dtype: DType) -> h5t.TypeID:
    """The type of elements in memory, as h5py reads and writes them."""
    return h5t.py_create(dtype, logical=is_enum(dtype))


def parts_between(stored: DType, wanted: DType) -> list[Part] | None:
    """Return how elements of one type become elements of another, as libhdf5 converts them."""
    if stored.fields is None:
        return _parts(stored, wanted, (0, 0))
    fields, made = stored.fields, wanted.fields
    # h5py refuses a type without any.
    if not made or any(name not in fields for name in made):
        return None
    parts: list[Part] = []
    for name, field in made.items():
        found = _parts(fields[name][0], field[0], (fields[name][1], field[1]))
        if found is None:
            return None
        parts += found
    filled = 0
    for field in sorted(made.values(), key=lambda field: field[1]):
        if field[1] < filled:
            return None
        filled = field[1] + field[0].itemsize
    return parts


def text_of(file_type: h5t.TypeID, dtype: DType) -> str | None:
    """Name how text is stored that is not padded with zeros, as h5py reads it."""
    if not isinstance(file_type, h5t.TypeStringID) or file_type.is_variable_str():
        return None
    pad = file_type.get_strpad()
    if pad == h5t.STR_NULLPAD or dtype.kind != "S" or dtype.itemsize == 0:
        return None
    name = f"{' ' if pad == h5t.STR_SPACEPAD else '|'}S{dtype.itemsize}"
    same = _same_bytes((name, dtype.str), texts(dtype.itemsize), dtype, file_type)
    return name if same else None


def convert(elements: Array, into: Array) -> bool:
    """Convert elements as libhdf5 does."""
    types = None
    if elements.dtype.fields is None and into.dtype.fields is None:
        types = _types(elements.dtype, into.dtype)
    return types is not None and _native.convert_elements(
        np.ascontiguousarray(elements), into, types
    )


def _parts(stored: DType, wanted: DType, places: tuple[int, int]) -> list[Part] | None:
    """Say what happens to a number, a text or a field at these places."""
    if identical(stored, wanted) or (
        stored.str == wanted.str and _encoding(stored) and _encoding(stored) == _encoding(wanted)
    ):
        return [(*places, stored.itemsize)]
    if stored.kind == wanted.kind == "c":
        # To libhdf5, compound types of two numbers.
        types = _types(_half_of(stored), _half_of(wanted))
        source, target = places[0] + stored.itemsize // 2, places[1] + wanted.itemsize // 2
        return None if types is None else [(*places, types), (source, target, types)]
    types = _types(stored, wanted)
    return None if types is None else [(*places, types)]


def _half_of(dtype: DType) -> DType:
    return np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")


def _types(stored: DType, wanted: DType) -> tuple[str, str] | None:
    """Name the two types, if the engine converts between them as libhdf5 does."""
    source = _stored_type(stored)
    if source is None or wanted.subdtype is not None or wanted.kind not in "iufS":
        return None
    if wanted.kind == "S":
        fits = _encoding(stored) == _encoding(wanted) and wanted.itemsize > 0
    else:
        fits = source[1] != "S" and not wanted.metadata and wanted.itemsize <= 8
    if not fits:
        return None
    types = (source, wanted.str)
    return types if _alike(types, _Hashed(stored), _Hashed(wanted)) else None


def _stored_type(dtype: DType) -> str | None:
    """Name what elements of a type hold; of an enum, or of booleans, its numbers."""
    if dtype.subdtype is not None or dtype.itemsize == 0:
        return None
    if dtype.kind == "b":
        return "|i1"
    if dtype.kind in "iuf" and dtype.itemsize <= 8:
        return dtype.str if is_enum(dtype) or not dtype.metadata else None
    return dtype.str if dtype.kind == "S" else None


def _encoding(dtype: DType) -> str | None:
    """Return the encoding of text of fixed length; None for everything else."""
    info = h5py.check_string_dtype(dtype)
    return None if info is None or info.length is None else info.encoding


class _Hashed:
    """A type as libhdf5 sees it in conversions: enums of the same numbers are alike."""

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def __hash__(self) -> int:
        return hash(self.dtype.str)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and self._key() == other._key()

    def _key(self) -> tuple[str, bool, str | None]:
        return self.dtype.str, is_enum(self.dtype), _encoding(self.dtype)


@cache
def _alike(types: tuple[str, str], stored: _Hashed, wanted: _Hashed) -> bool:
    """Whether libhdf5 converts ambiguous values in the same way."""
    is_text = types[0][1] == "S"
    elements = texts(stored.dtype.itemsize) if is_text else numbers(types[0])
    return _same_bytes(types, elements, wanted.dtype, memory_type(stored.dtype))


def _same_bytes(
    types: tuple[str, str], elements: Array, wanted: DType, source: h5t.TypeID
) -> bool:
    """Whether libhdf5 makes of these elements what the engine makes of them."""
    ours = np.zeros(len(elements), wanted)
    if not _native.convert_elements(elements, ours, types):
        return False
    buffer = np.zeros(len(elements) * max(elements.itemsize, ours.itemsize), "u1")
    buffer[: elements.nbytes] = elements.view("u1")
    try:
        h5t.convert(source, h5t.py_create(wanted), len(elements), buffer)
    except HDF5_ERRORS:
        return False
    return buffer[: ours.nbytes].tobytes() == ours.tobytes()


def numbers(name: str) -> Array:
    """Numbers at the ends of ranges, between two others, and NaNs."""
    return np.frombuffer(_native.edge_numbers(name) or b"", name)


def texts(length: int) -> Array:
    """Texts that fill their room and do not, with zeros and spaces within and at their end."""
    made = [b"", b" ", b"a", b"a ", b" a", b"a\0b", b"\0a", b"a \0", "é".encode(), b"x" * length]
    made += [b"x" * (length - 1) + b" ", b"x" * (length - 1) + b"\0", b" " * length]
    padded = b"".join(text[:length].ljust(length, b"\0") for text in made)
    return np.frombuffer(padded, f"S{length}")
