"""How does libhdf5 read and write a selection, asked through h5py's low-level interface?"""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5s, h5t

from chunkwise.selection import Selection, Union


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
    shape = select(space, selection)
    if out is None:
        out = np.zeros(shape, dataset.dtype)
    if dataset.shape == ():
        out[...] = dataset[()]
    elif 0 not in shape:
        dataset.id.read(h5s.create_simple(shape), space, out, h5t.py_create(dataset.dtype))
    return out


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
        dataset.id.write(h5s.create_simple(shape), space, array, h5t.py_create(array.dtype))


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
