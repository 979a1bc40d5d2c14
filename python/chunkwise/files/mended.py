"""How is a file opened that libhdf5 refuses, wholly or in part, and that may be read?

libhdf5 refuses a wrong end or checksum in the superblock, and HDF5 2.0 lengths of chunks in more
bytes than they need.  It reads such a file through a file object that shows other bytes in these
places.  The file itself is never written to.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import h5py
from h5py import h5g

from chunkwise import _native
from chunkwise.files.native import damaged_metadata
from chunkwise.files.objects import open_at
from chunkwise.files.superblock import exceeds_stated_end, read_superblock
from chunkwise.files.unclosed import Patch, closed_patch, copy_patched, open_patched
from chunkwise.names import HDF5_ERRORS

_SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"
_HEAD_NBYTES: Final = 128
# A file that states to be longer than this has a damaged statement.
_MOST_TIMES: Final = 1 << 10
# Where user blocks may end; beyond the last of them nobody looks.
_OFFSETS: Final = (0, *(512 << power for power in range(12)))
_UNDEFINED: Final = (1 << 64) - 1


class Mended(NamedTuple):
    """Bytes with which libhdf5 opens a file, why it needs them, and the end that it states."""

    patches: tuple[Patch, ...]
    said: str
    stated: int | None = None
    is_end: bool = False  # Whether the end that it states is all that is wrong
    lacks_root: bool = False  # Whether no name of its objects is left


def readable_patches(path: str | os.PathLike[str]) -> tuple[Patch, ...]:
    """Give the bytes with which libhdf5 opens a file that it refuses, for whatever reason."""
    patch = closed_patch(path)
    if patch is not None:
        return (patch,)
    found = mended(path)
    return () if found is None else found.patches


def copy_mended(path: str | os.PathLike[str], target: Path, found: Mended) -> None:
    """Copy a file so that libhdf5 opens the copy: to the end that it states, if it was cut off."""
    # What is missing is zeros.  With the true end, libhdf5 would refuse the whole dataset.
    nbytes = Path(path).stat().st_size
    if found.stated is not None and nbytes < found.stated <= nbytes * _MOST_TIMES:
        copy_patched(path, target)
        with contextlib.suppress(OSError):
            os.truncate(target, found.stated)
            if _opened(target):
                return
    copy_patched(path, target, *found.patches)


def open_mended(path: str | os.PathLike[str], found: Mended) -> h5py.File:
    """Open a file for reading, with other bytes at its beginning."""
    return open_patched(path, *found.patches)


def refused(path: str | os.PathLike[str]) -> Mended | None:
    """Find the bytes with which HDF5 reads more of a file that may be sound."""
    return early_end(path) or wide_lengths(path)


def wide_lengths(path: str | os.PathLike[str]) -> Mended | None:
    """Find the bytes with which this HDF5 opens datasets with wide lengths of chunks."""
    superblock = read_superblock(path)
    # Older files have none.
    if superblock is None or superblock.version < 2 or superblock.flags:
        return None
    metadata = damaged_metadata(path)
    found = [] if metadata is None else metadata.narrowed()
    made = narrowing(found)
    if made is None or _opens(path, found[0][0]) or not _opens(path, found[0][0], *made.patches):
        return None
    return made


def narrowing(found: Sequence[tuple[int, int, bytes]]) -> Mended | None:
    """Make what `_native.Metadata.narrowed` has found to patches; None of nothing."""
    if not found:
        return None
    said = f"HDF5 {h5py.version.hdf5_version} refuses this file: its lengths of chunks take"
    patches = tuple(Patch(at, content) for _, at, content in found)
    return Mended(patches, f"{said} more bytes than they need; HDF5 1.10 to 1.14 and 2.2 open it")


def early_end(path: str | os.PathLike[str]) -> Mended | None:
    """Find the bytes with which HDF5 reads a file beyond the end that it states, if it goes on."""
    if not exceeds_stated_end(path):
        return None
    ends = (one for one in _patches(path) if one.is_end)
    return next((one for one in ends if _opened(path, *one.patches) == _LISTED), None)


def mended(path: str | os.PathLike[str]) -> Mended | None:
    """Find the bytes with which libhdf5 opens a file that it refuses as it is."""
    best, most = None, _opened(path)
    for one in _patches(path):
        # What lies beyond the end that is stated is refused, too.
        if most == _LISTED and not one.is_end:
            break
        found = _opened(path, *one.patches)
        if found > most or (found == most and best is None and one.is_end):
            best, most = one, found
        if most == _LISTED:
            break
    if most >= _ROOTED:
        return best
    nbytes = Path(path).stat().st_size
    rootless = (_without_root(one, nbytes) for one in _patches(path))
    return next((one for one in rootless if _opened(path, *one.patches) == _LISTED), best)


def _without_root(found: Mended, nbytes: int) -> Mended:
    """Give an empty root group, behind the file, to one whose root group is damaged."""
    (at, content), *_ = found.patches
    version = content[8]
    begin = 12 if version >= 2 else 24 + 4 * version
    base, beside, end, last = struct.unpack_from("<4Q", content, begin)
    address, end = nbytes - base, end + len(_EMPTY_GROUP)
    if version >= 2:
        made = content[:begin] + struct.pack("<4Q", base, beside, end, address)
        made += _checksum(made)
    else:
        made = content[:begin] + struct.pack("<4Q", base, beside, end, last)
        made += struct.pack("<2Q2I2Q", 0, address, 0, 0, 0, 0)
    patches = Patch(at, made), Patch(nbytes, _EMPTY_GROUP)
    return Mended(patches, "its root group is lost, with the names in it", lacks_root=True)


def _checksum(body: bytes) -> bytes:
    """Give the four bytes that stand behind metadata of the newer format."""
    return struct.pack("<I", _native.metadata_checksum(body))


# Its messages: link info (no heap, no index) and group info.
_EMPTY: Final = b"OHDR\2\0\x1c" + b"\2\x12\0\0\0\0" + b"\xff" * 16 + b"\x0a\2\0\0\0\0"
_EMPTY_GROUP: Final = _EMPTY + _checksum(_EMPTY)


def has_lost_root(path: str | os.PathLike[str]) -> bool:
    """Return whether a copy of a file has been given an empty root group."""
    with Path(path).open("rb") as stream:
        nbytes = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, nbytes - len(_EMPTY_GROUP)))
        return stream.read() == _EMPTY_GROUP


# What libhdf5 makes of a file: it opens it, then its root group, and lists what is in there.
_REFUSED, _OPENED, _ROOTED, _LISTED = range(4)


def _opened(path: str | os.PathLike[str], *patches: Patch) -> int:
    try:
        file = open_patched(path, *patches)
    except HDF5_ERRORS:
        return _REFUSED
    with file:
        try:
            h5g.open(file.id, b"/")
        except HDF5_ERRORS:
            return _OPENED
        try:
            for name in file:
                file.get(name, getlink=True)
        except (*HDF5_ERRORS, UnicodeError):
            return _ROOTED
        return _LISTED


def _opens(path: str | os.PathLike[str], address: int, *patches: Patch) -> bool:
    """Return whether libhdf5 opens the object at an address."""
    try:
        with open_patched(path, *patches) as file:
            return open_at(file.id, address) is not None
    except HDF5_ERRORS:
        return False


def _patches(path: str | os.PathLike[str]) -> Iterator[Mended]:
    """Give what may stand at the beginning, the likeliest first."""
    nbytes = Path(path).stat().st_size
    for offset in _OFFSETS:
        with Path(path).open("rb") as stream:
            stream.seek(offset)
            head = stream.read(_HEAD_NBYTES)
        if len(head) < 48:
            return
        signed = head.startswith(_SIGNATURE)
        # One damaged byte is no reason to miss it, and of other bytes nothing is known.
        alike = sum(a == b for a, b in zip(head, _SIGNATURE, strict=False))
        if not signed and alike < 5:
            continue
        end = nbytes - offset
        more = "" if signed else "the signature was damaged; "
        for version in dict.fromkeys((head[8], 0, 2, 3)):
            if version in (2, 3):
                yield from _newer(offset, head, version, end, more)
            elif version in (0, 1):
                yield from _older(offset, head, version, end, more)


def _newer(offset: int, head: bytes, version: int, end: int, more: str) -> Iterator[Mended]:
    """Versions 2 and 3: addresses of base, extension, end and root group, then a checksum."""
    base, extension, stated, root = struct.unpack_from("<4Q", head, 12)
    ends = f"it states its end at byte {offset + stated - base:,}, and ends at {end + offset:,}"
    # With any other base it is that which is wrong.
    is_cut = base in (0, offset) and offset + stated - base != end + offset
    # The root group's header follows the superblock in files of most libraries.
    for said, address, beside in (
        (ends if is_cut else "its superblock was damaged", root, extension),
        ("its superblock's extension is lost", root, _UNDEFINED),
        ("its superblock did not say where the root group is", 48, _UNDEFINED),
    ):
        for at in _bases(base, offset, end):
            body = _SIGNATURE + bytes((version, 8, 8, 0))
            body += struct.pack("<4Q", at, beside, end + at, address)
            patch = Patch(offset, body + _checksum(body))
            is_end = said is ends and not more
            yield Mended((patch,), more + said, offset + stated - base, is_end)


def _bases(stated: int, offset: int, end: int) -> list[int]:
    """Give what addresses may count from: what is stated, the file's beginning, the superblock."""
    return [at for at in dict.fromkeys((stated, offset, 0)) if at < end + offset]


