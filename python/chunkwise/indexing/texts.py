"""Does zarr read the same text as HDF5 from the bytes of texts of fixed length?

zarr takes zeros from the end.  HDF5 may pad with spaces instead, and then takes these from the
end; or it may end a text at its first zero, behind which anything may lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from h5py import h5d, h5s, h5t

# Bytes of a contiguous dataset that are looked at together.
_AT_ONCE = 8 << 20


def differs(dataset: h5d.DatasetID, positions: npt.NDArray[np.uint64] | None) -> str | None:
    """Say why zarr would read other text than HDF5; None if it reads the same."""
    stored = dataset.get_type()
    padding = stored.get_strpad()
    if padding == h5t.STR_SPACEPAD:
        return "its text is padded with spaces, which HDF5 takes away and zarr shows"
    if padding == h5t.STR_NULLPAD or stored.get_size() == 1:
        return None
    boxes = _rows(dataset) if positions is None else _chunks(dataset, positions)
    for begin, count in boxes:
        texts = np.empty(count, f"V{stored.get_size()}")
        space = dataset.get_space()
        if count:
            space.select_hyperslab(begin, count)
        dataset.read(h5s.create_simple(count) if count else h5s.ALL, space, texts, stored)
        text = texts.reshape(-1).view("u1").reshape(-1, stored.get_size()) != 0
        if (np.minimum.accumulate(text, axis=1) != text).any():
            return "behind the end of its text lie other bytes, which zarr shows"
    return None


def _chunks(
    dataset: h5d.DatasetID, positions: npt.NDArray[np.uint64]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Give begin and lengths of chunks, as far as they are in the dataset."""
    shape, sides = dataset.shape, dataset.get_create_plist().get_chunk()
    grid = [-(-length // side) for length, side in zip(shape, sides, strict=True)]
    for position in positions:
        places = np.unravel_index(int(position), grid)
        begin = tuple(int(at) * side for at, side in zip(places, sides, strict=True))
        whole = zip(begin, sides, shape, strict=True)
        yield begin, tuple(min(side, length - at) for at, side, length in whole)


def _rows(dataset: h5d.DatasetID) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Give begin and lengths of pieces of whole rows."""
    shape: tuple[Any, ...] = dataset.shape
    if not shape:
        yield (), ()
        return
    row = max(math.prod(shape[1:]) * dataset.get_type().get_size(), 1)
    most = max(_AT_ONCE // row, 1)
    rest = (0,) * (len(shape) - 1)
    for first in range(0, shape[0], most):
        yield (first, *rest), (min(most, shape[0] - first), *shape[1:])
