"""What are the attributes and dimensions of our objects, beside h5py's?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import h5py
from h5py._hl import dims

from chunkwise.files.opening_writable import is_read_only, read_only
from chunkwise.names import HDF5_ERRORS, printable


class Attributes(h5py.AttributeManager):  # type: ignore[misc]
    """h5py's attributes, with the one error for a file that is open for reading only."""

    def __init__(self, parent: Any, where: str) -> None:
        super().__init__(parent)
        self._where = where

    def __setitem__(self, name: Any, value: Any) -> None:
        """Set an attribute; see `h5py.AttributeManager`."""
        with self._changed(name):
            super().__setitem__(name, value)

    def __delitem__(self, name: Any) -> None:
        """Remove an attribute; see `h5py.AttributeManager`."""
        with self._changed(name):
            super().__delitem__(name)

    def create(self, name: Any, data: Any, shape: Any = None, dtype: Any = None) -> None:
        """Make an attribute, or make it anew; see `h5py.AttributeManager.create`."""
        with self._changed(name):
            super().create(name, data, shape, dtype)

    def modify(self, name: Any, value: Any) -> None:
        """Change the value of an attribute; see `h5py.AttributeManager.modify`."""
        with self._changed(name):
            super().modify(name, value)

    @contextlib.contextmanager
    def _changed(self, name: Any) -> Iterator[None]:
        try:
            yield
        except HDF5_ERRORS as error:
            if not is_read_only(error):
                raise
            raise read_only(f"{self._where}: attribute {printable(str(name))}") from error


# Makes a dataset of ours of one of h5py's.
Wrap = Callable[[h5py.Dataset], Any]


class Dimension(dims.DimensionProxy):  # type: ignore[misc]
    """One dimension and its scales."""

    def __init__(self, identifier: Any, dimension: int, wrap: Wrap) -> None:
        super().__init__(identifier, dimension)
        self._wrap = wrap

    def __getitem__(self, item: Any) -> Any:
        return self._wrap(super().__getitem__(item))

    def items(self) -> list[tuple[str, Any]]:
        """Names and datasets of all scales."""
        return [(name, self._wrap(scale)) for name, scale in super().items()]


class Dimensions(dims.DimensionManager):  # type: ignore[misc]
    """The dimensions of a dataset."""

    def __init__(self, parent: h5py.Dataset, wrap: Wrap) -> None:
        super().__init__(parent)
        self._wrap = wrap

    def __getitem__(self, index: int) -> Dimension:
        found = super().__getitem__(index)
        return Dimension(found._id, found._dimension, self._wrap)
