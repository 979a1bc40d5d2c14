"""Can the loader put a library before this program's own, and if not, why (``elf(5)``)?"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from chunkwise.errors import UsageError
from chunkwise.names import printable

_HEADER_NBYTES: Final = 64
_PROGRAM_HEADER_NBYTES: Final = 56
_INTERPRETER: Final = 3
_LITTLE_64: Final = b"\x7fELF\x02\x01"
# The C library that this Python, and so the library for programs, is made for.
_MUSL: Final = "musl" in (sysconfig.get_config_var("SOABI") or "")
# Of H5check_version, since HDF5 1.2.
_ONLY_IN_LIBHDF5: Final = b"Headers are %u.%u.%u, library is %u.%u.%u"
_HDF5_INSIDE: Final = (
    "HDF5 is linked into it statically: link it with HDF5's shared library, as 'h5cc -shlib' does"
)


@dataclass(frozen=True)
class Program:
    """A program to run."""

    path: Path  # Its file
    obstacle: str | None = None  # Why nothing can be put under it, in words; None if something can
    harms: bool = False  # It would not even start with the library


def find(name: str) -> Program:
    """Find a program as a shell does, and look at it."""
    found = shutil.which(name)
    if found is None:
        raise UsageError(
            f"{printable(name)}: no such program, or it may not be run: give its path, or a name "
            "that PATH leads to"
        )
    path = Path(found).absolute()
    status = path.stat()
    if status.st_mode & 0o6000:
        return Program(path, "it runs with the rights of its owner (set-user-ID)")
    try:
        return _looked_at(path)
    except OSError:
        # A program that may be run need not be readable.
        return Program(path)


def _looked_at(path: Path) -> Program:
    with path.open("rb") as file:
        start = file.read(_HEADER_NBYTES)
        if start[:2] == b"#!":
            # The interpreter is looked at by the loader only.
            return Program(path)
        if start[:4] != b"\x7fELF" or len(start) < _HEADER_NBYTES:
            return Program(path)
        if start[:6] != _LITTLE_64 or _machine(start) != _machine(_head(Path(sys.executable))):
            return Program(path, "it is made for another machine than chunkwise")
        (offset,) = struct.unpack_from("<Q", start, 32)
        size, count = struct.unpack_from("<HH", start, 54)
        for i in range(count):
            file.seek(offset + i * size)
            header = file.read(_PROGRAM_HEADER_NBYTES)
            if len(header) == _PROGRAM_HEADER_NBYTES and header[:4] == struct.pack(
                "<I", _INTERPRETER
            ):
                begin, nbytes = struct.unpack_from("<8xQ16xQ", header)
                file.seek(begin)
                loader = os.fsdecode(file.read(min(nbytes, 4096)).rstrip(b"\0"))
                if ("musl" in loader) != _MUSL:
                    libc = "glibc" if _MUSL else "musl"
                    return Program(path, f"it is made for {libc} ({loader})", harms=True)
                return Program(path, _HDF5_INSIDE if _holds_hdf5(file) else None)
    return Program(path, "it is linked statically, so that no loader runs")


def _holds_hdf5(file: BinaryIO) -> bool:
    """Whether libhdf5 itself is in the program, by a message that only the library has."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(_ONLY_IN_LIBHDF5) >= 0


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEADER_NBYTES)


def _machine(header: bytes) -> int:
    return int(struct.unpack_from("<H", header, 18)[0])
