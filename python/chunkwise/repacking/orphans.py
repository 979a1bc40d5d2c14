"""What does a damaged file hold without a link, and what lay behind its end?

Object headers are found by their form, wherever they lie: those of version 2 by signature and
checksum, those of version 1, which have neither, by lengths that fit each other.  Of a file that
was cut off, libhdf5 opens a copy that is as long as it should be, with zeros at its end.  Metadata
made of zeros is refused; data made of zeros looks sound, and is found here by its place.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import h5py
from h5py import h5d, h5t

from chunkwise import _native
from chunkwise.files.netcdf3 import is_netcdf3
from chunkwise.files.opening import is_plain
from chunkwise.files.superblock import read_superblock
from chunkwise.grammar import Shape
from chunkwise.grammar.boxes import Box, chunk_at
from chunkwise.names import HDF5_ERRORS, decode_name
from chunkwise.repacking.records import Missing

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
    if _native.metadata_checksum(view[at:end]) != int.from_bytes(view[end : end + 4], "little"):
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


_REASON = "it lay behind the end of the file, which was cut off"


def real_end(original: Path, readable: Path) -> int | None:
    """Return where a file ended, if a longer copy of it is read; None if it is not cut off."""
    if readable == original or is_netcdf3(original):
        return None
    end = original.stat().st_size
    return end if readable.stat().st_size > end else None


def leave_out(source: h5py.File, target: h5py.File, end: int) -> Iterator[Missing]:
    """Put fill values in place of what lay behind the end, and say which elements these are."""
    for path, made in _datasets(target):
        try:
            read = h5py.h5o.open(source.id, path)
            lost = list(_lost(read, end)) if isinstance(read, h5d.DatasetID) else []
        except HDF5_ERRORS:
            continue
        for box in lost:
            if is_plain(h5t.TypeID.copy(made.get_type())):
                dataset = h5py.Dataset(made)
                dataset[box.slices] = dataset.fillvalue
            yield Missing(decode_name(path), _REASON, None, *box)


def _datasets(file: h5py.File) -> list[tuple[bytes, Any]]:
    found: list[tuple[bytes, Any]] = []

    def visit(name: bytes) -> None:
        opened = h5py.h5o.open(file.id, name)
        if isinstance(opened, h5d.DatasetID):
            found.append((b"/" + name.lstrip(b"/"), opened))

    h5py.h5o.visit(file.id, visit)
    return found


def _lost(dataset: Any, end: int) -> Iterator[Box]:
    """Give boxes of the elements whose bytes are not all before the end."""
    shape = dataset.shape
    if math.prod(shape) == 0:
        return
    layout = dataset.get_create_plist().get_layout()
    if layout == h5d.CHUNKED:
        chunk = dataset.get_create_plist().get_chunk()
        infos: list[Any] = []
        dataset.chunk_iter(infos.append)
        for info in infos:
            if info.byte_offset + info.size > end:
                yield chunk_at(shape, chunk, info.chunk_offset)
    elif layout == h5d.CONTIGUOUS and dataset.get_offset() is not None:
        size = dataset.get_type().get_size()
        kept = max(0, end - dataset.get_offset()) // size
        if kept < math.prod(shape):
            yield from _from(kept, shape)


def _from(first: int, shape: Shape) -> Iterator[Box]:
    """Give boxes of the elements from one on, in row-major order."""
    at = [first // math.prod(shape[axis + 1 :]) % n for axis, n in enumerate(shape)]
    for axis in reversed(range(len(shape))):
        # What follows on this axis; of the last one, the element itself, too.
        begin = at[axis] + (axis < len(shape) - 1)
        if begin < shape[axis]:
            start = (*at[:axis], begin, *(0,) * (len(shape) - axis - 1))
            yield Box(start, (*(1,) * axis, shape[axis] - begin, *shape[axis + 1 :]))
