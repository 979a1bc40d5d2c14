"""How are files opened and objects found in them?  h5py's way, read-only."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, cast

import h5py

from chunkwise.attributes import Attributes
from chunkwise.dataset import Dataset
from chunkwise.errors import NotADatasetError, UsageError
from chunkwise.handles import FileHandle, ObjectHandle, number_of
from chunkwise.objects import decode_name, encode_name
from chunkwise.opening import find_dataset

# Datasets met so far, by the path asked for and the number of the file that it is in,
# which is None for the file that was opened.
Known = dict[tuple[tuple[int, ...] | None, str], Dataset]


class Group(Mapping[str, "Group | Dataset"]):
    """A group of an open file."""

    def __init__(
        self, handle: ObjectHandle, file: FileHandle, known: Known, number: tuple[int, ...] | None
    ) -> None:
        self._handle = handle
        self._file = file
        self._known = known
        self._number = number

    @property
    def _h5(self) -> h5py.Group:
        """As `h5py`, for as long as something refers to it."""
        return self._handle.get()

    @property
    def h5py(self) -> h5py.Group:
        """The h5py group underneath; libhdf5 keeps its file open from then on."""
        return self._handle.pin()

    @property
    def name(self) -> str:
        """Full name in its file."""
        return cast("str", self._h5.name)

    @property
    def attrs(self) -> Mapping[str, Any]:
        """Attributes, as h5py gives them."""
        return Attributes.of(self._handle)

    def __getitem__(self, name: str | bytes) -> Group | Dataset:
        """The object `name`, which may be a path.

        A dataset is the same object each time it is asked for, so that ``f["x"][i]`` in
        a loop keeps its chunk index and its cached chunks.

        Raises
        ------
        chunkwise.errors.DatasetNotFoundError
            When there is no such object (a KeyError); offers near names.
        chunkwise.errors.NotADatasetError
            When it is neither a group nor a dataset (a TypeError).
        """
        self._check_open()
        if isinstance(name, bytes):
            name = decode_name(name)
        if not isinstance(name, str):
            raise NotADatasetError(f"a name is a str, not {type(name).__name__}")
        path = posixpath.join(self._handle.path, name)
        found = self._known.get((self._number, path))
        if found is not None:
            return found
        # Its file stays open as long as this refers to it.
        h5 = self._h5
        try:
            # As bytes, since names need not be UTF-8.
            item = h5[encode_name(name)]
        except KeyError:
            # Says what is near, or where a link would lead.
            find_dataset(h5.file, path)
            raise
        if not isinstance(item, h5py.Dataset | h5py.Group):
            raise NotADatasetError(f"{path} in {h5.file.filename} is a named type, not data")
        number = number_of(item, h5.file.filename)
        own = number == self._file.number
        if not own:
            # An external link led to another file, where the same names lead elsewhere.
            self._file.pin()
        if isinstance(item, h5py.Group):
            handle = ObjectHandle(item, self._file, path if own else item.name)
            return Group(handle, self._file, self._known, None if own else number)
        dataset = Dataset(item, ObjectHandle(item, self._file, path))
        return self._known.setdefault((self._number, path), dataset)

    def __iter__(self) -> Iterator[str]:
        self._check_open()
        return iter(self._h5)

    def __len__(self) -> int:
        self._check_open()
        return len(self._h5)

    def __contains__(self, name: object) -> bool:
        return name in self._h5

    def _check_open(self) -> None:
        if not self._file.is_open:
            raise UsageError("the file is closed")

    def __repr__(self) -> str:
        if not self._file.is_open:
            return "<closed chunkwise group>"
        return f"<chunkwise {self._h5!r}>"


class File(Group):
    """A file opened read-only; close it, or use it in a ``with`` statement."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        file = FileHandle(path)
        super().__init__(file.root(), file, {}, None)

    @property
    def filename(self) -> str:
        """The path it was opened with."""
        return self._file.filename

    def close(self) -> None:
        """Close the file; its datasets cannot be read afterwards."""
        for dataset in list(self._known.values()):
            dataset._release()
        self._known.clear()
        self._file.close()

    def __enter__(self) -> File:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open(path: str | os.PathLike[str]) -> File:
    """Open an HDF5 or netCDF-4 file for reading.

    Parameters
    ----------
    path : path-like
        A local file.

    Returns
    -------
    File
        ``f["group/dataset"]`` gives a `Dataset`.

    Raises
    ------
    chunkwise.errors.FileFormatError
        When it cannot be opened; says what it is instead, and what to do (an OSError).
    chunkwise.errors.CorruptDataError
        When it can, but is damaged where its objects begin (an OSError).
    """
    return File(path)