def _older(offset: int, head: bytes, version: int, end: int, more: str) -> Iterator[Mended]:
    """Versions 0 and 1: sizes, nodes of B-trees, four addresses, the root group's entry."""
    begin = 24 + 4 * version
    if len(head) < begin + 72:
        return
    ranks = struct.unpack_from("<2H", head, 16)
    stated = struct.unpack_from("<Q", head, begin + 16)[0]
    base, driver = (struct.unpack_from("<Q", head, begin + at)[0] for at in (0, 24))
    ends = f"it states its end at byte {offset + stated - base:,}, and ends at {end + offset:,}"
    # With any other base it is that which is wrong.
    is_cut = base in (0, offset) and offset + stated - base != end + offset
    root = head[begin + 32 : begin + 72]
    # The root group's header follows the superblock in files of most libraries.
    usual = struct.pack("<2Q2I2Q", 0, begin + 72, 0, 0, 0, 0)
    for said, leaves, block, entry in (
        (ends if is_cut else "its superblock was damaged", ranks, driver, root),
        ("its superblock was damaged", (4, 16), _UNDEFINED, root),
        ("its superblock did not say where the root group is", (4, 16), _UNDEFINED, usual),
    ):
        for at in _bases(base, offset, end):
            fixed = _SIGNATURE + bytes((version, 0, 0, 0, 0, 8, 8, 0))
            fixed += struct.pack("<2HI", *leaves, 0)
            # Half as many chunks as a node of version 1 has by default.
            fixed += head[24:begin] if said is ends else struct.pack("<2H", 32, 0)[: 4 * version]
            fixed += struct.pack("<4Q", at, _UNDEFINED, end + at, block)
            patch, is_end = Patch(offset, fixed + entry), said is ends and not more
            yield Mended((patch,), more + said, offset + stated - base, is_end)
