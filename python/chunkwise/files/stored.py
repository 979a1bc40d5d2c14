"""What does a dataset take in its file, and what of that can be had as it is stored?

``H5Dget_storage_size`` goes through every element of an array index, written or not: 2 s for 2^25.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from h5py import h5d, h5p, h5s, h5t

from chunkwise._lib import library
from chunkwise.files.opening import has_variable_length

if TYPE_CHECKING:
    import numpy.typing as npt

    from chunkwise.grammar import Shape
    from chunkwise.grammar.boxes import Box

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
    """Return whether the index of a chunked dataset may take libhdf5 long to go through."""
    # What counts are the chunks that it may have room for, written or not.
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
    return library().chunk_listing(dataset.id).furthest if layout == h5d.CHUNKED else 0


def can_be_had(dcpl: h5p.PropDCID, datatype: h5t.TypeID) -> bool:
    """Return whether h5py gives the fill value without harm to the process."""
    # It frees memory of variable-length values twice, except of a plain string.
    if dcpl.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
        return True
    return isinstance(datatype, h5t.TypeStringID) or not has_variable_length(datatype)


def read_fill(dcpl: h5p.PropDCID, datatype: h5t.TypeID, value: Any) -> None:
    """Fill an array with the fill value (H5Pget_fill_value)."""
    if not can_be_had(dcpl, datatype):
        raise TypeError("a fill value that holds what is of variable length cannot be had")
    dcpl.get_fill_value(value)


Bytes: TypeAlias = "npt.NDArray[np.uint8]"


def read_box(dataset: Any, datatype: Any, box: Box) -> Bytes:
    """Read a box as bytes of `datatype`, the dataset's own, which NumPy need not have."""
    values = np.zeros(box.size * datatype.get_size(), np.uint8)
    memory, stored = h5s.create(h5s.SCALAR), dataset.get_space()
    if box.shape:
        stored.select_hyperslab(*box)
        memory = h5s.create_simple(box.shape)
    dataset.read(memory, stored, values, datatype)
    return values


def read_attribute(attribute: Any) -> bytes:
    """Read the elements of an attribute as bytes of its own type."""
    datatype = h5t.TypeID.copy(attribute.get_type())
    elements = attribute.get_space().get_simple_extent_npoints()
    values = np.zeros(elements * datatype.get_size(), np.uint8)
    if values.size:
        attribute.read(values, datatype)
    return values.tobytes()


def written_boxes(
    dataset: Any, chunk: Shape, box: Shape, *, share: int = 1, most: int | None = None
) -> npt.NDArray[np.int64] | None:
    """Give the places of the boxes that hold a written chunk, in a grid of them; None for all."""
    # All, too, if one of `share` chunks was written, or if more than `most` were to be looked at.
    from chunkwise.grammar.boxes import chunk_counts

    shape = tuple(dataset.shape)
    listing = library().chunk_listing(dataset.id)
    if share * listing.written >= listing.grid_len:
        return None
    numbers = listing.columns()[0]
    begins = np.empty((len(numbers), len(shape)), np.int64)
    for axis, count in reversed([*enumerate(chunk_counts(shape, chunk))]):
        numbers, at = np.divmod(numbers, np.uint64(count))
        begins[:, axis] = at.astype(np.int64) * chunk[axis]
    sides = np.asarray(box, np.int64)
    first = begins // sides
    last = (np.minimum(begins + np.asarray(chunk, np.int64), np.asarray(shape)) - 1) // sides
    spans = (last - first + 1).max(axis=0, initial=0).tolist()
    if most is not None and math.prod(spans) * len(first) > most:
        return None
    places = [np.empty((0, len(shape)), np.int64)]
    for offset in product(*map(range, spans)):
        one = first + np.asarray(offset, np.int64)
        places.append(one[(one <= last).all(axis=1)])
    return np.unique(np.concatenate(places), axis=0)
