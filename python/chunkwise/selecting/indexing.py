"""Which elements does the index between the brackets, or a selection, take?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import index as as_int
from typing import Any, TypeAlias

import numpy as np

from chunkwise import _native
from chunkwise.errors import SelectionError
from chunkwise.selection import Selection

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
Hyperslab = tuple[list[int], list[int], list[int], list[int]]


def resolve(
    shape: Shape | None, wanted: Any, label: str, *, paired: bool = False
) -> _native.Selection | None:
    """Find out which elements of an array the selection takes."""
    if shape is None:
        raise SelectionError(f"{label}: a null dataspace holds nothing to read")
    if isinstance(wanted, Selection):
        return wanted.resolve(shape, label)
    return _native.select_index(shape, wanted, label, paired=paired)


def without_names(index: Any) -> tuple[Any, tuple[str, ...]]:
    """Separate the names of fields in an index from the rest of it."""
    items = index if isinstance(index, tuple) else (index,)
    names = tuple(item for item in items if isinstance(item, str))
    return (tuple(item for item in items if not isinstance(item, str)) if names else index), names


def assigned(shape: Shape, index: Any, label: str) -> _native.Selection | None:
    """Read an index to which h5py assigns: one list or mask, with integers and slices."""
    items = index if isinstance(index, tuple) else (index,)
    if len(items) == 1 and _is_mask(items[0]) and items[0].shape == shape:
        return _unless_empty(_native.select_index(shape, items[0], label))
    ellipses = [at for at, item in enumerate(items) if item is Ellipsis]
    at = ellipses[0] if ellipses else len(items)
    given = (*items[:at], *items[at + 1 :])
    if len(ellipses) > 1 or len(given) > len(shape):
        return None
    whole = (slice(None),) * (len(shape) - len(given))
    entries: list[int | slice | Array] = []
    for size, item in zip(shape, (*given[:at], *whole, *given[at:]), strict=True):
        entry = _assigned_entry(item, size)
        if entry is None:
            return None
        if len(shape) == 1 and np.asarray(item).dtype.kind == "b":
            # If a mask is no array, h5py takes it for something else.
            return None
        entries.append(entry)
    if sum(isinstance(entry, np.ndarray) for entry in entries) != 1:
        return None
    return _unless_empty(_native.select_index(shape, tuple(entries), label))


def _unless_empty(selection: _native.Selection | None) -> _native.Selection | None:
    return None if selection is None or 0 in selection.shape else selection


def _is_mask(item: Any) -> bool:
    return isinstance(item, np.ndarray) and item.dtype.kind == "b" and item.ndim > 0


def _assigned_entry(item: Any, size: int) -> int | slice | Array | None:
    """Return an entry to which h5py assigns, None for any other; lists are in rising order."""
    if isinstance(item, slice):
        try:
            return item if item.indices(size)[2] > 0 else None
        except (TypeError, ValueError):
            return None
    if isinstance(item, bool | np.bool_):
        return None
    if not isinstance(item, list | np.ndarray):
        try:
            place = as_int(item)
        except TypeError:
            return None
        return place if -size <= place < size else None
    try:
        array = np.asarray(item)
    except (ValueError, OverflowError):
        return None
    if array.ndim != 1 or array.dtype.kind not in "iub" or not array.size:
        return None
    if array.dtype.kind == "b":
        places = array.nonzero()[0]
        return places if array.shape == (size,) and places.size else None
    # Also where they are counted without a sign, or lie beyond 64 bits.
    if not (-size <= int(array.min()) and int(array.max()) < size):
        return None
    places = array.astype(np.int64)
    places = np.where(places < 0, places + size, places)
    return places if (places[1:] > places[:-1]).all() else None


def pieces(
    parts: Hyperslab, chunk: Shape, most: int, where: tuple[slice, ...] = ()
) -> Iterator[tuple[tuple[slice, ...], Hyperslab]]:
    """Cut a hyperslab to pieces of at most this many elements, along chunks: no two share one."""
    # Each comes with its place among the elements.  Dimensions of `where` are cut already.
    start, stride, count, block = parts
    shape = [n * length for n, length in zip(count, block, strict=True)]
    axis = len(where)
    if axis == len(shape) or math.prod(shape) <= most:
        yield where, parts
        return
    one_by_one = count[axis] > 1
    if one_by_one and block[axis] > 1:
        yield from pieces(parts, chunk, most, (*where, slice(None)))
        return
    step = stride[axis] if one_by_one else 1
    row_of_chunks = math.prod(shape) // shape[axis] * -(-chunk[axis] // step)
    chunks = max(most // row_of_chunks, 1)
    first = 0
    while first < shape[axis]:
        begin = start[axis] + first * step
        border = (begin // chunk[axis] + chunks) * chunk[axis]
        length = min(-(-(border - begin) // step), shape[axis] - first)
        piece = (
            _with(start, axis, begin),
            stride,
            _with(count, axis, length if one_by_one else 1),
            _with(block, axis, 1 if one_by_one else length),
        )
        yield from pieces(piece, chunk, most, (*where, slice(first, first + length)))
        first += length


def _with(values: list[int], axis: int, value: int) -> list[int]:
    return [*values[:axis], value, *values[axis + 1 :]]
