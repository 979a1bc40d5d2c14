"""What replaces the methods of h5py that read and write?

If the engine would not do exactly what h5py does, h5py's method does, also for its exceptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5s
from h5py._hl import dataset as h5py_dataset

from chunkwise.dataset import Dataset
from chunkwise.files import unwritten
from chunkwise.handles import pending
from chunkwise.names import WIDE_LENGTHS, said_wide
from chunkwise.routing import bindings, reading
from chunkwise.routing.eligibility import Left
from chunkwise.writing import at_once

Method = Callable[..., Any]
# Class or module, function name, and replacement, whose __wrapped__ is the original.
Replacement = tuple[type | ModuleType, str, Method]


def replacements(writes: bool) -> list[Replacement]:
    """What to put in the place of h5py's methods as they are now, with those that write or not."""
    dataset = h5py.Dataset
    reading_ones: list[Replacement] = [
        (dataset, "__getitem__", _getitem(dataset.__getitem__)),
        (dataset, "__array__", _array(dataset.__array__)),
        (dataset, "read_direct", _read_direct(dataset.read_direct)),
        (h5py.Group, "__getitem__", _member(h5py.Group.__getitem__)),
    ]
    if not writes:
        return reading_ones
    setitem = dataset.__setitem__
    return [
        *reading_ones,
        (dataset, "__setitem__", _setitem(setitem)),
        (dataset, "write_direct", _write_direct(dataset.write_direct, setitem)),
        (h5py_dataset, "make_new_dset", _make_new_dset(h5py_dataset.make_new_dset, setitem)),
    ]


def _getitem(original: Method) -> Method:
    @wraps(original)
    def __getitem__(self: h5py.Dataset, args: Any, new_dtype: Any = None) -> Any:  # noqa: N807
        if not isinstance(self, Dataset):
            binding = bindings.binding_of(self)
            found = reading.read(self, binding, args, new_dtype)
            if not isinstance(found, Left):
                return found
            if binding.bound is None:
                pending.settle_for_h5py(self)
        return original(self, args, new_dtype)

    return __getitem__


def _member(original: Method) -> Method:
    @wraps(original)
    def __getitem__(self: h5py.Group, name: Any) -> Any:  # noqa: N807
        try:
            return original(self, name)
        except KeyError as error:
            if WIDE_LENGTHS not in str(error):
                raise
            raise said_wide(error) from error

    return __getitem__


def _array(original: Method) -> Method:
    @wraps(original)
    def __array__(self: h5py.Dataset, dtype: Any = None, copy: Any = None) -> Any:  # noqa: N807
        if copy is not False and not isinstance(self, Dataset):
            binding = bindings.binding_of(self)
            # h5py refuses elements that are arrays; others it reads by read_direct, which is ours.
            if binding.bound is not None and not binding.bound.has_arrays:
                wanted = self.dtype if dtype is None else dtype
                found = reading.read(self, binding, ..., wanted, comes_again=True)
                if not isinstance(found, Left):
                    return found
        # Before 3.12 h5py did not know of `copy`, nor NumPy before 2 ask for it.
        return original(self, dtype) if copy is None else original(self, dtype, copy)

    return __array__


def _read_direct(original: Method) -> Method:
    @wraps(original)
    def read_direct(
        self: h5py.Dataset, dest: Any, source_sel: Any = None, dest_sel: Any = None
    ) -> None:
        if not isinstance(self, Dataset):
            binding = bindings.binding_of(self)
            found = reading.read_into(self, binding, dest, source_sel, dest_sel)
            if not isinstance(found, Left):
                return
            pending.settle_for_h5py(self)
        original(self, dest, source_sel, dest_sel)

    return read_direct


def _setitem(original: Method) -> Method:
    @wraps(original)
    def __setitem__(self: h5py.Dataset, args: Any, val: Any) -> None:  # noqa: N807
        if isinstance(self, Dataset):
            original(self, args, val)
            return
        unwritten.keep(self)
        if not at_once.put(self, args, val, original):
            original(self, args, val)

    return __setitem__


def _write_direct(original: Method, setitem: Method) -> Method:
    @wraps(original)
    def write_direct(
        self: h5py.Dataset, source: Any, source_sel: Any = None, dest_sel: Any = None
    ) -> None:
        # h5py says what it refuses in other arrays and selections.
        usual = isinstance(source, np.ndarray) and source.flags.c_contiguous and source_sel is None
        unwritten.keep(self)
        if not isinstance(self, Dataset) and usual:
            index = ... if dest_sel is None else dest_sel
            if at_once.put(self, index, source, setitem):
                return
        original(self, source, source_sel, dest_sel)

    return write_direct


def _make_new_dset(original: Method, setitem: Method) -> Method:
    @wraps(original)
    def make_new_dset(
        parent: h5py.Group,
        shape: Any = None,
        dtype: Any = None,
        data: Any = None,
        *args: Any,
        **options: Any,
    ) -> h5d.DatasetID:
        wanted = _shape_of(data, shape, dtype)
        if wanted is None:
            made: h5d.DatasetID = original(parent, shape, dtype, data, *args, **options)
            if data is not None:
                unwritten.flush(made)
            return made
        # As h5py does: made first, then written.
        given = data.dtype if dtype is None else dtype
        made = original(parent, wanted, given, None, *args, **options)
        dataset, data = h5py.Dataset(made), np.ascontiguousarray(data)
        unwritten.keep(dataset)
        if not at_once.put(dataset, ..., data.reshape(wanted), setitem):
            made.write(h5s.ALL, h5s.ALL, data)
        unwritten.flush(made)
        return made

    return make_new_dset


def _shape_of(data: Any, shape: Any, dtype: Any) -> tuple[int, ...] | None:
    """Give the shape of a new dataset whose data can be written once it is made, else None."""
    # That takes numbers which h5py does not convert itself, as it does for half precision.
    if type(data) is not np.ndarray or data.dtype.kind not in "biufc":
        return None
    if data.nbytes < at_once.SMALLEST_NBYTES or (dtype is not None and dtype != data.dtype):
        return None
    try:
        wanted: tuple[int, ...]
        wanted = (
            data.shape if shape is None else ((shape,) if isinstance(shape, int) else tuple(shape))
        )
        return wanted if math.prod(wanted) == data.size else None
    except TypeError:
        return None
