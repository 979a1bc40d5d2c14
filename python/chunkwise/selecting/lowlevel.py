"""How does libhdf5 read and write a selection, asked through h5py's low-level interface?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5s, h5t

from chunkwise.selection import Selection, Union

if TYPE_CHECKING:
    from chunkwise._native import Factor
    from chunkwise.selecting.indexing import Request


def read(
    dataset: h5py.Dataset, selection: Selection | Union, out: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    """Read a selection with one ``H5Dread``.

    Parameters
    ----------
    dataset : h5py.Dataset
        Not of a null dataspace.
    selection : Selection or Union
        Known to fit the dataset, or libhdf5 raises what it raises.
    out : ndarray, optional
        Of the shape of what is read and the dataset's dtype; None makes a new one.

    Returns
    -------
    ndarray
        Of the hyperslab's shape; of a union, its elements in row-major order.
    """
    space = dataset.id.get_space()
    return read_selected(dataset, space, select(space, selection), out)


def read_selected(
    dataset: h5py.Dataset,
    space: h5s.SpaceID,
    shape: tuple[int, ...],
    out: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Read what is selected in the dataset's space; `shape` is what `select` returned."""
    if out is None:
        out = np.zeros(shape, dataset.dtype)
    if dataset.shape == ():
        out[...] = dataset[()]
    elif 0 not in shape:
        dataset.id.read(h5s.create_simple(shape), space, out, h5t.py_create(dataset.dtype))
    return out


def read_request(dataset: h5py.Dataset, request: Request) -> npt.NDArray[Any]:
    """Read an index that h5py refuses.

    Slices are read forwards and turned round, the indices of a list once each and in order.
    What is left, several lists and paired ones, is read element by element.

    Parameters
    ----------
    dataset : h5py.Dataset
        Neither of a null dataspace nor a scalar.
    request : Request
        An index of it.

    Returns
    -------
    ndarray
        C-contiguous, of the request's shape.
    """
    if 0 in request.shape:
        # Which libhdf5 refuses to select, where there is a list.
        return np.zeros(request.shape, dataset.dtype)
    index: list[Any] = []
    turned: list[Any] = []
    lists = 0
    for factor, size in zip(request.factors, request.product.shape, strict=False):
        if isinstance(factor, tuple):
            forwards, turn = _forwards(*factor)
            index.append(forwards)
            turned.append(turn)
            continue
        lists += 1
        coordinates = _coordinates(factor, dataset.shape[len(index) :])
        if len(coordinates) > 1 or lists > 1:
            return _read_elements(dataset, request)
        once, where = np.unique(coordinates[0], return_inverse=True)
        index.append(once if size else slice(0, 0))
        turned.append(where)
    got = dataset[tuple(index)][tuple(turned)]
    return np.ascontiguousarray(got).reshape(request.shape + element_of(dataset.dtype)[1])


def element_of(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """What NumPy makes of a dtype in an array: its innermost dtype, and the dimensions it adds.

    An array type of HDF5 may be one of arrays, whose dimensions come after its own.
    """
    inner: tuple[int, ...] = ()
    while dtype.subdtype is not None:
        dtype, shape = dtype.subdtype
        inner += shape
    return dtype, inner


def _read_elements(dataset: h5py.Dataset, request: Request) -> npt.NDArray[Any]:
    """Read a request element by element, with one ``H5Dread``."""
    choices = tuple(request.product.shape)
    coordinates = np.empty((*choices, len(dataset.shape)), np.uint64)
    first = 0
    factors = [*request.factors]
    for position in range(len(choices)):
        if position < len(factors):
            columns = _coordinates(factors[position], dataset.shape[first:])
        else:
            columns = [np.arange(dataset.shape[first])]
        for column in columns:
            # Along this factor's choices, and the same for all choices of the others.
            along = column.reshape((-1,) + (1,) * (len(choices) - 1 - position))
            coordinates[..., first] = along
            first += 1
    elements = coordinates.reshape(-1, len(dataset.shape))
    out = np.zeros(len(elements), dataset.dtype)
    if len(elements):
        space = dataset.id.get_space()
        space.select_elements(elements)
        memory = h5s.create_simple((len(elements),))
        dataset.id.read(memory, space, out, h5t.py_create(dataset.dtype))
    return out.reshape(request.shape + element_of(dataset.dtype)[1])


def _forwards(start: int, step: int, count: int) -> tuple[slice, slice]:
    """Return a slice that h5py takes, and how to turn round what it gives."""
    last = start + (count - 1) * step
    if count == 0:
        return slice(0, 0), slice(None)
    if step > 0:
        return slice(start, last + 1, step), slice(None)
    return slice(last, start + 1, -step), slice(None, None, -1)


def _coordinates(factor: Factor, shape: tuple[int, ...]) -> list[npt.NDArray[np.int64]]:
    """Return what a factor chooses of the first dimensions of `shape`, an array each."""
    if isinstance(factor, tuple):
        start, step, count = factor
        return [start + step * np.arange(count)]
    if isinstance(factor, np.ndarray):
        return list(factor.nonzero())
    columns = cast("list[npt.NDArray[np.int64]]", factor)
    # Checked before: none lies below -size.
    return [np.where(c < 0, c + n, c) for c, n in zip(columns, shape, strict=False)]


def write(dataset: h5py.Dataset, selection: Selection | Union, array: npt.NDArray[Any]) -> None:
    """Write a selection with one ``H5Dwrite``.

    Parameters
    ----------
    dataset : h5py.Dataset
        Open for writing; neither a null dataspace nor a scalar.
    selection : Selection or Union
        Known to fit the dataset.
    array : ndarray
        As `read` gives it, of the dataset's dtype.
    """
    space = dataset.id.get_space()
    shape = select(space, selection)
    if 0 not in shape:
        write_selected(dataset, space, shape, array)


def write_selected(
    dataset: h5py.Dataset, space: h5s.SpaceID, shape: tuple[int, ...], array: npt.NDArray[Any]
) -> None:
    """Write to what is selected in the dataset's space; `shape` is that of the selection."""
    kind = array.dtype
    if dataset.dtype.subdtype is not None:
        # An element is an array here, and libhdf5 makes none of single numbers.
        kind = dataset.dtype
        array = np.ascontiguousarray(array, element_of(kind)[0])
    dataset.id.write(h5s.create_simple(shape), space, array, h5t.py_create(kind))


def select(space: h5s.SpaceID, selection: Selection | Union) -> tuple[int, ...]:
    """Select in a dataspace, and return the shape of what is selected.

    A union is put together one hyperslab after the other.
    """
    how = h5s.SELECT_SET
    for one in selection.hyperslabs:
        if 0 in one.shape or one.shape == ():
            continue
        # A stride of 0, which means nothing where there is one block, is an error there.
        stride = tuple(max(step, 1) for step in one.stride)
        space.select_hyperslab(one.start, one.count, stride, one.block, op=how)
        how = h5s.SELECT_OR
    if isinstance(selection, Selection):
        return selection.shape
    # Without any of them everything is selected still.
    chosen = any(0 not in one.shape for one in selection.hyperslabs)
    return (space.get_select_npoints() if chosen else 0,)
