"""What does a damaged file hold without a link, and what lay behind its end?

Object headers are found by their form.  libhdf5 opens a copy of a file that was cut off, with
zeros at its end: it refuses metadata of zeros; data of zeros is found here by its place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5d, h5t

from chunkwise import _native
from chunkwise.files.netcdf3 import is_netcdf3
from chunkwise.files.opening import is_plain
from chunkwise.files.superblock import read_superblock
from chunkwise.grammar import Shape
from chunkwise.grammar.boxes import Box, chunk_at
from chunkwise.names import HDF5_ERRORS, decode_name
from chunkwise.repacking.records import Missing

# How headers of objects begin: of version 2 by their signature; of version 1 by version, reserved;
# then this many messages, the names of the object, bytes; reserved.
_HEADER: Final = re.compile(
    rb"OHDR\x02|\x01\x00..[\x01-\xff].\x00\x00..\x00\x00\x00\x00\x00\x00", re.DOTALL
)
_MOST: Final = 100_000


def orphans(path: Path) -> list[int]:
    """Give where object headers of groups and datasets lie, groups first, linked or not."""
    # Addresses count from the superblock's base.  At most 100,000 are given.
    if path.stat().st_size == 0:
        return []
    superblock = read_superblock(path)
    base = superblock.offset if superblock is not None else 0
    found: dict[str | None, list[int]] = {"group": [], "dataset": []}
    view = np.memmap(path, np.uint8, "r")
    for match in _HEADER.finditer(view.data, base):
        address = match.start() - base
        found.get(_native.kind_at(view, base, address), []).append(address)
        if sum(map(len, found.values())) == _MOST:
            break
    return [*found["group"], *found["dataset"]]


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
