"""How many bytes does a dataset take in its file, and where do they end?

``H5Dget_storage_size`` goes through a fixed or an extensible array element by element, written or
not: for 2^25 chunks, one of them written, it takes 2 s and more.  Our census reads only what was
written.
"""

from __future__ import annotations

import math
from typing import Any, Final

from h5py import h5d, h5s

from chunkwise._lib import library

# For this many chunks, libhdf5 is quick enough; it lists all kinds of index.
_FEW: Final = 100_000


def stored_nbytes(dataset: Any) -> int:
    """Give the bytes that a dataset's data take in the file."""
    dcpl = dataset.get_create_plist()
    if dcpl.get_layout() == h5d.CHUNKED and has_long_index(dataset):
        listed = library().chunk_census(dataset.id)["stored_nbytes"]
        if listed is not None:
            return listed
    return int(dataset.get_storage_size())


def has_long_index(dataset: Any) -> bool:
    """Tell whether the index of a chunked dataset may take libhdf5 long to go through.

    What counts are the chunks that it may have room for, written or not.
    """
    space = dataset.get_space()
    if space.get_simple_extent_type() != h5s.SIMPLE:
        return False
    chunk = dataset.get_create_plist().get_chunk()
    lengths = (
        length if most == h5s.UNLIMITED else most
        for length, most in zip(space.shape, space.get_simple_extent_dims(1), strict=True)
    )
    places = math.prod(-(-n // c) for n, c in zip(lengths, chunk, strict=True))
    return bool(places > _FEW)


def data_end(dataset: Any) -> int:
    """Give the place in the file behind the last byte of a dataset's data; 0 for none."""
    layout = dataset.get_create_plist().get_layout()
    if layout == h5d.CONTIGUOUS:
        begin = dataset.get_offset()
        return 0 if begin is None else int(begin + dataset.get_storage_size())
    ends = [0]
    if layout == h5d.CHUNKED:
        dataset.chunk_iter(lambda info: ends.append(int(info.byte_offset + info.size)))
    return max(ends)
