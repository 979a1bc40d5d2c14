"""Which elements does ``d[index] = value`` mean, and how are they stored?

What is answered with None is left to h5py: its own conversions, indices and broadcasting.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5t

from chunkwise import _native
from chunkwise.conversions import convert, exact, identical
from chunkwise.selection import Selection

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

# A value that is broadcast to more than this is written in parts.
PART_NBYTES = 32 << 20


def assignment(dataset: h5py.Dataset, index: Any, value: Any, label: str) -> Any:
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
    tuple of Selection and ndarray, or None
        The array has the dataset's dtype and can be broadcast to the selection's shape.

    Raises
    ------
    chunkwise.errors.SelectionError
        For an index that does not fit the dataset.
    """
    shape = dataset.shape
    if not shape or dataset.dtype.subdtype is not None:
        return None
    parts = _native.hyperslab_of(shape, index, label)
    if parts is None:
        return None
    selection = Selection(*(tuple(part) for part in parts))
    if 0 in selection.shape:
        return None
    if not isinstance(value, np.ndarray):
        if dataset.dtype.kind not in "iufcb":
            return None
        value = np.asarray(value, dtype=dataset.dtype)
    elements = as_stored(value, dataset.dtype)
    if elements is None:
        return None
    dropped = _integers(index, len(shape))
    kept = tuple(n for n, gone in zip(selection.shape, dropped, strict=True) if not gone)
    if elements.shape not in ((), kept):
        try:
            elements = np.broadcast_to(elements, kept)
        except ValueError:
            return None
    if elements.shape:
        elements = elements[tuple(None if gone else slice(None) for gone in dropped)]
    return selection, elements


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
