"""Does a file end where it says that it ends?

netCDF-C reads zeros beyond the end of a netCDF-3 file that was cut.  So its header is read here:
the places, types and shapes of its variables (NetCDF Classic Format Specification).
"""

from __future__ import annotations

import math
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from chunkwise.errors import FileFormatError
from chunkwise.files.magic import HDF5_SIGNATURE, hdf5_offset, what_it_is
from chunkwise.files.superblock import read_superblock, stated_end
from chunkwise.names import printable
from chunkwise.verifying.records import Damage
from chunkwise.words import counted

# Names that an HDF5 file has, and seldom any other.
SUFFIXES: Final = frozenset({".h5", ".hdf5", ".he5", ".nc", ".nc4", ".nxs"})
# Bytes of an element by the number of its type.
_SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}


@dataclass(frozen=True)
class Ending:
    """Where a file ends."""

    nbytes: int  # Its size
    # Where it ends by its own account; None if its superblock does not tell.
    stated: int | None = None
    # What is wrong with that, or with its first bytes; None for nothing.
    damage: Damage | None = None

    @property
    def is_exceeded(self) -> bool:
        """Whether there are bytes behind the end that is stated."""
        return self.stated is not None and self.nbytes > self.stated


def read_ending(path: str | os.PathLike[str]) -> Ending:
    """Look at the first bytes of a file, and where it ends."""
    where = printable(os.fspath(path))
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            raise FileFormatError(f"{where}: not a regular file; name a file")
        with Path(path).open("rb") as stream:
            head = stream.read(64)
            offset = hdf5_offset(stream, status.st_size)
    except FileFormatError:
        raise
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise FileFormatError(f"{where}: cannot be read: {said}") from None
    if offset is None:
        return Ending(status.st_size, damage=_unsigned(Path(path), head))
    superblock = read_superblock(path)
    if superblock is None:
        said = f"the file ends within its superblock, after {counted(status.st_size, 'byte')}"
        whole = status.st_size >= offset + 128
        if whole:
            said = "the superblock is of no known version"
        return Ending(
            status.st_size, damage=Damage("cannot-open" if whole else "truncated", None, said)
        )
    stated = stated_end(superblock)
    # A writer that is at work, or was killed, has not said yet where the file ends.
    if stated is not None and status.st_size < stated and not superblock.flags:
        return Ending(status.st_size, stated, cut(status.st_size, stated))
    return Ending(status.st_size, stated)


def cut(nbytes: int, stated: int) -> Damage:
    """Say that a file has fewer bytes than it states."""
    said = f"the file has {counted(nbytes, 'byte')}, and should have {stated:,}"
    return Damage("truncated", None, said)


def is_wanted(path: str) -> bool:
    """Return whether a file without HDF5's signature should have one, by its name."""
    if Path(path).suffix.lower() not in SUFFIXES:
        return False
    try:
        with Path(path).open("rb") as stream:
            return _format(Path(path), stream.read(64)) is None
    except OSError:
        return False


def _unsigned(path: Path, head: bytes) -> Damage:
    """Say what is wrong with a file without a signature; raise if it is of another format."""
    if not head:
        return Damage("truncated", None, "the file is empty (0 bytes)")
    if HDF5_SIGNATURE.startswith(head):
        return Damage("truncated", None, f"the file has {counted(len(head), 'byte')}")
    known = _format(path, head)
    if known is not None:
        raise FileFormatError(f"{printable(str(path))}: not an HDF5 file: {known}")
    said = "it begins with zeros" if not any(head) else "its format is not known"
    if path.suffix.lower() not in SUFFIXES:
        raise FileFormatError(f"{printable(str(path))}: not an HDF5 file: {said}")
    return Damage("no-signature", None, f"not an HDF5 file any more: {said}")


def _format(path: Path, head: bytes) -> str | None:
    """Name a format that is known, with what to do; None for others."""
    said = what_it_is(path, head)
    return said if said.startswith("it is ") else None


# --- netCDF-3 ---------------------------------------------------------------------


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
