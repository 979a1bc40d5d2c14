"""Which elements does ``d[index] = value`` mean, and how are they stored?  None: h5py does it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import h5py
import numpy as np
from h5py import h5t

from chunkwise import _native
from chunkwise.errors import SelectionError
from chunkwise.routing.conversions import convert, identical
from chunkwise.routing.indexing import plain
from chunkwise.selecting import indexing

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]

# A value that is broadcast to more than this is written in parts.
PART_NBYTES = 32 << 20


@dataclass(frozen=True)
class Assignment:
    """An assignment, understood."""

    selection: _native.Selection  # Which elements are written
    elements: Array  # Of the dataset's dtype; it can be broadcast to the selection's choices
    # Which bytes of each element are written, as begin and end; None writes all.
    members: list[tuple[int, int]] | None = None


def assignment(dataset: h5py.Dataset, index: Any, value: Any, label: str) -> Assignment | None:
    """Understand an assignment."""
    shape, dtype = dataset.shape, dataset.dtype
    if not shape or dtype.subdtype is not None:
        return None
    index, names = indexing.without_names(index)
    members = None
    if names:
        taken = _members(dtype, names, value)
        if taken is None:
            return None
        value, members = taken
    else:
        value = _array(value, dtype)
        value = None if value is None else as_stored(value, dtype)
    if value is None:
        return None
    if plain(index):
        selection = indexing.resolve(shape, index, label)
        elements = None if selection is None else _spread(value, selection)
    else:
        selection = indexing.assigned(shape, index, label)
        elements = None if selection is None else _listed(value, selection, dataset.chunks)
    if selection is None or elements is None:
        return None
    return Assignment(selection, elements, members)


def _array(value: Any, dtype: np.dtype[Any]) -> Array | None:
    """Make an array of the values for whole elements, as h5py does."""
    if isinstance(value, np.ndarray):
        # A matrix, of a class derived from it, would stay one of two dimensions.
        return np.asarray(value)
    if dtype.kind == "O" or (dtype.kind == "S" and not isinstance(value, bytes)):
        # Text may have to be encoded.
        return None
    return np.asarray(value, dtype=dtype)


def _members(
    dtype: np.dtype[Any], names: tuple[str, ...], value: Any
) -> tuple[Array, list[tuple[int, int]]] | None:
    """Make elements with only these fields set, and say where those lie."""
    fields = dtype.fields
    if fields is None or any(name not in fields for name in names):
        return None
    if isinstance(value, np.ndarray) and value.dtype.fields is not None:
        given = value.dtype.fields
        chosen = [name for name in given if name in names]
        if not chosen or not all(identical(given[name][0], fields[name][0]) for name in chosen):
            return None
        sources = {name: value[name] for name in chosen}
    else:
        (name, *others) = names
        wanted = fields[name][0]
        opaque = isinstance(value, np.ndarray) and value.dtype.kind == "V"
        if others or opaque or wanted.subdtype is not None or wanted.kind in "VO":
            return None
        value = np.asarray(value, dtype=wanted)
        sources = {name: value}
    elements = np.zeros(value.shape, dtype)
    for name, source in sources.items():
        elements[name] = source
    ranges = [(fields[name][1], fields[name][1] + fields[name][0].itemsize) for name in sources]
    return elements, ranges


def _spread(elements: Array, selection: _native.Selection) -> Array | None:
    """Give elements that NumPy broadcasts to a selection whose integers drop dimensions."""
    kept = tuple(selection.shape)
    if 0 in kept:
        return None
    if elements.shape not in ((), kept):
        try:
            elements = np.broadcast_to(elements, kept)
        except ValueError:
            return None
    if elements.shape:
        elements = elements[tuple(None if gone else slice(None) for gone in selection.dropped)]
    return elements


def _listed(elements: Array, selection: _native.Selection, chunks: Shape | None) -> Array | None:
    """Give elements in the shape of lists and masks, to which h5py broadcasts little."""
    want, factors = tuple(selection.shape), tuple(selection.choices)
    if elements.shape == ():
        # Many are spread along the last dimension alone, which is no shape of several.
        fits = len(want) <= 1 or math.prod(chunks or ()) >= math.prod(want)
        return elements if fits else None
    if selection.is_mask:
        # The mask of the whole dataset takes as many elements in any shape.
        return elements.reshape(factors) if elements.size == math.prod(want) else None
    return elements.reshape(factors) if elements.shape == want else None


def as_stored(array: Array, dtype: np.dtype[Any]) -> Array | None:
    """The same values as a dataset of this dtype stores them, if they are converted here."""
    if dtype.subdtype is not None:
        return None
    if identical(array.dtype, dtype):
        return array
    into = np.empty(array.shape, dtype)
    return into if convert(array, into) else None


def converted(array: Array, dtype: np.dtype[Any]) -> Array:
    """The values as libhdf5 stores them in a dataset of this dtype (H5Tconvert)."""
    # What holds no numbers is given back as it is.
    if array.dtype.kind not in "iufcb" or dtype.kind not in "iufcb" or array.dtype == dtype:
        return array
    most = max(array.dtype.itemsize, dtype.itemsize)
    buffer = np.zeros(array.size * most, "u1")
    buffer[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view("u1")
    types = h5t.py_create(array.dtype), h5t.py_create(dtype, logical=True)
    h5t.convert(*types, array.size, buffer)
    return buffer[: array.size * dtype.itemsize].view(dtype).reshape(array.shape)


def resized(shape: Shape, size: Any, axis: int | None) -> Shape | None:
    """Give the shape that h5py's `resize` would make; None for what it refuses."""
    try:
        if axis is None:
            new = tuple(int(n) for n in size)
            return new if len(new) == len(shape) else None
        return (*shape[:axis], int(size), *shape[axis + 1 :]) if 0 <= axis < len(shape) else None
    except (TypeError, ValueError, OverflowError):
        return None


def axis_of(axis: int, shape: Shape | None, label: str) -> int:
    """Count an axis along which something is appended from the first."""
    rank = len(shape or ())
    if not -rank <= axis < rank:
        raise SelectionError(f"{label}: there is no axis {axis} to append along")
    return axis % rank


def appended(array: Array, shape: Shape, axis: int, label: str, inner: Shape = ()) -> Array:
    """Give an array all dimensions of a dataset to which it is appended along an axis."""
    if array.ndim == len(shape) + len(inner) - 1:
        array = np.expand_dims(array, axis)
    rows = array.shape[axis] if axis < array.ndim else 0
    if array.shape != (*shape[:axis], rows, *shape[axis + 1 :], *inner):
        raise SelectionError(
            f"{label}: an array of shape {array.shape} cannot be appended along axis {axis} to "
            f"one of shape {shape}"
        )
    return array


def parts_of(
    selection: _native.Selection, elements: Array, dataset: h5py.Dataset, label: str
) -> Iterator[tuple[_native.Selection, Array]]:
    """Cut what would take much memory once it is broadcast, along chunks."""
    shape = tuple(selection.choices)
    whole = np.broadcast_to(elements, shape)
    parts = selection.hyperslab if elements.shape != shape and whole.nbytes > PART_NBYTES else None
    if parts is None:
        yield selection, np.ascontiguousarray(whole)
        return
    most = max(PART_NBYTES // whole.itemsize, 1)
    for where, piece in indexing.pieces(parts, dataset.chunks or (1,) * len(shape), most):
        part = _native.select_hyperslabs(dataset.shape, piece, label)
        yield part, np.ascontiguousarray(whole[where])
