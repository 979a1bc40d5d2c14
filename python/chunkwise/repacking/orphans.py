"""Which objects does a damaged file hold to which no link may lead any more?

Object headers are found by their form, wherever they lie: those of version 2 by signature and
checksum, those of version 1, which have neither, by lengths that fit each other.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from chunkwise.files.superblock import checksum, read_superblock

# Messages of an object header: a dataset has the first three, a group one of the others.
_DATASPACE, _DATATYPE, _LAYOUT = 0x01, 0x03, 0x08
_LINK_INFO, _SYMBOL_TABLE = 0x02, 0x11
_CONTINUATION: Final = 0x10
_LAST_TYPE: Final = 0x18
# Version, reserved; then so many messages, the names of the object, bytes; reserved.
_OLD: Final = re.compile(rb"\x01\x00..[\x01-\xff].\x00\x00..\x00\x00\x00\x00\x00\x00", re.DOTALL)
_OLD_NBYTES: Final = 16
_MOST: Final = 100_000


def orphans(path: Path) -> list[int]:
    """Give where object headers of groups and datasets lie, groups first, linked or not."""
    # Addresses count from the superblock's base.  At most 100,000 are given.
    if path.stat().st_size == 0:
        return []
    superblock = read_superblock(path)
    base = superblock.offset if superblock is not None else 0
    groups: list[int] = []
    datasets: list[int] = []
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view:
        for at, types in (*_newer(view), *_older(view)):
            if len(groups) + len(datasets) == _MOST:
                break
            if types >= {_DATASPACE, _DATATYPE, _LAYOUT}:
                datasets.append(at - base)
            elif types & {_LINK_INFO, _SYMBOL_TABLE}:
                groups.append(at - base)
    return [*groups, *datasets]


def _newer(view: mmap.mmap) -> Iterator[tuple[int, set[int]]]:
    """Headers of version 2, with the types of their messages."""
    at = view.find(b"OHDR\x02")
    while at >= 0:
        found = _checked(view, at)
        if found is not None:
            yield at, found
        at = view.find(b"OHDR\x02", at + 1)


def _checked(view: mmap.mmap, at: int) -> set[int] | None:
    """Give the types of a header's messages; None if it is none."""
    flags = view[at + 5] if at + 5 < len(view) else 0
    begin = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    nbytes = int.from_bytes(view[begin : begin + width], "little")
    begin += width
    end = begin + nbytes
    if nbytes > 1 << 20 or end + 4 > len(view):
        return None
    if checksum(view[at:end]) != view[end : end + 4]:
        return None
    types, more = set(), 6 if flags & 4 else 4
    while begin + more <= end:
        kind, size = view[begin], int.from_bytes(view[begin + 1 : begin + 3], "little")
        types.add(kind)
        begin += more + size
    if _CONTINUATION in types:
        # What is there need not be in the first block.
        types |= {_DATASPACE, _DATATYPE, _LAYOUT} if types & {_DATASPACE, _DATATYPE} else set()
    return types


def _older(view: mmap.mmap) -> Iterator[tuple[int, set[int]]]:
    """Headers of version 1, with the types of their messages."""
    for match in _OLD.finditer(view):
        at = match.start()
        count, _, nbytes = struct.unpack_from("<HII", view, at + 2)
        end = at + _OLD_NBYTES + nbytes
        if not 0 < count < 1000 or nbytes % 8 or not 8 <= nbytes < 1 << 16 or end > len(view):
            continue
        types, begin, number = set(), at + _OLD_NBYTES, 0
        while begin + 8 <= end:
            kind, size, flags, reserved = struct.unpack_from("<HHB3s", view, begin)
            if kind > _LAST_TYPE or size % 8 or reserved != bytes(3) or flags > 0x7F:
                break
            types.add(kind)
            begin, number = begin + 8 + size, number + 1
        if begin == end and number <= count:
            yield at, types
