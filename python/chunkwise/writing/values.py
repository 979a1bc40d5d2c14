"""Which elements does ``d[index] = value`` mean, and how are they stored?

What is answered with None is left to h5py: its own conversions, indices and broadcasting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5t

from chunkwise import _native
from chunkwise.routing.conversions import convert, exact, identical
from chunkwise.selecting import indexing
from chunkwise.selecting.indexing import Request
from chunkwise.selection import Selection, Union

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

# A value that is broadcast to more than this is written in parts.
PART_NBYTES = 32 << 20


@dataclass(frozen=True)
class Assignment:
    """An assignment, understood.

    Attributes
    ----------
    selection : Selection, Union or chunkwise._native.Product
        Which elements are written.
    elements : ndarray
        Of the dataset's dtype; it can be broadcast to the selection's shape.
    members : list of tuple of int, optional
        Which bytes of each element are written, as begin and end; None writes all.
    """

    selection: Selection | Union | _native.Product
    elements: Array
    members: list[tuple[int, int]] | None = None


def assignment(dataset: h5py.Dataset, index: Any, value: Any, label: str) -> Assignment | None:
    """Understand an assignment.

    Parameters
    ----------
    dataset : h5py.Dataset
        With dimensions or without.
    index, value : object
        As h5py takes them.
    label : str
        What an error begins with.

    Returns
    -------
    Assignment or None

    Raises
    ------
    chunkwise.errors.SelectionError
        For an index that does not fit the dataset.
    """
    shape, dtype = dataset.shape, dataset.dtype
    if not shape or dtype.subdtype is not None:
        return None
    index, names = _without_names(index)
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
    parts = _native.hyperslab_of(shape, index, label)
    if parts is not None:
        selection = Selection(*(tuple(part) for part in parts))
        elements = _spread(value, selection, _integers(index, len(shape)))
        return None if elements is None else Assignment(selection, elements, members)
    request = indexing.assigned(shape, index, label)
    if request is None:
        return None
    elements = _listed(value, request, dataset.chunks)
    return None if elements is None else Assignment(request.product, elements, members)


def _without_names(index: Any) -> tuple[Any, tuple[str, ...]]:
    """Tell the names of fields in an index from the rest of it."""
    items = index if isinstance(index, tuple) else (index,)
    names = tuple(item for item in items if isinstance(item, str))
    return (tuple(item for item in items if not isinstance(item, str)) if names else index), names


def _array(value: Any, dtype: np.dtype[Any]) -> Array | None:
    """Make an array of what is assigned to whole elements, as h5py does."""
    if isinstance(value, np.ndarray):
        return value
    if dtype.kind == "O" or (dtype.kind == "S" and not isinstance(value, bytes)):
        # Text may have to be encoded.
        return None
    return np.asarray(value, dtype=dtype)


def _members(
    dtype: np.dtype[Any], names: tuple[str, ...], value: Any
) -> tuple[Array, list[tuple[int, int]]] | None:
    """Make elements of which only these fields are set, and tell where those lie."""
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
        if others or wanted.subdtype is not None or wanted.kind in "VO":
            return None
        value = np.asarray(value, dtype=wanted)
        sources = {name: value}
    elements = np.zeros(value.shape, dtype)
    for name, source in sources.items():
        elements[name] = source
    ranges = [(fields[name][1], fields[name][1] + fields[name][0].itemsize) for name in sources]
    return elements, ranges


def _spread(elements: Array, selection: Selection, dropped: list[bool]) -> Array | None:
    """Give elements that NumPy broadcasts to a selection whose integers drop dimensions."""
    if 0 in selection.shape:
        return None
    kept = tuple(n for n, gone in zip(selection.shape, dropped, strict=True) if not gone)
    if elements.shape not in ((), kept):
        try:
            elements = np.broadcast_to(elements, kept)
        except ValueError:
            return None
    if elements.shape:
        elements = elements[tuple(None if gone else slice(None) for gone in dropped)]
    return elements


def _listed(elements: Array, request: Request, chunks: Shape | None) -> Array | None:
    """Give elements in the shape of lists and masks, to which h5py broadcasts little."""
    want, factors = request.shape, tuple(request.product.shape)
    if elements.shape == ():
        # Many are spread along the last dimension alone, which is no shape of several.
        fits = len(want) <= 1 or math.prod(chunks or ()) >= math.prod(want)
        return elements if fits else None
    if request.is_mask:
        # The mask of the whole dataset takes as many elements in any shape.
        return elements.reshape(factors) if elements.size == math.prod(want) else None
    return elements.reshape(factors) if elements.shape == want else None


def as_stored(array: Array, dtype: np.dtype[Any]) -> Array | None:
    """The same values as a dataset of this dtype stores them, if NumPy makes those exactly."""
    if dtype.subdtype is not None:
        return None
    if identical(array.dtype, dtype):
        return array
    if array.dtype.kind in "iu" and dtype.kind in "iu" and not dtype.metadata and array.size:
        # What does not fit is clipped by libhdf5, and wraps around here.
        limits = np.iinfo(dtype)
        fits = limits.min <= int(array.min()) and int(array.max()) <= limits.max
        return array.astype(dtype) if fits else None
    if array.dtype.fields is not None or not exact(array.dtype, dtype):
        return None
    into = np.empty(array.shape, dtype)
    return into if convert(array, into) else None


def converted(array: Array, dtype: np.dtype[Any]) -> Array:
    """The values as libhdf5 stores them in a dataset of this dtype (H5Tconvert).

    What holds no numbers is given back as it is.
    """
    if array.dtype.kind not in "iufcb" or dtype.kind not in "iufcb" or array.dtype == dtype:
        return array
    most = max(array.dtype.itemsize, dtype.itemsize)
    buffer = np.zeros(array.size * most, "u1")
    buffer[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view("u1")
    types = h5t.py_create(array.dtype), h5t.py_create(dtype, logical=True)
    h5t.convert(*types, array.size, buffer)
    return buffer[: array.size * dtype.itemsize].view(dtype).reshape(array.shape)


def parts_of(
    selection: Selection, elements: Array, chunks: Shape | None
) -> Iterator[tuple[Selection, Array]]:
    """Cut what would take much memory once it is broadcast, along chunks of the first axis.

    Parameters
    ----------
    selection : Selection
        Of at least one dimension and element.
    elements : ndarray
        Which can be broadcast to its shape.
    chunks : tuple of int, optional
        Shape of a chunk.

    Yields
    ------
    tuple of Selection and ndarray
        Selections one after the other, and their elements, C-contiguous.
    """
    shape = selection.shape
    whole = np.broadcast_to(elements, shape)
    start, stride = selection.start[0], selection.stride[0]
    count, block = selection.count[0], selection.block[0]
    if elements.shape == shape or whole.nbytes <= PART_NBYTES or (count > 1 and block > 1):
        yield selection, np.ascontiguousarray(whole)
        return
    step = stride if block == 1 and count > 1 else 1
    chunk = chunks[0] if chunks else 1
    rows = max(PART_NBYTES // (whole.nbytes // shape[0]), 1) * step
    first = 0
    while first < shape[0]:
        begin = start + first * step
        # Where a chunk ends, if one does.
        end = begin + rows
        end = max(end // chunk * chunk, begin + step) if rows >= chunk else end
        last = min(first + -(-(end - begin) // step), shape[0])
        part = Selection(
            (begin, *selection.start[1:]),
            (step, *selection.stride[1:]),
            (last - first, *selection.count[1:]),
            (1, *selection.block[1:]),
        )
        yield part, np.ascontiguousarray(whole[first:last])
        first = last


def _integers(index: Any, rank: int) -> list[bool]:
    """Tell which dimensions an index of integers, slices and an Ellipsis drops."""
    items = index if isinstance(index, tuple) else (index,)
    missing = rank - sum(item is not Ellipsis for item in items)
    dropped: list[bool] = []
    for item in items:
        dropped += [False] * missing if item is Ellipsis else [not isinstance(item, slice)]
    return dropped + [False] * (rank - len(dropped))
