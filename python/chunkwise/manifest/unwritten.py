"""Which tiles of a dataset hold values that were written?

A file of a few bytes may claim any number of elements.  The work of summing them follows what is
stored: tiles in which nothing was written have one checksum for each shape, computed once.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from h5py import h5d

from chunkwise._lib import library
from chunkwise.dataset import Dataset
from chunkwise.errors import CannotJudgeError
from chunkwise.grammar import Shape, format_size
from chunkwise.grammar.boxes import chunk_counts
from chunkwise.manifest.tiles import Tiles
from chunkwise.words import counted

# So few are read, written or not.
_FEW: Final = 4
# The most whose checksums are put together though nothing was written in nearly all of them.
_MOST: Final = 1 << 24
# No file holds more values in its bytes (deflate makes 1,032 of one), except in small files.
_VALUES_OF_A_BYTE: Final = 2_000
_SMALL_NBYTES: Final = 1 << 30
# Of values whose files nobody could find beforehand.
_UNKNOWN_NBYTES: Final = 64 << 30


def written_tiles(dataset: Dataset, tiles: Tiles, chunk: Shape) -> npt.NDArray[np.int64] | None:
    """Number the tiles in which something was written; None if all are to be read."""
    if tiles.count <= _FEW:
        return None
    dcpl = dataset.id.get_create_plist()
    layout = dcpl.get_layout()
    if layout == h5d.VIRTUAL or dcpl.get_external_count():
        _check_elsewhere(dataset)
        return None
    found: npt.NDArray[np.int64] | None
    if layout == h5d.CONTIGUOUS:
        found = None if dataset.id.get_storage_size() else np.zeros(0, np.int64)
    else:
        found = _of_chunks(dataset, tiles, chunk)
    if found is None or 4 * len(found) >= tiles.count:
        return None
    if tiles.count > _MOST:
        raise CannotJudgeError(
            f"it has {counted(tiles.count, 'tile')} of at most 4 MiB, and values were written in "
            f"{len(found):,} of them: too many to be summed (up to {_MOST:,})"
        )
    return found


def _of_chunks(dataset: Dataset, tiles: Tiles, chunk: Shape) -> npt.NDArray[np.int64] | None:
    listing = library().chunk_listing(dataset.id.id)
    if 4 * listing.written >= listing.grid_len:
        return None
    shape = dataset.shape
    numbers: npt.NDArray[Any] = listing.columns()[0]
    begins = np.empty((len(numbers), len(shape)), np.int64)
    for d, count in reversed([*enumerate(chunk_counts(shape, chunk))]):
        numbers, at = np.divmod(numbers, np.uint64(count))
        begins[:, d] = at.astype(np.int64) * chunk[d]
    ends = np.minimum(begins + np.array(chunk, np.int64), np.array(shape, np.int64))
    return tiles.numbers(begins, ends, _MOST)


def _check_elsewhere(dataset: Dataset) -> None:
    """Refuse values in other files that are far more than these files have bytes."""
    try:
        sources = getattr(dataset._bound().bound, "sources", None)
    except TypeError:
        # Of a type that NumPy lacks.
        sources = None
    nbytes = math.prod(dataset.shape) * dataset.id.get_type().get_size()
    most = _UNKNOWN_NBYTES if sources is None else _VALUES_OF_A_BYTE * sources.nbytes
    if nbytes > max(most, _SMALL_NBYTES):
        raise CannotJudgeError(
            f"it has {format_size(nbytes)} of values, far more than the files to which it leads "
            "can hold: too many to be summed"
        )
