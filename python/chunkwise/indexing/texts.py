"""Does zarr read the same text as HDF5 from the bytes of texts of fixed length?

zarr takes zeros from the end.  HDF5 may pad with spaces instead, and then takes these from the
end; or it may end a text at its first zero, behind which anything may lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import mul

import numpy as np
import numpy.typing as npt
from h5py import h5d, h5t

from chunkwise.files.raw import read_box
from chunkwise.grammar.boxes import Box, boxes, chunk_at, chunk_counts

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
    for box in _parts(dataset, positions):
        text = read_box(dataset, stored, box).reshape(-1, stored.get_size()) != 0
        if (np.minimum.accumulate(text, axis=1) != text).any():
            return "behind the end of its text lie other bytes, which zarr shows"
    return None


def _parts(dataset: h5d.DatasetID, positions: npt.NDArray[np.uint64] | None) -> Iterator[Box]:
    """Give chunks, or all of a dataset without chunks in parts."""
    shape = tuple(dataset.shape)
    if positions is None:
        yield from boxes(
            shape, (1,) * len(shape), max(_AT_ONCE // dataset.get_type().get_size(), 1)
        )
        return
    chunk = dataset.get_create_plist().get_chunk()
    for position in positions.tolist():
        place = np.unravel_index(position, chunk_counts(shape, chunk))
        yield chunk_at(shape, chunk, tuple(map(mul, map(int, place), chunk)))
