"""What replaces the methods of h5py that read?

Whatever the engine does not read exactly as h5py would, the original method does: also
every index that does not fit, so that the exception is h5py's.  What stands in their place asks
`routing`, as the methods of chunkwise's own datasets do, which come here when they leave something
to h5py, and go on to the original.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import h5py

from chunkwise.dataset import Dataset
from chunkwise.routing import bindings, reading
from chunkwise.writing import pending

Method = Callable[..., Any]
# A class, the name of a method, and what replaces it, whose __wrapped__ is the original.
Replacement = tuple[type, str, Method]


def replacements() -> list[Replacement]:
    """What to put in the place of h5py's methods as they are now."""
    dataset = h5py.Dataset
    return [
        (dataset, "__getitem__", _getitem(dataset.__getitem__)),
        (dataset, "__array__", _array(dataset.__array__)),
        (dataset, "read_direct", _read_direct(dataset.read_direct)),
    ]


def _getitem(original: Method) -> Method:
    @wraps(original)
    def __getitem__(self: h5py.Dataset, args: Any, new_dtype: Any = None) -> Any:  # noqa: N807
        if not isinstance(self, Dataset):
            binding = bindings.binding_of(self)
            result = reading.getitem(self, binding, args, new_dtype)
            if result is not NotImplemented:
                return result
            if binding.bound is None:
                pending.settle_for_h5py(self)
        return original(self, args, new_dtype)

    return __getitem__


def _array(original: Method) -> Method:
    @wraps(original)
    def __array__(self: h5py.Dataset, dtype: Any = None, copy: Any = None) -> Any:  # noqa: N807
        if copy is not False and not isinstance(self, Dataset):
            binding = bindings.binding_of(self)
            result = reading.array(self, binding, dtype)
            if result is not NotImplemented:
                return result
        # Before 3.12 h5py did not know of `copy`, nor NumPy before 2 ask for it.  It reads by
        # read_direct, which comes here again.
        return original(self, dtype) if copy is None else original(self, dtype, copy)

    return __array__


def _read_direct(original: Method) -> Method:
    @wraps(original)
    def read_direct(
        self: h5py.Dataset, dest: Any, source_sel: Any = None, dest_sel: Any = None
    ) -> None:
        if not isinstance(self, Dataset):
            if reading.into(self, bindings.binding_of(self), dest, source_sel, dest_sel):
                return
            pending.settle_for_h5py(self)
        original(self, dest, source_sel, dest_sel)

    return read_direct
