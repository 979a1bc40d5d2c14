"""How does libhdf5 read and write a selection, through h5py's low-level interface?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5s, h5t

if TYPE_CHECKING:
    import numpy.typing as npt

    from chunkwise import _native
    from chunkwise._native import Factor, Hyperslab


def read(
    dataset: h5py.Dataset, selection: _native.Selection, out: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    """Read a selection, also one for which h5py has no index."""
    # Hyperslabs, unions, several lists and paired ones are read with one ``H5Dread``, lists
    # element by element.  Otherwise slices are read forwards and turned round, the indices of a
    # list once each and in order.
    if selection.hyperslabs is None:
        made = _read_product(dataset, selection)
        if out is None:
            return made
        np.copyto(out, made)
        return out
    space = dataset.id.get_space()
    select(space, selection.hyperslabs)
    made = read_selected(dataset, space, tuple(selection.choices), out)
    if out is not None:
        return out
    return made.reshape(tuple(selection.shape) + element_of(dataset.dtype)[1])


def read_selected(
    dataset: h5py.Dataset,
    space: h5s.SpaceID,
    shape: tuple[int, ...],
    out: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Read what is selected in the dataset's space, of this shape."""
    if out is None:
        out = np.zeros(shape, dataset.dtype)
    if dataset.shape == ():
        out[...] = dataset[()]
    elif 0 not in shape:
        dataset.id.read(h5s.create_simple(shape), space, out, h5t.py_create(dataset.dtype))
    return out


def write(dataset: h5py.Dataset, selection: _native.Selection, array: npt.NDArray[Any]) -> None:
    """Write a selection with one ``H5Dwrite``."""
    shape = tuple(selection.choices)
    if 0 in shape:
        return
    space = dataset.id.get_space()
    if selection.hyperslabs is None:
        coordinates = _elements(dataset.shape, selection)
        space.select_elements(coordinates)
        shape = (len(coordinates),)
    else:
        select(space, selection.hyperslabs)
    write_selected(dataset, space, shape, array)


def write_selected(
    dataset: h5py.Dataset, space: h5s.SpaceID, shape: tuple[int, ...], array: npt.NDArray[Any]
) -> None:
    """Write to what is selected in the dataset's space, of this shape."""
    kind = array.dtype
    if dataset.dtype.subdtype is not None:
        # An element is an array here, and libhdf5 makes none of single numbers.
        kind = dataset.dtype
        array = np.ascontiguousarray(array, element_of(kind)[0])
    dataset.id.write(h5s.create_simple(shape), space, array, h5t.py_create(kind))


def select(space: h5s.SpaceID, hyperslabs: Iterable[Hyperslab]) -> None:
    """Select what these hyperslabs select, one after the other."""
    how = h5s.SELECT_SET
    for start, stride, count, block in hyperslabs:
        if 0 in count or 0 in block or not count:
            continue
        # A stride of 0, which means nothing if there is one block, is an error there.
        strides = tuple(max(step, 1) for step in stride)
        space.select_hyperslab(tuple(start), tuple(count), strides, tuple(block), op=how)
        how = h5s.SELECT_OR
    if how == h5s.SELECT_SET:
        space.select_none()


def element_of(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """What NumPy makes of a dtype in an array: its innermost dtype, and the dimensions it adds."""
    # An array type of HDF5 may be one of arrays, whose dimensions come after its own.
    inner: tuple[int, ...] = ()
    while dtype.subdtype is not None:
        dtype, shape = dtype.subdtype
        inner += shape
    return dtype, inner


def _read_product(dataset: h5py.Dataset, selection: _native.Selection) -> npt.NDArray[Any]:
    shape = tuple(selection.shape) + element_of(dataset.dtype)[1]
    if 0 in selection.shape:
        # libhdf5 refuses to select this if there is a list.
        return np.zeros(shape, element_of(dataset.dtype)[0])
    index: list[Any] = []
    turned: list[Any] = []
    lists = 0
    for factor in selection.factors:
        if isinstance(factor, tuple):
            forwards, turn = _forwards(*factor)
            index.append(forwards)
            turned.append(turn)
            continue
        lists += 1
        if len(factor) > 1 or lists > 1:
            return _read_elements(dataset, selection).reshape(shape)
        once, where = np.unique(factor[0], return_inverse=True)
        index.append(once)
        turned.append(where)
    return np.ascontiguousarray(dataset[tuple(index)][tuple(turned)]).reshape(shape)


def _read_elements(dataset: h5py.Dataset, selection: _native.Selection) -> npt.NDArray[Any]:
    """Read a product element by element, with one ``H5Dread``."""
    coordinates = _elements(dataset.shape, selection)
    space = dataset.id.get_space()
    space.select_elements(coordinates)
    return read_selected(dataset, space, (len(coordinates),))


def _elements(shape: tuple[int, ...], selection: _native.Selection) -> npt.NDArray[np.uint64]:
    """Coordinates of each element of a product, a row each, in the order of the result."""
    choices = tuple(selection.choices)
    coordinates = np.empty((*choices, len(shape)), np.uint64)
    dimension = 0
    for position, factor in enumerate(selection.factors):
        for column in _columns(factor):
            # Along this factor's choices, and the same for all choices of the others.
            along = column.reshape((-1,) + (1,) * (len(choices) - 1 - position))
            coordinates[..., dimension] = along
            dimension += 1
    return coordinates.reshape(-1, len(shape))


def _columns(factor: Factor) -> list[npt.NDArray[Any]]:
    """Coordinates of a factor's choices, an array a dimension."""
    if isinstance(factor, tuple):
        start, step, count = factor
        return [start + step * np.arange(count)]
    return list(factor)


def _forwards(start: int, step: int, count: int) -> tuple[slice, slice]:
    """Return a slice that h5py takes, and how to turn round what it gives."""
    last = start + (count - 1) * step
    if count == 0:
        return slice(0, 0), slice(None)
    if step > 0:
        return slice(start, last + 1, step), slice(None)
    return slice(last, start + 1, -step), slice(None, None, -1)
