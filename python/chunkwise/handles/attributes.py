"""How are an object's attributes changed, and what is said in a file that is open for reading?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import h5py

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
