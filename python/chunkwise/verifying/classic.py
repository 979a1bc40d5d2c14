"""Where does a netCDF-3 file end, by its own account?

netCDF-C reads zeros beyond the end of a file that was cut.  So its header is read here: the
places, types and shapes of its variables (NetCDF Classic Format Specification).
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import BinaryIO, Final

# Bytes of an element by the number of its type.
_SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}


def classic_end(path: Path) -> int | None:
    """Return the bytes that a netCDF-3 file has at least; None if its header does not tell."""
    try:
        with path.open("rb") as stream:
            return _Header(stream).end()
    except (EOFError, KeyError, IndexError):
        return None


class _Header:
    """Reads the numbers of a header in their order."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._nbytes = stream, stream.seek(0, os.SEEK_END)
        stream.seek(0)
        version = self._bytes(4)[3]
        # Of counts and lengths, and of places in the file.
        self._width = 8 if version == 5 else 4
        self._place = 4 if version == 1 else 8

    def end(self) -> int:
        """Read all of it."""
        records = self._number(self._width)
        if records == 256**self._width - 1:
            # Written as a stream: nobody has said yet how many there are.
            records = 0
        lengths = []
        for _ in range(self._count()):
            self._name()
            lengths.append(self._number(self._width))
        self._attributes()
        fixed: list[tuple[int, int]] = []
        growing: list[tuple[int, int]] = []
        for _ in range(self._count()):
            self._name()
            shape = [lengths[self._number(self._width)] for _ in range(self._number(self._width))]
            self._attributes()
            size = _SIZES[self._number(4)]
            self._number(self._width)
            begin = self._number(self._place)
            # The dimension that grows has the length 0, and comes first.
            grows = bool(shape) and shape[0] == 0
            nbytes = math.prod(shape[grows:]) * size
            (growing if grows else fixed).append((begin, nbytes))
        ends = [begin + nbytes for begin, nbytes in fixed if nbytes]
        if records and growing:
            # A single one has no room between its records.
            one = growing[0][1] if len(growing) == 1 else sum(_padded(n) for _, n in growing)
            ends += [begin + (records - 1) * one + nbytes for begin, nbytes in growing if nbytes]
        return max(ends, default=0)

    def _count(self) -> int:
        self._number(4)  # What it is a list of
        return self._number(self._width)

    def _name(self) -> None:
        self._skip(self._number(self._width))

    def _attributes(self) -> None:
        for _ in range(self._count()):
            self._name()
            size = _SIZES[self._number(4)]
            self._skip(size * self._number(self._width))

    def _number(self, width: int) -> int:
        return int.from_bytes(self._bytes(width), "big")

    def _skip(self, count: int) -> None:
        self._stream.seek(min(self._stream.tell() + _padded(count), self._nbytes))

    def _bytes(self, count: int) -> bytes:
        found = self._stream.read(count)
        if len(found) < count:
            raise EOFError
        return found


def _padded(count: int) -> int:
    """Round up to four bytes, as all parts of the file are."""
    return -(-count // 4) * 4
