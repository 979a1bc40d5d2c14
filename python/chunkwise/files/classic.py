"""What does a netCDF-3 file hold, by its own bytes (NetCDF Classic Format Specification)?

netCDF-C reads zeros beyond the end of a file that was cut.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import numpy as np

T = TypeVar("T")

# By the number of a type.
_TYPES: Final = {
    number: np.dtype(code)
    for number, code in enumerate(
        ("i1", "S1", ">i2", ">i4", ">f4", ">f8", "u1", ">u2", ">u4", ">i8", ">u8"), start=1
    )
}


class UnknownHeaderError(Exception):
    """A header that ends too early, or has values that no header can have."""


@dataclass(frozen=True)
class Attribute:
    """An attribute of a variable, or of the file."""

    name: bytes
    dtype: np.dtype[np.generic]
    length: int
    address: int  # Where its values lie in the file

    @property
    def nbytes(self) -> int:
        """The bytes of its values."""
        return self.length * self.dtype.itemsize


@dataclass(frozen=True)
class Variable:
    """A variable, and where its values lie."""

    name: bytes
    dimensions: tuple[int, ...]  # Numbers of its dimensions
    shape: tuple[int, ...]
    attributes: tuple[Attribute, ...]
    dtype: np.dtype[np.generic]
    address: int  # Of its first value
    grows: bool  # Whether its first dimension is the unlimited one

    @property
    def nbytes(self) -> int:
        """The bytes of its values; if it grows, those of one record."""
        return math.prod(self.shape[self.grows :]) * self.dtype.itemsize


@dataclass(frozen=True)
class Header:
    """All that a file holds but the values."""

    dimensions: tuple[tuple[bytes, int], ...]  # Names and lengths
    unlimited: int | None  # The number of the dimension that grows
    attributes: tuple[Attribute, ...]
    variables: tuple[Variable, ...]

    @property
    def record_nbytes(self) -> int:
        """The bytes from a record to the next."""
        growing = [one.nbytes for one in self.variables if one.grows]
        # A single one has no room between its records.
        return growing[0] if len(growing) == 1 else sum(map(_padded, growing))

    @property
    def end(self) -> int:
        """The bytes that the file has at least."""
        ends = [0]
        for one in self.variables:
            records = one.shape[0] if one.grows else 1
            if records and one.nbytes:
                ends.append(one.address + (records - 1) * self.record_nbytes + one.nbytes)
        return max(ends)


def classic_end(path: Path) -> int | None:
    """Return the bytes that a netCDF-3 file has at least; None if its header does not say."""
    try:
        return read_header(path).end
    except UnknownHeaderError:
        return None


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read the header of a netCDF-3 file."""
    with Path(path).open("rb") as stream:
        try:
            return _Reader(stream).header()
        except (EOFError, LookupError) as error:
            raise UnknownHeaderError from error


class _Reader:
    """Reads the numbers of a header in their order."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._nbytes = stream, stream.seek(0, os.SEEK_END)
        stream.seek(0)
        version = self._bytes(4)[3]
        # Of counts and lengths, and of places in the file.
        self._width = 8 if version == 5 else 4
        self._place = 4 if version == 1 else 8

    def header(self) -> Header:
        records = self._number(self._width)
        if records == 256**self._width - 1:
            # Written as a stream: nobody has said yet how many there are.
            records = 0
        dimensions = self._list(lambda: (self._name(), self._number(self._width)))
        # The dimension that grows has the length 0.
        grows = [number for number, (_, length) in enumerate(dimensions) if length == 0]
        lengths = [length or records for _, length in dimensions]
        attributes = self._list(self._attribute)
        variables = self._list(lambda: self._variable(lengths, grows))
        return Header(
            tuple((name, n) for (name, _), n in zip(dimensions, lengths, strict=True)),
            grows[0] if grows else None,
            attributes,
            variables,
        )

    def _variable(self, lengths: list[int], grows: list[int]) -> Variable:
        name = self._name()
        dimensions = tuple(self._number(self._width) for _ in range(self._number(self._width)))
        shape = tuple(lengths[number] for number in dimensions)
        attributes = self._list(self._attribute)
        dtype = _TYPES[self._number(4)]
        self._number(self._width)  # Its bytes, which a large one does not say
        address = self._number(self._place)
        first = bool(dimensions) and dimensions[0] in grows
        return Variable(name, dimensions, shape, attributes, dtype, address, first)

    def _attribute(self) -> Attribute:
        name, dtype = self._name(), _TYPES[self._number(4)]
        one = Attribute(name, dtype, self._number(self._width), self._stream.tell())
        self._stream.seek(min(one.address + _padded(one.nbytes), self._nbytes))
        return one

    def _list(self, read: Callable[[], T]) -> tuple[T, ...]:
        self._number(4)  # What it is a list of
        return tuple(read() for _ in range(self._number(self._width)))

    def _name(self) -> bytes:
        length = self._number(self._width)
        # Some writers count zeros behind a name, which netCDF-C leaves out.
        return self._bytes(_padded(length))[:length].partition(b"\0")[0]

    def _number(self, width: int) -> int:
        return int.from_bytes(self._bytes(width), "big")

    def _bytes(self, count: int) -> bytes:
        if count > self._nbytes:
            raise EOFError
        found = self._stream.read(count)
        if len(found) < count:
            raise EOFError
        return found


def _padded(count: int) -> int:
    """Round up to four bytes, as all parts of the file are."""
    return -(-count // 4) * 4
