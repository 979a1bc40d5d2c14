"""How does zarr see a dataset of HDF5: its array, and where each chunk of it lies?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from operator import mul
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from h5py import h5d, h5t

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.files.leading import External
from chunkwise.files.stored import read_box
from chunkwise.grammar import Shape
from chunkwise.grammar.boxes import Box, boxes, chunk_at, chunk_counts
from chunkwise.indexing.arrays import UnfitError, Variable, array_of, dtype_of, fill_of
from chunkwise.indexing.codecs import codecs_of
from chunkwise.indexing.inlining import inlined
from chunkwise.inspection.collect import extent_of, layout_of
from chunkwise.names import HDF5_ERRORS, hdf5_reason

# A contiguous dataset is cut into pieces of whole rows of at most this many bytes, if possible.
PIECE_NBYTES: Final = 64 << 20
# Bytes of a contiguous dataset of texts that are looked at together.
_AT_ONCE: Final = 8 << 20
_ELSEWHERE: Final = {
    "compact": "its values lie in the object header",
    "virtual": "it is virtual, and its values lie in other datasets",
    "external": "its values lie in other files",
}


@dataclass(frozen=True)
class Limits:
    """What of a file its index may refer to, and hold."""

    end: int  # Bytes of the file
    inline_nbytes: int  # Most bytes of a dataset whose values the index holds
    storage: _native.Storage | None  # The file's bytes, where no path leads to them
    external: External  # How far the file may lead for values


def variable_of(
    path: str,
    dataset: h5d.DatasetID,
    fill: Any,  # The attribute ``_FillValue``; None without
    shape: Shape,
    limits: Limits,
) -> Variable:
    """Describe a dataset for zarr."""
    try:
        return _where_it_lies(path, dataset, fill, shape, limits)
    except UnfitError as unfit:
        most, external = limits.inline_nbytes, limits.external
        return inlined(path, dataset, fill, most, shape, str(unfit), external)
    except HDF5_ERRORS as error:
        raise UnfitError(f"HDF5 cannot read it ({hdf5_reason(error)})") from None


def _where_it_lies(
    path: str, dataset: h5d.DatasetID, fill: Any, shown: Shape, limits: Limits
) -> Variable:
    shape, _ = extent_of(dataset.get_space())
    if shape is None:
        raise UnfitError("it has a null dataspace, and no values")
    dtype = dtype_of(dataset)
    if dtype is None:
        raise UnfitError("zarr has no such type")
    dcpl = dataset.get_create_plist()
    layout, _ = layout_of(dcpl)
    if layout == "chunked":
        chunk = dcpl.get_chunk()
        codecs = codecs_of(dcpl, math.prod(chunk) * dtype.itemsize)
        if isinstance(codecs, str):
            raise UnfitError(codecs)
        listing = _listing(dataset, limits.end, limits.storage)
        if codecs and listing.any_mask:
            raise UnfitError("some of its chunks are stored without all filters (filter masks)")
        unfiltered = library().unfiltered_partial_chunks
        if codecs and listing.any_partial and unfiltered(dataset.id):
            raise UnfitError("its chunks at the edge are stored without filters")
        if dtype.kind == "S":
            _require_text(dataset, listing.columns()[0])
        longer = shown != shape
        filled = dcpl.get_fill_time() != h5d.FILL_TIME_NEVER
        if not filled and any(
            length > own and own % side
            for length, own, side in zip(shown, shape, chunk, strict=True)
        ):
            raise UnfitError("its chunks at the end hold anything where netCDF shows fill values")
        missing = longer or listing.written < listing.grid_len
        array = array_of(shown, chunk, dtype, codecs, fill_of(dataset, fill, missing))
        return Variable(path, array, listing, written=shape)
    if layout != "contiguous":
        raise UnfitError(_ELSEWHERE[layout])
    address = _address_of(dataset, dtype.itemsize)
    chunk = _piece(shape, dtype.itemsize)
    pieces = () if address is None else tuple(_pieces(shape, chunk, dtype.itemsize, address))
    if pieces and pieces[-1][1] + pieces[-1][2] > limits.end:
        raise UnfitError("it lies beyond the end of the file, which is cut off")
    if pieces and dtype.kind == "S":
        _require_text(dataset, None)
    known = fill_of(dataset, fill, address is None)
    return Variable(path, array_of(shape, chunk, dtype, [], known), pieces=pieces)


def _require_text(dataset: h5d.DatasetID, positions: npt.NDArray[np.uint64] | None) -> None:
    why = _differs(dataset, positions)
    if why is not None:
        raise UnfitError(why)


def _listing(
    dataset: h5d.DatasetID, end: int, storage: _native.Storage | None = None
) -> _native.ChunkListing:
    listing = library().chunk_listing(dataset.id, storage)
    if listing.furthest > end:
        raise UnfitError("a chunk lies beyond the end of the file, which is cut off")
    return listing


def _address_of(dataset: h5d.DatasetID, itemsize: int) -> int | None:
    """Where contiguous data lies; None if nothing was written."""
    if dataset.get_storage_size() == 0:
        return None
    address = dataset.get_offset()
    if address is None:
        raise UnfitError("HDF5 does not say where it lies")
    if dataset.get_storage_size() != dataset.get_space().get_simple_extent_npoints() * itemsize:
        raise UnfitError("HDF5 stores another number of bytes than it has")
    return int(address)


def _piece(shape: Shape, itemsize: int) -> Shape:
    """Choose the shape of a piece: whole rows that divide the first dimension."""
    if not shape or 0 in shape:
        return tuple(max(length, 1) for length in shape)
    row = math.prod(shape[1:]) * itemsize
    most = max(PIECE_NBYTES // row, 1)
    if most >= shape[0]:
        return shape
    rows = next(n for n in range(most, 0, -1) if shape[0] % n == 0)
    # Many small pieces would be slower than one that is too large.
    return (rows if rows * 16 >= most else shape[0], *shape[1:])


def _pieces(
    shape: Shape, piece: Shape, itemsize: int, address: int
) -> Iterator[tuple[str, int, int]]:
    if 0 in shape:
        return
    nbytes = math.prod(piece) * itemsize
    rest = ".0" * (len(shape) - 1)
    for number in range(shape[0] // piece[0] if shape else 1):
        yield f"{number}{rest}", address + number * nbytes, nbytes


# --- texts ----------------------------------------------------------------------------

# zarr takes zeros from the end of a text of fixed length.  HDF5 may pad with spaces instead, and
# then takes these from the end; or it may end a text at its first zero, behind which anything may
# lie.


def _differs(dataset: h5d.DatasetID, positions: npt.NDArray[np.uint64] | None) -> str | None:
    """Say why zarr would read other text than HDF5; None if it reads the same."""
    stored = dataset.get_type()
    padding = stored.get_strpad()
    if padding == h5t.STR_SPACEPAD:
        return "its text is padded with spaces, which HDF5 takes away and zarr shows"
    if padding == h5t.STR_NULLPAD or stored.get_size() == 1:
        return None
    for box in _text_parts(dataset, positions):
        text = read_box(dataset, stored, box).reshape(-1, stored.get_size()) != 0
        if (np.minimum.accumulate(text, axis=1) != text).any():
            return "behind the end of its text lie other bytes, which zarr shows"
    return None


def _text_parts(dataset: h5d.DatasetID, positions: npt.NDArray[np.uint64] | None) -> Iterator[Box]:
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
