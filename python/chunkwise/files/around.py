"""What do access patterns need from a dataset's file: names of dimensions, and indices?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import h5py

from chunkwise.errors import ChunkwiseError, SelectionError
from chunkwise.files.opening import find_dataset, full_name
from chunkwise.files.unclosed import open_readable
from chunkwise.names import HDF5_ERRORS, printable


@dataclass(frozen=True)
class Surroundings:
    """What lies around a dataset; the file is opened when something is asked."""

    file: str | os.PathLike[str] | h5py.File  # The file, or one that is open
    dataset: str  # The dataset's path

    @cached_property
    def dimensions(self) -> Sequence[str | None]:
        """The names of its dimensions, by their scales; empty if none has one."""
        try:
            with self._opened() as file:
                found = find_dataset(file, full_name(file, self.dataset))
                names = [_name(dimension) for dimension in found.dims]
        except (ChunkwiseError, *HDF5_ERRORS):
            return ()
        return names if any(names) else ()

    def numbers(self, name: str) -> Sequence[int]:
        """Read another dataset of whole numbers: by its path, or in this one's group."""
        beside = f"{self.dataset.rpartition('/')[0]}/{name}"
        with self._opened() as file:
            path = next((one for one in (beside, name) if one in file), None)
            found = None if path is None else file[path]
            if not isinstance(found, h5py.Dataset):
                raise SelectionError(
                    f"{self._said}: no dataset is called '{printable(name)}', in the file or "
                    f"beside '{printable(self.dataset)}'"
                )
            if found.ndim != 1 or found.dtype.kind not in "iu":
                raise SelectionError(
                    f"{self._said}: '{printable(name)}' is no list of whole numbers: it has "
                    f"{found.ndim} dimensions of {found.dtype}"
                )
            return [int(number) for number in found[...]]

    @property
    def _said(self) -> str:
        name = self.file.filename if isinstance(self.file, h5py.File) else os.fspath(self.file)
        return printable(str(name))

    @contextmanager
    def _opened(self) -> Iterator[h5py.File]:
        if isinstance(self.file, h5py.File):
            yield self.file
            return
        with open_readable(Path(self.file)) as file:
            yield file


def _name(dimension: h5py._hl.dims.DimensionProxy) -> str | None:
    """Name a dimension by its first scale, or by its label."""
    if len(dimension):
        return str(dimension[0].name)
    return dimension.label or None
