"""Does a file end where it says that it ends?"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chunkwise import _native
from chunkwise.errors import FileFormatError
from chunkwise.files.formats import known_format
from chunkwise.files.superblock import read_superblock
from chunkwise.names import printable
from chunkwise.verifying.records import Damage
from chunkwise.words import counted

_SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"
# Names that an HDF5 file has, and seldom any other.
SUFFIXES: Final = frozenset({".h5", ".hdf5", ".he5", ".nc", ".nc4", ".nxs"})


@dataclass(frozen=True)
class Ending:
    """Where a file ends."""

    nbytes: int  # Its size
    # Where it ends by its own account; None if its superblock does not say.
    stated: int | None = None
    # What is wrong with that, or with its first bytes; None for nothing.
    damage: Damage | None = None


def read_ending(path: str | os.PathLike[str]) -> Ending:
    """Look at the first bytes of a file, and where it ends."""
    where = printable(os.fspath(path))
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            raise FileFormatError(f"{where}: not a regular file; name a file")
        with Path(path).open("rb") as stream:
            head = stream.read(64)
            offset = _native.signature_offset(stream.fileno())
    except FileFormatError:
        raise
    except FileNotFoundError:
        raise FileFormatError(f"{where}: no such file") from None
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
    stated = superblock.end
    # A writer that is at work, or was killed, has not said yet where the file ends.
    if status.st_size < stated and not superblock.flags:
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
            return known_format(Path(path), stream.read(64)) is None
    except OSError:
        return False


def _unsigned(path: Path, head: bytes) -> Damage:
    """Say what is wrong with a file without a signature; raise if it is of another format."""
    if not head:
        return Damage("truncated", None, "the file is empty (0 bytes)")
    if _SIGNATURE.startswith(head):
        return Damage("truncated", None, f"the file has {counted(len(head), 'byte')}")
    known = known_format(path, head)
    if known is not None:
        raise FileFormatError(f"{printable(str(path))}: not an HDF5 file: {known}")
    said = "it begins with zeros" if not any(head) else "its format is not known"
    if path.suffix.lower() not in SUFFIXES:
        raise FileFormatError(f"{printable(str(path))}: not an HDF5 file: {said}")
    return Damage("no-signature", None, f"not an HDF5 file any more: {said}")
